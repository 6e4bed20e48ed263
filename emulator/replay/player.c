/* See player.h. */
#include "replay/player.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "op/arrive.h"
#include "op/row.h"
#include "op/start.h"

/* In the order in which they come at equal times. */
enum event { EVENT_TAKE, EVENT_ARRIVE, EVENT_END };

static int push(struct player *p, enum event what, uint32_t row, double at)
{
	return sim_heap_push(&p->events, fmax(at, p->now), (uint64_t)what << 32 | row) ? -ENOMEM
										       : 0;
}

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "no memory for what a record plays");
}

/* A post's row is in its arrive.name. */
void player_released(struct player *p, struct post *post)
{
	int r = push(p, EVENT_END, (uint32_t)(post->arrive.name - 1),
		     timeline_real_end(post->node, false));

	p->error = p->error ? p->error : r;
}

/* --- rows ------------------------------------------------------------------------------------- */

static int let_go(struct player *p, uint32_t row, bool is_early)
{
	const struct rows_row *from = &p->graph->rows[row];
	int r = 0;

	for (uint32_t i = 0; i < from->n_followers && r == 0; i++) {
		const struct rows_follower *f = &p->graph->followers[from->first_follower + i];

		if (f->is_early == is_early && --p->n_waits[f->row] == 0)
			r = push(p, EVENT_TAKE, f->row, p->now);
	}
	return r;
}

static struct timeline_dep dep_of(const struct rows_dep *dep)
{
	return (struct timeline_dep){.name = dep->row == ROWS_NONE ? 0 : (uint64_t)dep->row + 1,
				     .is_same_stream = dep->is_same_stream,
				     .open_ns = dep->open_ns};
}

static size_t take_deps(const struct player *p, const struct rows_row *row,
			struct timeline_dep *ret)
{
	size_t n = 0;

	for (; n < row->n_deps && n < WIRE_DEPS_MAX; n++)
		ret[n] = dep_of(&p->graph->deps[row->first_dep + n]);
	return n;
}

static uint64_t host_of(const struct rows_row *row)
{
	return row->host == ROWS_NONE ? 0 : (uint64_t)row->host + 1;
}

static void tell(const struct player *p, void (*what)(void *ctx, uint32_t row), uint32_t row)
{
	if (what)
		what(p->ctx, row);
}

static uint32_t rank_of(const struct player *p, uint32_t i)
{
	const struct rows_row *row = &p->graph->rows[i];

	return row->is_op ? p->out->ops[row->index].world_rank
			  : p->out->points[row->index].world_rank;
}

static uint64_t comm_index(const struct player *p, const struct record_op *op)
{
	return (uint64_t)(op->of - p->out->comms);
}

static int row_over(struct player *p, uint32_t i)
{
	p->is_over[i] = true;
	p->n_left[rank_of(p, i)]--;
	if (p->graph->rows[i].is_op)
		p->n_left_in[comm_index(p, &p->out->ops[p->graph->rows[i].index])]--;
	tell(p, p->sink->over, i);
	return let_go(p, i, false);
}

static int take_point(struct player *p, uint32_t i, struct err *err)
{
	const struct rows_row *row = &p->graph->rows[i];
	struct record_point *to = &p->out->points[row->index];
	struct timeline_dep deps[WIRE_DEPS_MAX], latest = dep_of(&row->latest);
	struct timeline_times t;
	int r = ops_point(p->ops, to->world_rank,
			  &(struct timeline_point){
				  .name = (uint64_t)i + 1,
				  .time_ns = to->time_ns,
				  .call_ns = to->call_ns,
				  .work_ns = to->work_ns,
				  .host = host_of(row),
				  .deps = deps,
				  .n_deps = take_deps(p, row, deps),
				  .latest = &latest,
				  .number = row->number,
				  .is_host = to->kind == RECORD_POINT_HOST,
			  },
			  &t, err);

	if (r < 0)
		return r;
	to->virtual_ns = t.time_ns;
	to->plain_ns = t.plain_ns;
	to->exposed_ns = t.exposed_ns;
	to->is_host_bound = t.is_host_bound;
	if (p->terms)
		p->terms[i] = t.terms;
	r = let_go(p, i, true);
	r = r < 0 ? r : row_over(p, i);
	return r < 0 ? no_memory(err) : 0;
}

static struct comm **comm_of(const struct player *p, const struct record_op *op)
{
	return &p->comms[comm_index(p, op)];
}

/* The ranks of a record call what they called; the others may not. */
static int mismatch(const struct op *op, const struct comm_member *m, const struct wire_arrive *a,
		    struct err *err)
{
	const struct post *other = op_first_arrived(op);
	const struct wire_arrive *b = &other->arrive;

	return err_set(err, EINVAL,
		       "op %llu: rank %u calls %s of %llu %s, rank %u %s of %llu %s by its record",
		       (unsigned long long)op->key.seq, other->member->rank,
		       coll_kind_name(b->kind), (unsigned long long)b->count,
		       coll_dtype_name(b->dtype), m->rank, coll_kind_name(a->kind),
		       (unsigned long long)a->count, coll_dtype_name(a->dtype));
}

