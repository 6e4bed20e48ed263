/* The border against the whole world. The model executes every step of every
 * virtual rank, message by message; the border only looks at its dependencies.
 * After each arrival from a real rank, for any order of arrivals, both must allow
 * exactly the same messages towards real ranks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/border-collective.h"
#include "engine/border-p2p.h"
#include "forms.h"
#include "rng.h"

#define MAX 24
#define MAX_CONNS 4096
#define MAX_LANES 16

/* --- the model: the interior of the world, obviously ---------------------------- */

struct conn {
	uint32_t src, dst;
	uint16_t lane;
	uint64_t n_sent, n_taken;
};

struct model {
	const struct sched *s;
	const struct bitmap *real;
	struct conn conns[MAX_CONNS];
	struct conn *at_lane[MAX][MAX][MAX_LANES]; /* of conns, or NULL */
	uint32_t n_conns;
	uint32_t n_threads[MAX];
	uint64_t *at[MAX];
};

static struct conn *conn_of(struct model *m, uint32_t src, uint32_t dst, uint16_t lane)
{
	assert_true(lane < MAX_LANES);
	if (!m->at_lane[src][dst][lane]) {
		assert_true(m->n_conns < MAX_CONNS);
		m->conns[m->n_conns] = (struct conn){src, dst, lane, 0, 0};
		m->at_lane[src][dst][lane] = &m->conns[m->n_conns++];
	}
	return m->at_lane[src][dst][lane];
}

static void model_init(struct model *m, const struct sched *s, const struct bitmap *real)
{
	m->s = s;
	m->real = real;
	m->n_conns = 0;
	memset(m->at_lane, 0, sizeof(m->at_lane));
	for (uint32_t r = 0; r < s->n_ranks; r++) {
		m->n_threads[r] = sched_n_threads(s, r);
		m->at[r] = calloc(m->n_threads[r] + 1, sizeof(uint64_t));
	}
}

static void model_deinit(struct model *m)
{
	for (uint32_t r = 0; r < m->s->n_ranks; r++)
		free(m->at[r]);
}

/* Executes steps of a rank's thread while they are ready. Return: how many. */
static uint64_t run_thread(struct model *m, uint32_t rank, uint32_t thread, uint64_t most)
{
	uint64_t n_steps = sched_n_steps(m->s, rank, thread), n = 0;

	for (; n < most && m->at[rank][thread] < n_steps; n++) {
		struct sched_step t;

		sched_step(m->s, rank, thread, m->at[rank][thread], &t);
		for (uint32_t i = 0; i < t.n_recv; i++) {
			struct conn *c = conn_of(m, t.recv[i], rank, t.recv_lane);

			assert_int_equal(t.recv_index, c->n_taken);
			if (c->n_sent == c->n_taken)
				return n;
		}
		for (uint32_t i = 0; i < t.n_recv; i++)
			conn_of(m, t.recv[i], rank, t.recv_lane)->n_taken++;
		for (uint32_t i = 0; i < t.n_send; i++) {
			struct conn *c = conn_of(m, rank, t.send[i], t.send_lane);

			assert_int_equal(t.send_index, c->n_sent);
			c->n_sent++;
		}
		m->at[rank][thread]++;
	}
	return n;
}

static void run_virtual(struct model *m)
{
	uint64_t n;

	do {
		n = 0;
		for (uint32_t r = 0; r < m->s->n_ranks; r++)
			for (uint32_t t = 0; t < m->n_threads[r]; t++)
				if (!bitmap_test(m->real, r))
					n += run_thread(m, r, t, UINT64_MAX);
	} while (n > 0);
}

/* --- the border's rule ------------------------------------------------------------ */

/* How many messages of in-connection @c may be released: message by message. */
static uint64_t allowed(const struct border *b, uint32_t c, const uint64_t *arrived, uint64_t from)
{
	for (; from < b->in[c].n_messages; from++)
		for (uint32_t d = b->dep_start[c]; d < b->dep_start[c + 1]; d++)
			if (from >= b->dep[d].shift &&
			    from - b->dep[d].shift >= arrived[b->dep[d].out])
				return from;
	return from;
}

