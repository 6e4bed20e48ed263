/* See world.h. A buffer is an array of cells, one an element: who has contributed (a bit a rank),
 * to what (a key that no two elements of a sum share), and whether the reduction is finished. */
#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
struct cell {
	uint32_t ranks;
	uint32_t final;
	uint64_t key;
};

struct message {
	struct message *next;
	struct cell *cells;
	const struct cell *source; /* must be unchanged until it is received; may be NULL */
	uint64_t n, index;
};

struct queue { /* a connection */
	struct queue *next;
	uint32_t src, dst;
	uint16_t lane;
	uint64_t n_sent, n_received;
	struct message *head, **tail;
};

struct world {
	const struct sched *const *s;
	uint32_t n;
	struct cell *input[WORLD_MAX], *output[WORLD_MAX];
	uint64_t n_in[WORLD_MAX], n_out[WORLD_MAX];
	void *owned[WORLD_MAX][2];
	uint64_t *at[WORLD_MAX]; /* steps done, per thread */
	uint32_t n_threads[WORLD_MAX];
	struct queue *queues[WORLD_MAX][WORLD_MAX];
	uint64_t n_messages;
};

static struct queue *queue_of(struct world *w, uint32_t src, uint32_t dst, uint16_t lane)
{
	struct queue *q;

	assert_true(src < w->n && dst < w->n && src != dst);
	for (q = w->queues[src][dst]; q; q = q->next)
		if (q->lane == lane)
			return q;
	q = calloc(1, sizeof(*q));
	*q = (struct queue){.next = w->queues[src][dst], .src = src, .dst = dst, .lane = lane};
	q->tail = &q->head;
	w->queues[src][dst] = q;
	return q;
}

static uint64_t cells_of(const struct sched *s, uint64_t bytes)
{
	assert_int_equal(bytes % s->elem_bytes, 0);
	return bytes / s->elem_bytes;
}

/* Keys: where the element comes from, so that equal keys may be reduced. */
static uint64_t input_key(const struct sched *s, uint32_t rank, uint64_t cell)
{
	switch ((uint32_t)s->kind) {
	case COLL_ALLREDUCE:
	case COLL_REDUCE:
	case COLL_REDUCESCATTER:
		return cell + 1;
	default:
		return ((uint64_t)(rank + 1) << 40) + cell + 1;
	}
}

static void fill(struct cell *c, const struct sched *s, uint32_t rank, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		c[i] = (struct cell){UINT32_C(1) << rank, 0, input_key(s, rank, i)};
}

/* NCCL's in-place forms: which offset one buffer has in the other, in cells. */
static void make_buffers(struct world *w, uint32_t rank, enum world_place place)
{
	const struct sched *s = w->s[rank];
	int is_root = rank == s->root;
	uint64_t n_in = cells_of(s, coll_input_bytes(s->kind, s->bytes, s->n_ranks, is_root));
	uint64_t n_out = cells_of(s, coll_output_bytes(s->kind, s->bytes, s->n_ranks, is_root));
	uint64_t part = cells_of(s, s->bytes);

	w->n_in[rank] = n_in;
	w->n_out[rank] = n_out;
	if (place == WORLD_OUT_OF_PLACE || n_in == 0 || n_out == 0) {
		w->input[rank] = w->owned[rank][0] = calloc(n_in + 1, sizeof(struct cell));
		w->output[rank] = w->owned[rank][1] = calloc(n_out + 1, sizeof(struct cell));
	} else if (n_in >= n_out) {
		w->input[rank] = w->owned[rank][0] = calloc(n_in + 1, sizeof(struct cell));
		w->output[rank] = w->input[rank] + (n_in > n_out ? rank * part : 0);
	} else {
		w->output[rank] = w->owned[rank][1] = calloc(n_out + 1, sizeof(struct cell));
		w->input[rank] = w->output[rank] + rank * part;
	}
	fill(w->input[rank], s, rank, n_in);
}

static void make_p2p_buffers(struct world *w, uint32_t rank)
{
	const struct sched *s = w->s[rank];

	for (uint32_t i = 0; i < s->n_p2p; i++) {
		uint64_t end = cells_of(s, s->p2p[i].off) + cells_of(s, s->p2p[i].bytes);
		uint64_t *n = s->p2p[i].is_send ? &w->n_in[rank] : &w->n_out[rank];

		*n = end > *n ? end : *n;
	}
	w->input[rank] = w->owned[rank][0] = calloc(w->n_in[rank] + 1, sizeof(struct cell));
	w->output[rank] = w->owned[rank][1] = calloc(w->n_out[rank] + 1, sizeof(struct cell));
	fill(w->input[rank], s, rank, w->n_in[rank]);
}