/* A new op of @m's. Return: 0, *ret NULL: its communicator is of no use any more; negative errno
 * with the sentence. */
static int op_begin(const struct player *p, const struct comm_member *m, struct comm *c,
		    uint64_t seq, const struct record_op *to, struct wire_arrive *a,
		    struct op **ret, struct err *err)
{
	bool is_p2p = seq_is_p2p(seq);
	CLEANUP(freep)
	struct wire_p2p *calls = is_p2p ? calloc((size_t)to->n_calls + 1, sizeof(*calls)) : NULL;
	struct op *op = op_new(c, seq, (size_t)(m - c->real));

	if (!op || (is_p2p && !calls))
		return no_memory(err);
	*ret = op;
	if (p->sink->opened && !p->sink->opened(p->ctx, op, to->kind)) {
		*ret = NULL;
		return 0;
	}
	for (uint32_t i = 0; is_p2p && i < to->n_calls; i++)
		calls[i] = (struct wire_p2p){.peer = to->calls[i].peer,
					     .is_send = to->calls[i].is_send,
					     .bytes = to->calls[i].bytes};
	a->n_p2p = is_p2p ? to->n_calls : 0;
	return op_define(op, a, (const char *)calls, err);
}

/* The op that @to is at, with its post. Return: as above. */
static int find_post(const struct player *p, const struct record_op *to, struct wire_arrive *a,
		     struct post **ret, struct err *err)
{
	struct comm *c = *comm_of(p, to);
	bool is_p2p = to->kind == COLL_SENDRECV;
	uint64_t seq = is_p2p ? to->seq | WIRE_SEQ_P2P : to->seq;
	struct comm_member *m = NULL;
	struct op *op;
	int r = 0;

	for (uint32_t i = 0; i < c->n_real && !m; i++)
		m = c->real[i].world_rank == to->world_rank ? &c->real[i] : NULL;
	if (!m || !comm_ops_get(c))
		return m ? no_memory(err)
			 : err_set(err, EINVAL,
				   "the record has an op of rank %u in communicator %u, which it is "
				   "not in",
				   to->world_rank, c->number);
	op = op_find(c, seq, (size_t)(m - c->real));
	if (!op)
		r = op_begin(p, m, c, seq, to, a, &op, err);
	else if (!op_first_arrived(op)->node) /* a rank came here, and its communicator was of no
						 use any more */
		return 0;
	else if (!op_is_same_call(&op_first_arrived(op)->arrive, a))
		return mismatch(op, m, a, err);
	if (r < 0 || !op)
		return r;
	c->open->members[m - c->real].next[is_p2p] = to->seq + 1;
	*ret = op_post(op, m);
	return 0;
}

static int take_op(struct player *p, uint32_t i, struct err *err)
{
	const struct rows_row *row = &p->graph->rows[i];
	const struct record_op *to = &p->out->ops[row->index];
	struct timeline_dep deps[WIRE_DEPS_MAX], latest = dep_of(&row->latest);
	struct wire_arrive a = {
		.arrive_ns = to->arrive_ns,
		.count = to->count,
		.kind = to->kind,
		.dtype = to->dtype,
		.redop = to->redop,
		.root = to->root,
		.flags = (to->flags & RECORD_REPLAYED ? WIRE_ARRIVE_REPLAYED : 0) |
			 (to->flags & RECORD_NO_EDGES ? WIRE_ARRIVE_NO_EDGES : 0) |
			 (to->flags & RECORD_ONESIDED ? WIRE_ARRIVE_ONESIDED : 0),
		.name = (uint64_t)i + 1,
		.call_ns = to->call_ns,
		.work_ns = to->work_ns,
		.host = host_of(row),
		.stream = to->stream,
		.n_deps = (uint32_t)take_deps(p, row, deps),
		.took = {to->took_algorithm, to->took_protocol, to->took_channels, 0},
	};
	struct post *post = NULL;
	int r;

	if (!*comm_of(p, to)) {
		p->waiting[p->n_waiting++] = i;
		return 0;
	}
	r = find_post(p, to, &a, &post, err);
	if (r == 0 && post)
		r = post_arrive(post, &a, deps, &latest, row->number, err);
	if (r < 0 || !post)
		return r;
	p->posts[i] = post;
	if (p->terms)
		p->terms[i] = post->arrival.terms;
	r = push(p, EVENT_ARRIVE, i, timeline_arrival(post->node, to->world_rank));
	r = r < 0 ? r : let_go(p, i, true);
	if (r < 0)
		return no_memory(err);
	tell(p, p->sink->taken, i); /* the post may go with its communicator */
	return 0;
}

/* What the record says of the new run, but for what was measured. */
static void fill_row(struct player *p, uint32_t i)
{
	struct record_op *to = &p->out->ops[p->graph->rows[i].index];
	const struct record_op old = *to;

	post_row(p->posts[i], to);
	to->name = old.name;
	to->host = old.host;
	to->start_ns = old.start_ns;
	to->due_ns = old.due_ns;
	to->release_ns = old.release_ns;
	to->local_done_ns = old.local_done_ns;
	to->flags |= old.flags & RECORD_NO_PROCESS;
	to->order = old.order;
	to->done_order = old.done_order;
	to->n_deps = old.n_deps;
	to->n_calls = old.n_calls;
	to->deps = old.deps;
	to->calls = old.calls;
	to->of = old.of;
}