static void check_shape(const struct border *b, const struct sched *s, const struct bitmap *real)
{
	uint64_t bit = 0;

	for (uint32_t i = 0; i < b->n_in; i++) {
		const struct border_conn *c = &b->in[i];

		assert_true(bitmap_test(real, c->dst));
		assert_int_equal(c->n_messages, sched_conn_messages(s, c->src, c->dst, c->lane));
		assert_int_equal(c->first_bit, bit);
		bit += c->n_messages;
		assert_int_equal(border_find_in(b, c->src, c->dst, c->lane), i);
		assert_int_equal(border_find_out(b, c->src, c->dst, c->lane) >= 0,
				 bitmap_test(real, c->src));
		assert_int_equal(border_message_bytes(b, s, c, c->n_messages - 1),
				 sched_message_bytes(s, c->src, c->dst, c->lane,
						     c->n_messages - 1));
	}
	assert_int_equal(bit, b->n_in_messages);
	bit = 0;
	for (uint32_t i = 0; i < b->n_out; i++) {
		const struct border_conn *c = &b->out[i];

		assert_true(bitmap_test(real, c->src));
		assert_int_equal(c->n_messages, sched_conn_messages(s, c->src, c->dst, c->lane));
		assert_int_equal(c->first_bit, bit);
		bit += c->n_messages;
		assert_int_equal(border_find_out(b, c->src, c->dst, c->lane), i);
		assert_int_equal(border_find_in(b, c->src, c->dst, c->lane) >= 0,
				 bitmap_test(real, c->dst));
	}
	assert_int_equal(bit, b->n_out_messages);
	assert_int_equal(border_find_in(b, 0, 0, 0), -1);
	assert_int_equal(border_find_out(b, 1, 0, UINT16_MAX), -1);
}

static void compare(struct model *m, const struct border *b, const uint64_t *arrived)
{
	run_virtual(m);
	for (uint32_t c = 0; c < b->n_in; c++)
		assert_int_equal(allowed(b, c, arrived, 0),
				 conn_of(m, b->in[c].src, b->in[c].dst, b->in[c].lane)->n_sent);
}

/* Real ranks send anything at any time, in order of each connection only. */
static void any_arrivals(const struct sched *s, const struct border *b, const struct bitmap *real,
			 struct rng *r)
{
	static struct model m;
	uint64_t *arrived = calloc(b->n_out + 1, sizeof(*arrived));
	uint64_t left = b->n_out_messages;

	model_init(&m, s, real);
	compare(&m, b, arrived);
	while (left > 0) {
		uint32_t o = (uint32_t)below(r, b->n_out);

		while (arrived[o] == b->out[o].n_messages)
			o = (o + 1) % b->n_out;
		arrived[o]++;
		left--;
		conn_of(&m, b->out[o].src, b->out[o].dst, b->out[o].lane)->n_sent++;
		compare(&m, b, arrived);
	}
	for (uint32_t c = 0; c < b->n_in; c++)
		assert_int_equal(allowed(b, c, arrived, 0), b->in[c].n_messages);
	model_deinit(&m);
	free(arrived);
}

/* Real ranks play their side, and get only what the border allows: all get through. */
static void honest_players(const struct sched *s, const struct border *b, const struct bitmap *real,
			   struct rng *r)
{
	static struct model m;
	uint64_t *arrived = calloc(b->n_out + 1, sizeof(*arrived)), n, n_real_steps = 0;

	model_init(&m, s, real);
	do {
		n = 0;
		for (uint32_t c = 0; c < b->n_in; c++) {
			struct conn *k = conn_of(&m, b->in[c].src, b->in[c].dst, b->in[c].lane);

			k->n_sent = allowed(b, c, arrived, k->n_sent);
		}
		for (uint32_t rank = 0; rank < s->n_ranks; rank++)
			for (uint32_t t = 0; bitmap_test(real, rank) && t < m.n_threads[rank]; t++)
				n += run_thread(&m, rank, t, 1 + below(r, 3));
		for (uint32_t o = 0; o < b->n_out; o++)
			arrived[o] =
				conn_of(&m, b->out[o].src, b->out[o].dst, b->out[o].lane)->n_sent;
		n_real_steps += n;
	} while (n > 0);
	for (uint64_t x = bitmap_next_set(real, 0); x != BITMAP_NONE;
	     x = bitmap_next_set(real, x + 1))
		for (uint32_t t = 0; t < m.n_threads[x]; t++)
			n_real_steps -= sched_n_steps(s, (uint32_t)x, t);
	assert_int_equal(n_real_steps, 0);
	model_deinit(&m);
	free(arrived);
}

