/* See engine.h. Each in-connection of an op has at most one entry in the heap: its next message,
 * once that one is ready. One more entry is the op's end. So the heap's size is known when an op
 * starts, and nothing is allocated later.
 *
 * Real ranks send the messages of a connection in order. What has arrived and what is ready are
 * therefore prefixes, kept as counts. The bitmaps hold the same fact message by message, and prove
 * that each message is marked exactly once.
 *
 * The earliest due time goes first. At equal times the op that was served least goes first, as in
 * fair queueing: an entry's turn is one more than the last turn of its op, but not less than the
 * turn that is being served. */
#include "engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/cleanup.h"

#define IS_END UINT32_MAX /* entry.in of an op's end */

struct entry {
	uint64_t due_ns;
	uint64_t turn;
	struct engine_op *op;
	uint32_t in;
};

struct in_state {
	uint64_t n_ready, n_sent;
	uint32_t is_queued;
};

struct engine_op {
	const struct border *border; /* borrowed; NULL: only an end */
	const struct timing *timing; /* borrowed */
	void *tag;
	uint64_t number; /* of the op in the engine */
	uint64_t start_ns, end_ns;
	/* after engine_stretch(): what was due @bend_ns is due @bent_ns, later times by @ratio more
	 */
	uint64_t bend_ns, bent_ns;
	double ratio; /* 0: nothing was stretched */
	uint64_t turn;
	uint64_t n_arrived, n_sent;
	struct bitmap arrived;     /* out messages */
	struct bitmap ready, sent; /* in messages */
	struct in_state *in;       /* owned, n_in */
	uint64_t *out_arrived;     /* owned, n_out */
	uint32_t *user_start;      /* owned, n_out + 1: who waits for an out-connection */
	uint32_t *user;            /* owned: in-connections */
	bool is_ending;
	struct engine_op *prev, *next;
};

struct engine {
	struct engine_sink sink;
	void *owner;
	struct entry *heap; /* owned */
	size_t n, capacity;
	size_t n_reserved; /* entries that live ops may yet need at once */
	uint64_t turn;     /* being served */
	uint64_t n_started;
	uint32_t n_live;
	struct engine_op *ops;
	bool is_advancing;
};

static bool is_before(const struct entry *a, const struct entry *b)
{
	if (a->due_ns != b->due_ns)
		return a->due_ns < b->due_ns;
	if (a->turn != b->turn)
		return a->turn < b->turn;
	if (a->op != b->op)
		return a->op->number < b->op->number;
	return a->in < b->in;
}

static void sift_up(struct engine *e, size_t i)
{
	struct entry item = e->heap[i];

	while (i > 0 && is_before(&item, &e->heap[(i - 1) / 2])) {
		e->heap[i] = e->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	e->heap[i] = item;
}

static void sift_down(struct engine *e, size_t i)
{
	struct entry item = e->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= e->n)
			break;
		if (child + 1 < e->n && is_before(&e->heap[child + 1], &e->heap[child]))
			child++;
		if (!is_before(&e->heap[child], &item))
			break;
		e->heap[i] = e->heap[child];
		i = child;
	}
	e->heap[i] = item;
}

static void queue_push(struct engine *e, struct engine_op *op, uint32_t in, uint64_t due_ns)
{
	op->turn = (op->turn > e->turn ? op->turn : e->turn) + 1;
	assert(e->n < e->capacity);
	e->heap[e->n] = (struct entry){due_ns, op->turn, op, in};
	sift_up(e, e->n++);
}

static struct entry queue_pop(struct engine *e)
{
	struct entry top = e->heap[0];

	e->heap[0] = e->heap[--e->n];
	if (e->n)
		sift_down(e, 0);
	return top;
}