static void add(struct cell *sum, const struct cell *more, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(sum[i].key, more[i].key);
		assert_int_equal(sum[i].ranks & more[i].ranks, 0);
		assert_false(sum[i].final || more[i].final);
		sum[i].ranks |= more[i].ranks;
	}
}

static int is_ready(struct world *w, uint32_t rank, const struct sched_step *t)
{
	for (uint32_t i = 0; i < t->n_recv; i++)
		if (!queue_of(w, t->recv[i], rank, t->recv_lane)->head)
			return 0;
	return 1;
}

/* Takes the next message off its connection, and checks that it is the one meant. */
static struct cell *receive(struct world *w, uint32_t rank, uint32_t thread, uint32_t peer,
			    const struct sched_step *t, uint64_t n)
{
	struct queue *q = queue_of(w, peer, rank, t->recv_lane);
	struct message *m = q->head;
	struct cell *cells = m->cells;

	assert_int_equal(m->index, t->recv_index);
	assert_int_equal(m->index, q->n_received);
	assert_int_equal(m->n, n);
	assert_int_equal(sched_message_bytes(w->s[rank], peer, rank, t->recv_lane, m->index),
			 t->bytes);
	assert_int_equal(sched_recv_thread(w->s[rank], peer, rank, t->recv_lane), thread);
	if (m->source)
		assert_memory_equal(m->source, cells, n * sizeof(*cells));
	q->n_received++;
	q->head = m->next;
	if (!q->head)
		q->tail = &q->head;
	free(m);
	return cells;
}

static void send(struct world *w, uint32_t rank, uint32_t thread, uint32_t peer,
		 const struct sched_step *t, const struct cell *value, const struct cell *source,
		 uint64_t n)
{
	struct queue *q = queue_of(w, rank, peer, t->send_lane);
	struct message *m = calloc(1, sizeof(*m));

	assert_int_equal(t->send_index, q->n_sent);
	assert_int_equal(sched_message_bytes(w->s[rank], rank, peer, t->send_lane, t->send_index),
			 t->bytes);
	assert_int_equal(sched_send_thread(w->s[rank], rank, peer, t->send_lane), thread);
	*m = (struct message){.n = n, .index = t->send_index, .source = source};
	m->cells = malloc((n + 1) * sizeof(*m->cells));
	memcpy(m->cells, value, n * sizeof(*value));
	*q->tail = m;
	q->tail = &m->next;
	q->n_sent++;
	w->n_messages++;
}

static void execute(struct world *w, uint32_t rank, uint32_t thread, const struct sched_step *t)
{
	const struct sched *s = w->s[rank];
	uint64_t n = cells_of(s, t->bytes), in = cells_of(s, t->in_off);
	uint64_t out = cells_of(s, t->out_off);
	struct cell *value = calloc(n + 1, sizeof(*value));
	const struct cell *source = NULL;
	uint32_t n_sources = 0;

	assert_true(t->bytes <= sched_max_step_bytes(s));
	assert_true(t->n_recv <= SCHED_FAN && t->n_send <= SCHED_FAN);
	if (t->flags & STEP_INPUT) {
		assert_true(in + n <= w->n_in[rank]);
		memcpy(value, w->input[rank] + in, n * sizeof(*value));
		source = w->input[rank] + in;
		n_sources++;
	}
	for (uint32_t i = 0; i < t->n_recv; i++) {
		struct cell *got = receive(w, rank, thread, t->recv[i], t, n);

		if (n_sources++ == 0)
			memcpy(value, got, n * sizeof(*got));
		else
			add(value, got, n);
		free(got);
		source = NULL;
	}
	assert_true(n_sources == 1 || t->flags & STEP_REDUCE);
	if (t->flags & STEP_FINAL)
		for (uint64_t i = 0; i < n; i++) {
			assert_false(value[i].final);
			value[i].final = 1;
			source = NULL;
		}
	if (t->flags & STEP_OUTPUT) {
		assert_true(out + n <= w->n_out[rank]);
		memcpy(w->output[rank] + out, value, n * sizeof(*value));
		source = w->output[rank] + out;
	}
	for (uint32_t i = 0; i < t->n_send; i++)
		send(w, rank, thread, t->send[i], t, value, source, n);
	free(value);
}