/* Random worlds: about @elems elements a channel. */
static struct sched random_sched(unsigned form, struct rng *r)
{
	uint32_t n = 1 + (uint32_t)below(r, MAX);
	struct sched s = {.kind = forms[form].kind,
			  .algo = forms[form].algo,
			  .n_ranks = n,
			  .n_channels = 1 + (uint32_t)below(r, 3),
			  .elem_bytes = 16384,
			  .slices = (uint32_t)below(r, 4),
			  .n_rails = (uint32_t)below(r, 4)};

	do
		s.ranks_per_node = 1 + (uint32_t)below(r, n);
	while (n % s.ranks_per_node);
	s.root = (uint32_t)below(r, n);
	s.bytes = below(r, 12) * s.elem_bytes;
	s.chunk_bytes = (1 + below(r, 4)) * s.elem_bytes;
	if (s.kind == COLL_ALLREDUCE && s.algo == SCHED_RING) {
		s.bytes = below(r, 4 * n) * s.elem_bytes;
		s.chunk_bytes = s.elem_bytes;
	}
	assert_int_equal(sched_init(&s, NULL), 0);
	return s;
}

/* One rank, a node, several nodes, anything, all. */
static void random_real(struct bitmap *real, const struct sched *s, struct rng *r)
{
	uint64_t odds = 1 + below(r, 6), m = s->ranks_per_node;

	assert_int_equal(bitmap_init(real, s->n_ranks), 0);
	switch (below(r, 4)) {
	case 0:
		bitmap_set(real, below(r, s->n_ranks));
		break;
	case 1:
		bitmap_set_range(real, below(r, s->n_ranks / m) * m, m);
		break;
	case 2:
		for (uint32_t node = 0; node < s->n_ranks / m; node++)
			if (below(r, odds) == 0)
				bitmap_set_range(real, node * m, m);
		break;
	default:
		for (uint32_t x = 0; x < s->n_ranks; x++)
			if (below(r, odds) == 0)
				bitmap_set(real, x);
	}
}

static void a_border_gives_the_worlds_answer(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 7, 0);
	for (unsigned f = 0; f < N_FORMS; f++)
		for (int round = 0; round < 60; round++) {
			struct sched s = random_sched(f, &r);
			struct bitmap real;
			struct border b;
			struct err err = {""};

			random_real(&real, &s, &r);
			assert_int_equal(border_make(&s, &real, &b, &err), 0);
			check_shape(&b, &s, &real);
			any_arrivals(&s, &b, &real, &r);
			honest_players(&s, &b, &real, &r);
			border_deinit(&b);
			border_deinit(&b); /* twice is nothing */
			bitmap_deinit(&real);
		}
}

/* A world of 65,536: the border of one node is as small as that of a small world's. */
static void large_worlds_have_small_borders(void **state)
{
	(void)state;
	for (unsigned f = 0; f < N_FORMS; f++) {
		struct sched s = {.kind = forms[f].kind,
				  .algo = forms[f].algo,
				  .n_ranks = 65536,
				  .ranks_per_node = 8,
				  .n_channels = 4,
				  .elem_bytes = 4,
				  .root = 17,
				  .bytes = UINT64_C(1) << 30};
		struct bitmap real;
		struct border b;

		assert_int_equal(sched_init(&s, NULL), 0);
		assert_int_equal(bitmap_init(&real, s.n_ranks), 0);
		bitmap_set_range(&real, 8 * 4001, 8);
		assert_int_equal(border_make(&s, &real, &b, NULL), 0);
		assert_true(s.kind == COLL_ALLTOALL || b.n_in + b.n_out <= 8 * 4 * 4 * 4);
		assert_true(b.dep_start[b.n_in] <= b.n_in * 8);
		if (s.algo == SCHED_RING && s.kind == COLL_ALLREDUCE) {
			int64_t c = border_find_in(&b, 8 * 4001 - 1, 8 * 4001, 3);

			assert_true(c >= 0);
			assert_int_equal(b.dep[b.dep_start[c]].shift, 65536 - 8);
			assert_int_equal(b.out[b.dep[b.dep_start[c]].out].src, 8 * 4001 + 7);
		}
		border_deinit(&b);
		bitmap_deinit(&real);
	}
}