/* Drops the entries of @op and puts the rest in order again. */
static void queue_drop(struct engine *e, const struct engine_op *op)
{
	size_t kept = 0, i;

	for (i = 0; i < e->n; i++)
		if (e->heap[i].op != op)
			e->heap[kept++] = e->heap[i];
	e->n = kept;
	for (i = kept / 2; i-- > 0;)
		sift_down(e, i);
}

static int queue_reserve(struct engine *e, size_t more)
{
	size_t want = e->n_reserved + more, capacity = e->capacity ? e->capacity : 64;
	struct entry *heap;

	if (want > e->capacity) {
		while (capacity < want)
			capacity *= 2;
		heap = realloc(e->heap, capacity * sizeof(*heap));
		if (!heap)
			return -ENOMEM;
		e->heap = heap;
		e->capacity = capacity;
	}
	e->n_reserved = want;
	return 0;
}

static size_t op_entries(const struct engine_op *op)
{
	return op->border ? (size_t)op->border->n_in + 1 : 1;
}

static struct engine_op *op_free(struct engine_op *op)
{
	if (op) {
		bitmap_deinit(&op->arrived);
		bitmap_deinit(&op->ready);
		bitmap_deinit(&op->sent);
		free(op->in);
		free(op->out_arrived);
		free(op->user_start);
		free(op->user);
		free(op);
	}
	return NULL;
}

static void op_freep(struct engine_op **op)
{
	op_free(*op);
}

static void op_unlink(struct engine *e, struct engine_op *op)
{
	if (op->prev)
		op->prev->next = op->next;
	else
		e->ops = op->next;
	if (op->next)
		op->next->prev = op->prev;
	e->n_live--;
	e->n_reserved -= op_entries(op);
}

int engine_new(const struct engine_sink *sink, void *owner, struct engine **ret)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->sink = *sink;
	e->owner = owner;
	*ret = e;
	return 0;
}

struct engine *engine_free(struct engine *e)
{
	if (e) {
		while (e->ops) {
			struct engine_op *op = e->ops;

			op_unlink(e, op);
			op_free(op);
		}
		free(e->heap);
		free(e);
	}
	return NULL;
}

/* start + relative time, rounded up; a time that does not fit means never. */
static uint64_t due_at(uint64_t start_ns, double relative_ns)
{
	double up = ceil(relative_ns);

	if (!(up > 0))
		return start_ns;
	if (up >= 0x1p63 || (uint64_t)up > UINT64_MAX - 1 - start_ns)
		return UINT64_MAX - 1;
	return start_ns + (uint64_t)up;
}

static uint64_t message_due(const struct engine_op *op, uint32_t in, uint64_t index)
{
	uint64_t due = due_at(op->start_ns, timing_message_ns(op->timing, in, index));

	if (op->ratio == 0)
		return due;
	/* what was due behind the end, however little before it the bend was, is due with the end
	 */
	due = due_at(op->bent_ns, due > op->bend_ns ? (double)(due - op->bend_ns) * op->ratio : 0);
	return due < op->end_ns ? due : op->end_ns;
}

/* How many messages of in-connection @in have all their predecessors. */
static uint64_t count_ready(const struct engine_op *op, uint32_t in)
{
	const struct border *b = op->border;
	uint64_t n = b->in[in].n_messages;
	uint32_t i;

	for (i = b->dep_start[in]; i < b->dep_start[in + 1]; i++) {
		uint64_t there = op->out_arrived[b->dep[i].out];

		if (b->dep[i].shift < n && there < n - b->dep[i].shift)
			n = there + b->dep[i].shift;
	}
	return n;
}

static void op_queue_next(struct engine *e, struct engine_op *op, uint32_t in)
{
	struct in_state *s = &op->in[in];

	if (s->is_queued || s->n_sent == s->n_ready)
		return;
	s->is_queued = 1;
	queue_push(e, op, in, message_due(op, in, s->n_sent));
}