/* Executes one ready step, beginning to look at a random place. */
static int advance(struct world *w, struct rng *rng)
{
	uint32_t first_rank = (uint32_t)(rng_u64(rng) % w->n);

	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t rank = (first_rank + i) % w->n, n = w->n_threads[rank];
		uint32_t first = n ? (uint32_t)(rng_u64(rng) % n) : 0;

		for (uint32_t k = 0; k < n; k++) {
			uint32_t thread = (first + k) % n;
			struct sched_step t;

			if (w->at[rank][thread] == sched_n_steps(w->s[rank], rank, thread))
				continue;
			sched_step(w->s[rank], rank, thread, w->at[rank][thread], &t);
			if (!is_ready(w, rank, &t))
				continue;
			execute(w, rank, thread, &t);
			w->at[rank][thread]++;
			return 1;
		}
	}
	return 0;
}

/* Only connections that carried messages are there. */
static void check_no_others(struct world *w)
{
	const struct sched *s = w->s[0];
	uint32_t n_lanes = s->n_channels * 4 + 2;

	for (uint32_t i = 0; i < w->n * w->n * n_lanes; i++) {
		uint32_t src = i / n_lanes / w->n, dst = i / n_lanes % w->n;
		uint16_t lane = (uint16_t)(i % n_lanes);
		struct queue *q = w->queues[src][dst];

		while (q && q->lane != lane)
			q = q->next;
		if (q)
			continue;
		assert_int_equal(sched_conn_messages(s, src, dst, lane), 0);
		assert_int_equal(sched_message_bytes(s, src, dst, lane, 0), 0);
		assert_int_equal(sched_recv_thread(s, src, dst, lane), UINT32_MAX);
		assert_int_equal(sched_send_thread(s, src, dst, lane), UINT32_MAX);
	}
}

/* All messages of the connection. */
static double bytes_of(const struct sched *s, const struct sched_conn *c)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < c->n_messages; i++)
		bytes += sched_message_bytes(s, c->src, c->dst, c->lane, i);
	return (double)bytes;
}

static void check_conns(struct world *w)
{
	double bytes = 0, by_lane = 0;
	uint64_t total = 0, n_conns[2] = {0, 0}, n_queues = 0;

	for (uint32_t r = 0; r < w->n; r++) {
		struct sched_conn *c;
		uint32_t n_in, n_out;

		assert_int_equal(sched_conns(w->s[r], r, &c, &n_in, &n_out), 0);
		for (uint32_t i = 0; i < n_in + n_out; i++) {
			struct queue *q = queue_of(w, c[i].src, c[i].dst, c[i].lane);

			assert_int_equal(i < n_in ? c[i].dst : c[i].src, r);
			assert_true(c[i].n_messages > 0);
			assert_int_equal(q->n_sent, c[i].n_messages);
			assert_int_equal(sched_conn_messages(w->s[r], c[i].src, c[i].dst,
							     c[i].lane),
					 c[i].n_messages);
			assert_int_equal(sched_message_bytes(w->s[r], c[i].src, c[i].dst, c[i].lane,
							     c[i].n_messages),
					 0);
			total += i < n_in ? c[i].n_messages : 0;
			if (w->s[r]->kind == COLL_SENDRECV)
				continue;
			bytes += bytes_of(w->s[r], &c[i]);
			by_lane += sched_lane_bytes(w->s[r], c[i].lane);
		}
		n_conns[0] += n_in;
		n_conns[1] += n_out;
		free(c);
	}
	for (uint32_t i = 0; i < w->n * w->n; i++)
		for (struct queue *q = w->queues[i / w->n][i % w->n]; q; q = q->next) {
			assert_int_equal(q->n_sent, q->n_received);
			assert_null(q->head);
			n_queues++;
		}
	assert_int_equal(total, w->n_messages);
	assert_int_equal(n_conns[0], n_conns[1]);
	assert_int_equal(n_conns[0], n_queues);
	if (w->s[0]->kind == COLL_SENDRECV)
		return;
	assert_int_equal(total, sched_total_messages(w->s[0]));
	assert_true(fabs(bytes - by_lane) <= 1e-9 * bytes);
	check_no_others(w);
}

static void expect_cell(const struct cell *c, uint32_t ranks, uint64_t key, uint32_t final)
{
	assert_int_equal(c->ranks, ranks);
	assert_int_equal(c->key, key);
	assert_int_equal(c->final, final);
}