static void wrong_requests_are_refused(void **state)
{
	struct sched s = {.kind = COLL_ALLREDUCE,
			  .n_ranks = 4,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 4,
			  .bytes = 64};
	struct bitmap real;
	struct border b;
	struct err err = {""};

	(void)state;
	assert_int_equal(sched_init(&s, NULL), 0);
	assert_int_equal(bitmap_init(&real, 5), 0);
	assert_int_equal(border_make(&s, &real, &b, &err), -EINVAL);
	assert_non_null(strstr(err.text, "AllReduce over 4 ranks"));
	s.kind = COLL_SENDRECV;
	s.n_ranks = 5;
	assert_int_equal(border_make(&s, &real, &b, NULL), -EINVAL);
	bitmap_deinit(&real);
}

/* --- point-to-point ---------------------------------------------------------------- */

struct calls {
	struct sched_p2p list[MAX][400]; /* two a pair of calls, at most */
	const struct sched_p2p *pointer[MAX];
	uint32_t ranks[MAX], n[MAX], n_real;
};

static void add_call(struct calls *c, const struct bitmap *real, uint32_t rank, uint32_t peer,
		     bool is_send, uint64_t bytes)
{
	for (uint32_t i = 0; i < c->n_real && bitmap_test(real, rank); i++)
		if (c->ranks[i] == rank)
			c->list[i][c->n[i]++] = (struct sched_p2p){.peer = peer,
								   .is_send = is_send,
								   .bytes = bytes};
}

/* Each call's messages are a connection; those between real ranks depend on their
 * arrival, others on nothing. Counted and compared one by one. */
static void check_p2p(const struct calls *c, const struct bitmap *real, const struct border *b,
		      uint64_t chunk)
{
	uint64_t n_in = 0, n_out = 0;

	for (uint32_t i = 0; i < c->n_real; i++) {
		for (uint32_t k = 0; k < c->n[i]; k++) {
			const struct sched_p2p *call = &c->list[i][k];
			uint32_t lane = 0, rank = c->ranks[i];
			const struct border_conn *conn;
			uint64_t left = call->bytes;
			int64_t at;

			if (call->bytes == 0 || call->peer == rank)
				continue;
			for (uint32_t j = 0; j < k; j++)
				lane += c->list[i][j].peer == call->peer && c->list[i][j].bytes &&
					c->list[i][j].is_send == call->is_send;
			at = call->is_send ? border_find_out(b, rank, call->peer, (uint16_t)lane)
					   : border_find_in(b, call->peer, rank, (uint16_t)lane);
			assert_true(at >= 0);
			conn = call->is_send ? &b->out[at] : &b->in[at];
			assert_int_equal(conn->bytes, call->bytes);
			for (uint64_t m = 0; m < conn->n_messages; m++) {
				uint64_t want = left < chunk ? left : chunk;

				assert_true(want > 0);
				assert_int_equal(border_message_bytes(b, NULL, conn, m), want);
				left -= want;
			}
			assert_int_equal(left, 0);
			assert_int_equal(border_message_bytes(b, NULL, conn, conn->n_messages), 0);
			n_in += !call->is_send;
			n_out += call->is_send;
		}
	}
	assert_int_equal(b->n_in, n_in);
	assert_int_equal(b->n_out, n_out);
	for (uint32_t i = 0; i < b->n_in; i++) {
		uint32_t n = b->dep_start[i + 1] - b->dep_start[i];
		const struct border_dep *d = &b->dep[b->dep_start[i]];

		assert_int_equal(n, bitmap_test(real, b->in[i].src));
		if (n == 0)
			continue;
		assert_int_equal(d->shift, 0);
		assert_int_equal(b->out[d->out].src, b->in[i].src);
		assert_int_equal(b->out[d->out].dst, b->in[i].dst);
		assert_int_equal(b->out[d->out].lane, b->in[i].lane);
	}
}