/* Marks what became ready on @in, and queues its next message. */
static void op_refresh(struct engine *e, struct engine_op *op, uint32_t in)
{
	struct in_state *s = &op->in[in];
	uint64_t n = count_ready(op, in);

	if (n > s->n_ready) {
		bitmap_set_range(&op->ready, op->border->in[in].first_bit + s->n_ready,
				 n - s->n_ready);
		s->n_ready = n;
	}
	op_queue_next(e, op, in);
}

static void op_maybe_end(struct engine *e, struct engine_op *op)
{
	if (!op->border || (op->n_arrived == op->border->n_out_messages &&
			    op->n_sent == op->border->n_in_messages))
		queue_push(e, op, IS_END, op->end_ns);
}

/* Turns the dependencies around: for each out-connection, the in-connections that wait for it. */
static int op_index_users(struct engine_op *op)
{
	const struct border *b = op->border;
	uint32_t n_deps = b->n_in ? b->dep_start[b->n_in] : 0, in, i;

	op->user_start = calloc((size_t)b->n_out + 2, sizeof(*op->user_start));
	op->user = calloc((size_t)n_deps + 1, sizeof(*op->user));
	if (!op->user_start || !op->user)
		return -ENOMEM;
	for (i = 0; i < n_deps; i++)
		op->user_start[b->dep[i].out + 2]++;
	for (i = 2; i < b->n_out + 2; i++)
		op->user_start[i] += op->user_start[i - 1];
	for (in = 0; in < b->n_in; in++)
		for (i = b->dep_start[in]; i < b->dep_start[in + 1]; i++)
			op->user[op->user_start[b->dep[i].out + 1]++] = in;
	return 0;
}

static int op_init_border(struct engine_op *op)
{
	const struct border *b = op->border;

	op->in = calloc((size_t)b->n_in + 1, sizeof(*op->in));
	op->out_arrived = calloc((size_t)b->n_out + 1, sizeof(*op->out_arrived));
	if (!op->in || !op->out_arrived || bitmap_init(&op->arrived, b->n_out_messages) ||
	    bitmap_init(&op->ready, b->n_in_messages) || bitmap_init(&op->sent, b->n_in_messages))
		return -ENOMEM;
	return op_index_users(op);
}

int engine_start(struct engine *e, const struct border *border, const struct timing *timing,
		 uint64_t start_ns, uint64_t end_ns, void *tag, struct engine_op **ret)
{
	CLEANUP(op_freep) struct engine_op *op = calloc(1, sizeof(*op));
	uint32_t in;
	int r;

	if (!op)
		return -ENOMEM;
	op->border = border;
	op->timing = timing;
	op->start_ns = start_ns;
	op->end_ns = end_ns;
	op->tag = tag;
	if (border) {
		r = op_init_border(op);
		if (r)
			return r;
	}
	r = queue_reserve(e, op_entries(op));
	if (r)
		return r;

	op->number = e->n_started++;
	op->next = e->ops;
	if (e->ops)
		e->ops->prev = op;
	e->ops = op;
	e->n_live++;

	for (in = 0; border && in < border->n_in; in++)
		op_refresh(e, op, in);
	op_maybe_end(e, op);
	*ret = steal_ptr(op);
	return 0;
}

/* By what message_due() says so far: when what becomes @due_ns was due. */
static uint64_t unbent(const struct engine_op *op, uint64_t due_ns)
{
	if (op->ratio == 0)
		return due_ns;
	return op->bend_ns +
	       (due_ns > op->bent_ns ? (uint64_t)((double)(due_ns - op->bent_ns) / op->ratio) : 0);
}