/* The promise of each kind, written down once more from NCCL's user guide. */
static void check_output(struct world *w, uint32_t r)
{
	const struct sched *s = w->s[r];
	uint64_t part = cells_of(s, s->bytes);
	uint32_t all = w->n == 32 ? UINT32_MAX : (UINT32_C(1) << w->n) - 1;

	for (uint64_t i = 0; i < w->n_out[r]; i++) {
		const struct cell *c = &w->output[r][i];
		uint32_t from = part ? (uint32_t)(i / part) : 0;

		switch ((uint32_t)s->kind) {
		case COLL_ALLREDUCE:
		case COLL_REDUCE:
			expect_cell(c, all, i + 1, 1);
			break;
		case COLL_REDUCESCATTER:
			expect_cell(c, all, r * part + i + 1, 1);
			break;
		case COLL_ALLGATHER:
		case COLL_GATHER:
			expect_cell(c, UINT32_C(1) << from, input_key(s, from, i % part), 0);
			break;
		case COLL_BROADCAST:
			expect_cell(c, UINT32_C(1) << s->root, input_key(s, s->root, i), 0);
			break;
		case COLL_SCATTER:
			expect_cell(c, UINT32_C(1) << s->root, input_key(s, s->root, r * part + i),
				    0);
			break;
		case COLL_ALLTOALL:
			expect_cell(c, UINT32_C(1) << from, input_key(s, from, r * part + i % part),
				    0);
			break;
		default:
			fail();
		}
	}
}

/* The k-th receive from a peer holds the peer's k-th send to us. */
static void check_p2p_output(struct world *w, uint32_t r)
{
	const struct sched *s = w->s[r];

	for (uint32_t i = 0; i < s->n_p2p; i++) {
		const struct sched_p2p *get = &s->p2p[i], *put = NULL;
		uint32_t k = 0, m = 0, peer = get->peer;

		if (get->is_send || get->bytes == 0)
			continue;
		for (uint32_t j = 0; j < i; j++)
			k += !s->p2p[j].is_send && s->p2p[j].peer == peer && s->p2p[j].bytes;
		for (uint32_t j = 0; j < w->s[peer]->n_p2p && !put; j++) {
			const struct sched_p2p *c = &w->s[peer]->p2p[j];

			if (c->is_send && c->peer == r && c->bytes && m++ == k)
				put = c;
		}
		assert_non_null(put);
		for (uint64_t e = 0; e < cells_of(s, get->bytes); e++)
			expect_cell(&w->output[r][cells_of(s, get->off) + e], UINT32_C(1) << peer,
				    input_key(s, peer, cells_of(s, put->off) + e), 0);
	}
}

static void world_free(struct world *w)
{
	for (uint32_t r = 0; r < w->n; r++) {
		free(w->owned[r][0]);
		free(w->owned[r][1]);
		free(w->at[r]);
		for (uint32_t k = 0; k < w->n; k++)
			for (struct queue *q = w->queues[r][k], *next; q; q = next) {
				next = q->next;
				free(q);
			}
	}
}

void world_run(const struct sched *const *s, uint32_t n, enum world_place place, struct rng *rng)
{
	static struct world w;

	memset(&w, 0, sizeof(w));
	w.s = s;
	w.n = n;
	assert_true(n <= WORLD_MAX);
	for (uint32_t r = 0; r < n; r++) {
		if (s[r]->kind == COLL_SENDRECV)
			make_p2p_buffers(&w, r);
		else
			make_buffers(&w, r, place);
		w.n_threads[r] = sched_n_threads(s[r], r);
		w.at[r] = calloc(w.n_threads[r] + 1, sizeof(uint64_t));
	}
	while (advance(&w, rng))
		;
	for (uint32_t r = 0; r < n; r++) {
		for (uint32_t t = 0; t < w.n_threads[r]; t++) /* else: deadlock */
			assert_int_equal(w.at[r][t], sched_n_steps(s[r], r, t));
		if (s[r]->kind == COLL_SENDRECV)
			check_p2p_output(&w, r);
		else
			check_output(&w, r);
	}
	check_conns(&w);
	world_free(&w);
}

void world_run_same(const struct sched *s, enum world_place place, struct rng *rng)
{
	const struct sched *all[WORLD_MAX];

	for (uint32_t r = 0; r < s->n_ranks; r++)
		all[r] = s;
	world_run(all, s->n_ranks, place, rng);
}