static void random_calls_have_the_border_of_a_plain_model(void **state)
{
	static struct calls c;
	struct rng r;

	(void)state;
	rng_seed(&r, 9, 0);
	for (int round = 0; round < 400; round++) {
		uint32_t n = 1 + (uint32_t)below(&r, MAX);
		uint64_t chunk = 1 + below(&r, 50), n_pairs = below(&r, 200);
		struct bitmap real;
		struct border b;
		struct err err = {""};
		struct sched s = {.n_ranks = n, .ranks_per_node = 1};

		memset(&c, 0, sizeof(c));
		random_real(&real, &s, &r);
		for (uint64_t x = bitmap_next_set(&real, 0); x != BITMAP_NONE;
		     x = bitmap_next_set(&real, x + 1)) {
			c.pointer[c.n_real] = c.list[c.n_real];
			c.ranks[c.n_real++] = (uint32_t)x;
		}
		for (uint64_t i = 0; i < n_pairs; i++) {
			uint32_t src = (uint32_t)below(&r, n), dst = (uint32_t)below(&r, n);
			uint64_t bytes = below(&r, 3) ? below(&r, 300) : 0;

			add_call(&c, &real, src, dst, true, bytes);
			add_call(&c, &real, dst, src, false, bytes);
		}
		assert_int_equal(border_make_p2p(c.ranks, c.n_real, c.pointer, c.n, chunk, &real,
						 &b, &err),
				 0);
		check_p2p(&c, &real, &b, chunk);
		border_deinit(&b);
		bitmap_deinit(&real);
	}
}

static void expect_refusal(struct calls *c, const struct bitmap *real, int code, const char *word)
{
	struct border b;
	struct err err = {""};

	for (uint32_t i = 0; i < c->n_real; i++)
		c->pointer[i] = c->list[i];
	assert_int_equal(border_make_p2p(c->ranks, c->n_real, c->pointer, c->n, 0, real, &b, &err),
			 -code);
	assert_non_null(strstr(err.text, word));
}

static void calls_must_match(void **state)
{
	static const struct calls two = {.ranks = {1, 2}, .n_real = 2};
	static struct calls c;
	struct bitmap real;

	(void)state;
	assert_int_equal(bitmap_init(&real, 4), 0);
	bitmap_set(&real, 1);
	bitmap_set(&real, 2);
	c = two, add_call(&c, &real, 1, 2, true, 8);
	expect_refusal(&c, &real, EPROTO, "no receive");
	c = two, add_call(&c, &real, 1, 2, false, 8);
	expect_refusal(&c, &real, EPROTO, "no send");
	c = two, add_call(&c, &real, 1, 2, true, 8), add_call(&c, &real, 2, 1, false, 9);
	expect_refusal(&c, &real, EPROTO, "rank 1 sends 8 bytes to rank 2");
	c = two, add_call(&c, &real, 1, 1, true, 8);
	expect_refusal(&c, &real, EINVAL, "itself");
	c = two, add_call(&c, &real, 1, 4, true, 8);
	expect_refusal(&c, &real, EINVAL, "4 ranks");
	c = two, c.ranks[1] = 7;
	expect_refusal(&c, &real, EINVAL, "4 ranks");
	bitmap_deinit(&real);
}

/* A record makes the calls of a rank without a process: nobody sends its messages. */
static void a_rank_without_a_process_has_no_border(void **state)
{
	struct calls c = {.ranks = {1, 3}, .n_real = 2};
	struct err err = {""};
	struct bitmap real;
	struct border b;

	(void)state;
	assert_int_equal(bitmap_init(&real, 4), 0);
	bitmap_set(&real, 1);
	for (uint32_t i = 0; i < 2; i++) {
		c.pointer[i] = c.list[i];
		c.n[i] = 1;
		c.list[i][0] =
			(struct sched_p2p){.peer = c.ranks[1 - i], .is_send = i == 1, .bytes = 8};
	}
	assert_int_equal(border_make_p2p(c.ranks, 2, c.pointer, c.n, 0, &real, &b, &err), 0);
	assert_int_equal(b.n_in, 1);
	assert_int_equal(b.in[0].src, 3);
	assert_int_equal(b.n_out, 0);
	border_deinit(&b);
	bitmap_deinit(&real);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_border_gives_the_worlds_answer),
		cmocka_unit_test(large_worlds_have_small_borders),
		cmocka_unit_test(wrong_requests_are_refused),
		cmocka_unit_test(random_calls_have_the_border_of_a_plain_model),
		cmocka_unit_test(calls_must_match),
		cmocka_unit_test(a_rank_without_a_process_has_no_border),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