static int end_op(struct player *p, uint32_t i, struct err *err)
{
	struct post *post = p->posts[i];
	double end = timeline_real_end(post->node, false);
	struct op *op = post->op;

	if (end > p->now + 0.5)
		return push(p, EVENT_END, i, end) < 0 ? no_memory(err) : 0;
	fill_row(p, i);
	timeline_opened(post->node, p->out->ops[p->graph->rows[i].index].release_ns);
	post->is_done = true;
	p->posts[i] = NULL;
	op->n_done++;
	op_maybe_free(op);
	return row_over(p, i) < 0 ? no_memory(err) : 0;
}

/* --- events ----------------------------------------------------------------------------------- */

static int play_event(struct player *p, enum event what, uint32_t row, struct err *err)
{
	switch (what) {
	case EVENT_TAKE:
		return p->graph->rows[row].is_op ? take_op(p, row, err) : take_point(p, row, err);
	case EVENT_ARRIVE:
		return p->posts[row] ? op_start(p->posts[row], err) : 0;
	case EVENT_END:
		return p->posts[row] ? end_op(p, row, err) : 0;
	}
	return 0;
}

static int fail(const struct player *p, uint32_t row, int r, const struct err *err)
{
	const struct rows_row *of = &p->graph->rows[row];

	return of->is_op && p->sink->failed
		       ? p->sink->failed(p->ctx, *comm_of(p, &p->out->ops[of->index]), r, err)
		       : r;
}

int player_advance(struct player *p, double until, struct err *err)
{
	int r = 0;

	while (p->events.n && r == 0 && sim_event_ns(&p->events.items[0]) <= until) {
		struct sim_event e = p->events.items[0];

		p->now = sim_event_ns(&e);
		sim_heap_drop(&p->events);
		r = play_event(p, (enum event)(e.tie >> 32), (uint32_t)e.tie, err);
		if (r < 0)
			r = fail(p, (uint32_t)e.tie, r, err);
		if (r == 0 && p->error)
			r = no_memory(err);
	}
	return r;
}

double player_next(const struct player *p)
{
	return p->events.n ? sim_event_ns(&p->events.items[0]) : INFINITY;
}

/* --- life ------------------------------------------------------------------------------------- */

int player_open(struct player *p, struct err *err)
{
	size_t n = (size_t)p->graph->n + 1;

	p->comms = calloc(p->out->n_comms + 1, sizeof(struct comm *));
	p->n_waits = malloc(n * sizeof(*p->n_waits));
	p->posts = calloc(n, sizeof(struct post *));
	p->is_over = calloc(n, sizeof(*p->is_over));
	p->waiting = malloc(n * sizeof(*p->waiting));
	p->n_left_in = calloc(p->out->n_comms + 1, sizeof(*p->n_left_in));
	p->n_left = calloc(p->out->header.world_size, sizeof(*p->n_left));
	return p->comms && p->n_waits && p->posts && p->is_over && p->waiting && p->n_left &&
			       p->n_left_in
		       ? 0
		       : no_memory(err);
}

void player_close(struct player *p)
{
	free(p->comms);
	free(p->n_waits);
	free(p->posts);
	free(p->is_over);
	free(p->waiting);
	free(p->n_left);
	free(p->n_left_in);
	sim_heap_deinit(&p->events);
}

int player_start(struct player *p, double at, struct err *err)
{
	int r = 0;

	p->now = at;
	for (uint32_t i = 0; i < p->graph->n && r == 0; i++) {
		p->n_waits[i] = p->graph->rows[i].n_waits;
		if (p->ranks && !bitmap_test(p->ranks, rank_of(p, i)))
			continue;
		p->n_left[rank_of(p, i)]++;
		if (p->graph->rows[i].is_op)
			p->n_left_in[comm_index(p, &p->out->ops[p->graph->rows[i].index])]++;
		if (p->n_waits[i] == 0)
			r = push(p, EVENT_TAKE, i, at);
	}
	return r < 0 ? no_memory(err) : 0;
}

int player_meet(struct player *p, uint64_t i, struct comm *c, struct err *err)
{
	uint32_t n = p->n_waiting;
	int r = 0;

	p->comms[i] = c;
	p->n_waiting = 0;
	for (uint32_t k = 0; k < n && r == 0; k++) /* some wait again */
		r = push(p, EVENT_TAKE, p->waiting[k], p->now);
	return r < 0 ? no_memory(err) : 0;
}

void player_part(struct player *p, const struct comm *c)
{
	for (uint64_t i = 0; i < p->out->n_comms; i++)
		if (p->comms[i] == c)
			p->comms[i] = NULL;
	for (uint32_t i = 0; i < p->graph->n; i++)
		if (p->posts[i] && p->posts[i]->op->comm == c)
			p->posts[i] = NULL;
}