void engine_stretch(struct engine *e, struct engine_op *op, uint64_t now_ns, uint64_t end_ns)
{
	uint64_t from = now_ns > op->start_ns ? now_ns : op->start_ns;

	if (op->end_ns > from && end_ns > from) {
		op->bend_ns = unbent(op, from);
		op->bent_ns = from;
		op->ratio = (op->ratio == 0 ? 1 : op->ratio) * (double)(end_ns - from) /
			    (double)(op->end_ns - from);
	}
	op->end_ns = end_ns;
	for (size_t i = 0; i < e->n; i++) {
		struct entry *entry = &e->heap[i];

		if (entry->op == op)
			entry->due_ns = entry->in == IS_END ? end_ns
							    : message_due(op, entry->in,
									  op->in[entry->in].n_sent);
	}
	for (size_t i = e->n / 2; i-- > 0;)
		sift_down(e, i);
}

void *engine_op_tag(const struct engine_op *op)
{
	return op->tag;
}

void engine_cancel(struct engine *e, struct engine_op *op)
{
	if (op->is_ending)
		return; /* from within its own end(): it is freed after that */
	queue_drop(e, op);
	op_unlink(e, op);
	op_free(op);
}

int engine_arrived(struct engine *e, struct engine_op *op, uint32_t out, uint64_t index,
		   struct err *err)
{
	const struct border *b = op->border;
	const struct border_conn *c;
	uint32_t i;

	if (!b || out >= b->n_out) {
		err_set(err, EPROTO, "message %llu came on out-connection %u, but the op has %u",
			(unsigned long long)index, out, b ? b->n_out : 0);
		return ENGINE_UNEXPECTED;
	}
	c = &b->out[out];
	if (op->out_arrived[out] == c->n_messages) {
		err_set(err, EPROTO,
			"message %llu from rank %u to rank %u, lane %u: all %llu messages of this "
			"connection have arrived already",
			(unsigned long long)index, c->src, c->dst, c->lane,
			(unsigned long long)c->n_messages);
		return ENGINE_UNEXPECTED;
	}
	if (index != op->out_arrived[out]) {
		err_set(err, EPROTO,
			"message %llu from rank %u to rank %u, lane %u: expected was message %llu "
			"of %llu",
			(unsigned long long)index, c->src, c->dst, c->lane,
			(unsigned long long)op->out_arrived[out],
			(unsigned long long)c->n_messages);
		return ENGINE_UNEXPECTED;
	}

	op->out_arrived[out]++;
	op->n_arrived++;
	bitmap_set(&op->arrived, c->first_bit + index);
	for (i = op->user_start[out]; i < op->user_start[out + 1]; i++)
		op_refresh(e, op, op->user[i]);
	op_maybe_end(e, op);
	return 0;
}

static void op_send_next(struct engine *e, struct engine_op *op, uint32_t in, uint64_t due_ns)
{
	struct in_state *s = &op->in[in];
	uint64_t index = s->n_sent++;
	bool is_first = bitmap_test_and_set(&op->sent, op->border->in[in].first_bit + index);

	assert(is_first && bitmap_test(&op->ready, op->border->in[in].first_bit + index));
	(void)is_first;
	op->n_sent++;
	s->is_queued = 0;
	op_queue_next(e, op, in);
	op_maybe_end(e, op);
	/* Last: the owner may cancel the op from here. */
	e->sink.send(e->owner, op, in, index, due_ns);
}

static void op_end(struct engine *e, struct engine_op *op)
{
	op->is_ending = true;
	op_unlink(e, op);
	e->sink.end(e->owner, op, op->end_ns);
	op_free(op);
}

uint64_t engine_advance(struct engine *e, uint64_t now_ns)
{
	assert(!e->is_advancing);
	e->is_advancing = true;
	while (e->n && e->heap[0].due_ns <= now_ns) {
		struct entry top = queue_pop(e);

		if (top.turn > e->turn)
			e->turn = top.turn;
		if (top.in == IS_END)
			op_end(e, top.op);
		else
			op_send_next(e, top.op, top.in, top.due_ns);
	}
	e->is_advancing = false;
	return e->n ? e->heap[0].due_ns : UINT64_MAX;
}

uint32_t engine_n_live(const struct engine *e)
{
	return e->n_live;
}
