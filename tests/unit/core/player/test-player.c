/* The player against an obvious reduction: all ranks of random worlds play with real
 * numbers through an in-memory io that delivers and completes in random order. */
#include <stdint.h>

#include "cmocka-all.h"
#include "rng.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "player/player.h"

#define RANKS_MAX 9

struct message {
	struct message *next;
	unsigned char *bytes; /* the copy on the wire; NULL: a receive's place */
	void *dst;
	const void *src;
	uint64_t n, index;
	int is_sent, is_received;
};

struct conn {
	uint32_t src, dst;
	uint16_t lane;
	struct message *sent, *posted; /* queues */
};

struct world;
struct endpoint {
	struct world *w;
	uint32_t rank;
	struct sched s;
	struct player *p;
	struct player_data data;
};

struct world {
	struct endpoint ends[RANKS_MAX];
	struct conn conns[4096];
	uint32_t n_ranks, n_conns;
	uint64_t n_sent, n_delivered;
	int has_data;
};

static struct conn *conn_of(struct world *w, uint32_t src, uint32_t dst, uint16_t lane)
{
	for (uint32_t i = 0; i < w->n_conns; i++)
		if (w->conns[i].src == src && w->conns[i].dst == dst && w->conns[i].lane == lane)
			return &w->conns[i];
	assert_true(w->n_conns < 4096);
	w->conns[w->n_conns] = (struct conn){.src = src, .dst = dst, .lane = lane};
	return &w->conns[w->n_conns++];
}

static void append(struct message **queue, struct message *m)
{
	while (*queue)
		queue = &(*queue)->next;
	*queue = m;
}

static int io_send(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		   uint64_t bytes)
{
	struct endpoint *e = owner;
	struct message *m = calloc(1, sizeof(*m));

	assert_int_equal(src != NULL, e->w->has_data);
	m->src = src;
	m->n = bytes;
	m->index = index;
	append(&conn_of(e->w, e->rank, peer, lane)->sent, m);
	e->w->n_sent++;
	return 0;
}

static int io_post(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		   uint64_t bytes)
{
	struct endpoint *e = owner;
	struct message *m = calloc(1, sizeof(*m));

	m->dst = dst;
	m->n = bytes;
	m->index = index;
	append(&conn_of(e->w, peer, e->rank, lane)->posted, m);
	return 0;
}

static const struct player_io io = {io_send, io_post};

/* One random thing that can happen: a message leaves its buffer, or arrives. */
static int step_world(struct world *w, struct rng *rng)
{
	uint32_t from = w->n_conns ? (uint32_t)(rng_u64(rng) % w->n_conns) : 0;

	for (uint32_t i = 0; i < w->n_conns; i++) {
		struct conn *c = &w->conns[(from + i) % w->n_conns];
		struct message *m = c->sent, *post = c->posted;
		struct err err;

		while (m && m->bytes && rng_u64(rng) % 2)
			m = m->next;
		if (m && !m->bytes) { /* leaves */
			m->bytes = malloc(m->n + 1);
			if (m->n && m->src)
				memcpy(m->bytes, m->src, m->n);
			assert_int_equal(player_sent(w->ends[c->src].p, c->dst, c->lane, m->index,
						     &err),
					 0);
			return 1;
		}
		m = c->sent;
		if (m && m->bytes && post) {
			assert_int_equal(m->n, post->n);
			assert_int_equal(m->index, post->index);
			if (m->n && post->dst)
				memcpy(post->dst, m->bytes, m->n);
			c->sent = m->next;
			c->posted = post->next;
			w->n_delivered++;
			assert_int_equal(player_received(w->ends[c->dst].p, c->src, c->lane,
							 m->index, &err),
					 0);
			free(m->bytes);
			free(m);
			free(post);
			return 1;
		}
	}
	return 0;
}

static void sum_u32(const struct player_data *d, void *dst, const void *a, const void *b,
		    uint64_t bytes)
{
	uint32_t *to = dst;
	const uint32_t *x = a, *y = b;

	(void)d;
	for (uint64_t i = 0; i < bytes / 4; i++)
		to[i] = x[i] + y[i];
}

static void times_three(const struct player_data *d, void *dst, const void *src, uint64_t bytes)
{
	uint32_t *to = dst;
	const uint32_t *from = src;

	(void)d;
	for (uint64_t i = 0; i < bytes / 4; i++)
		to[i] = 3 * from[i];
}

static void plus_one(const struct player_data *d, void *buf, uint64_t bytes)
{
	uint32_t *x = buf;

	(void)d;
	for (uint64_t i = 0; i < bytes / 4; i++)
		x[i] += 1;
}

static uint32_t value(uint32_t rank, uint64_t i)
{
	return rank * 1000003u + (uint32_t)i * 7919u + 1;
}

/* What element @i of rank @rank's output must be; *ret_any when nothing is promised. */
static uint32_t expected(const struct sched *s, uint32_t rank, uint64_t i, int scaled, int *ret_any)
{
	uint64_t block = s->bytes / 4;
	uint32_t n = s->n_ranks, sum = 0;

	*ret_any = 0;
	switch (s->kind) {
	case COLL_REDUCE:
		*ret_any = rank != s->root;
		__attribute__((fallthrough));
	case COLL_ALLREDUCE:
	case COLL_REDUCESCATTER:
		if (s->kind == COLL_REDUCESCATTER)
			i += rank * block;
		for (uint32_t r = 0; r < n; r++)
			sum += value(r, i) * (scaled ? 3 : 1);
		return sum + (scaled ? 1 : 0);
	case COLL_ALLGATHER:
		return value((uint32_t)(i / block), i % block);
	case COLL_BROADCAST:
		return value(s->root, i);
	case COLL_ALLTOALL:
		return value((uint32_t)(i / block), rank * block + i % block);
	case COLL_GATHER:
		return value((uint32_t)(i / block), i % block);
	case COLL_SCATTER:
		return value(s->root, rank * block + i);
	case COLL_SENDRECV:
	case COLL_KINDS:
	default:
		abort();
	}
}

static void play(struct sched s, int has_data, int scaled, int in_place, struct rng *rng)
{
	struct world *w = calloc(1, sizeof(*w));
	uint32_t *in[RANKS_MAX], *out[RANKS_MAX];
	struct err err;

	w->n_ranks = s.n_ranks;
	w->has_data = has_data;
	for (uint32_t r = 0; r < s.n_ranks; r++) {
		struct endpoint *e = &w->ends[r];
		int is_root = r == s.root;
		uint64_t n_in = coll_input_bytes(s.kind, s.bytes, s.n_ranks, is_root) / 4;
		uint64_t n_out = coll_output_bytes(s.kind, s.bytes, s.n_ranks, is_root) / 4;

		in[r] = calloc((n_in > n_out ? n_in : n_out) + 1, 4);
		for (uint64_t i = 0; i < n_in; i++)
			in[r][i] = value(r, i);
		out[r] = in_place ? in[r] : calloc(n_out + 1, 4);
		e->w = w;
		e->rank = r;
		e->s = s;
		assert_int_equal(sched_init(&e->s, &err), 0);
		e->data = (struct player_data){.input = in[r],
					       .output = out[r],
					       .reduce = sum_u32,
					       .pre = scaled ? times_three : NULL,
					       .post = scaled ? plus_one : NULL};
	}
	for (uint32_t r = 0; r < s.n_ranks; r++)
		assert_int_equal(player_start(&w->ends[r].p, &w->ends[r].s, r,
					      has_data ? &w->ends[r].data : NULL, &io, &w->ends[r]),
				 0);
	while (step_world(w, rng))
		;
	assert_int_equal(w->n_sent, w->n_delivered);
	assert_int_equal(w->n_sent, sched_total_messages(&w->ends[0].s));
	for (uint32_t r = 0; r < s.n_ranks; r++) {
		uint64_t n_out = coll_output_bytes(s.kind, s.bytes, s.n_ranks, r == s.root) / 4;

		assert_true(player_done(w->ends[r].p));
		for (uint64_t i = 0; has_data && i < n_out; i++) {
			int any;
			uint32_t want = expected(&s, r, i, scaled, &any);

			if (!any)
				assert_int_equal(out[r][i], want);
		}
		w->ends[r].p = player_free(w->ends[r].p);
		if (!in_place)
			free(out[r]);
		free(in[r]);
	}
	free(w);
}

static struct sched random_sched(struct rng *rng, enum coll_kind kind, enum sched_algo algo)
{
	struct sched s = {.kind = kind, .algo = algo, .elem_bytes = 4};

	s.n_ranks = 1 + (uint32_t)(rng_u64(rng) % RANKS_MAX);
	s.root = (uint32_t)(rng_u64(rng) % s.n_ranks);
	s.ranks_per_node = s.n_ranks % 2 == 0 && rng_u64(rng) % 2 ? 2 : s.n_ranks % 3 == 0 ? 3 : 1;
	s.n_channels = 1 + (uint32_t)(rng_u64(rng) % 3);
	s.slices = 1 + (uint32_t)(rng_u64(rng) % 2);
	s.bytes = rng_u64(rng) % 400 * 4;
	s.chunk_bytes = 64 + rng_u64(rng) % 64 * 4;
	return s;
}

static const struct {
	enum coll_kind kind;
	enum sched_algo algo;
	int reduces, in_place;
} cases[] = {
	{COLL_ALLREDUCE, SCHED_RING, 1, 1},  {COLL_ALLREDUCE, SCHED_TREE, 1, 1},
	{COLL_ALLGATHER, SCHED_RING, 0, 0},  {COLL_REDUCESCATTER, SCHED_RING, 1, 0},
	{COLL_BROADCAST, SCHED_CHAIN, 0, 1}, {COLL_REDUCE, SCHED_CHAIN, 1, 1},
	{COLL_BROADCAST, SCHED_RING, 0, 1},  {COLL_REDUCE, SCHED_RING, 1, 1},
	{COLL_ALLTOALL, SCHED_DIRECT, 0, 0}, {COLL_GATHER, SCHED_DIRECT, 0, 0},
	{COLL_SCATTER, SCHED_DIRECT, 0, 0},
};

static void test_every_collective_in_every_order(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 20, 1);
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++)
		for (int round = 0; round < 60; round++) {
			struct sched s = random_sched(&rng, cases[c].kind, cases[c].algo);

			play(s, 1, cases[c].reduces && round % 3 == 0,
			     cases[c].in_place && round % 2, &rng);
		}
}

static void test_without_data_only_messages(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 21, 1);
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++)
		for (int round = 0; round < 10; round++)
			play(random_sched(&rng, cases[c].kind, cases[c].algo), 0, 0, 0, &rng);
}

static int count_send(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		      uint64_t bytes)
{
	(void)peer, (void)lane, (void)index, (void)src, (void)bytes;
	++*(int *)owner;
	return 0;
}

static int no_post(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		   uint64_t bytes)
{
	(void)owner, (void)peer, (void)lane, (void)index, (void)dst, (void)bytes;
	return 0;
}

static int failing_post(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
			uint64_t bytes)
{
	no_post(owner, peer, lane, index, dst, bytes);
	return -ECONNRESET;
}

static void test_unexpected_messages_are_named(void **state)
{
	struct sched s = {.kind = COLL_ALLREDUCE,
			  .algo = SCHED_RING,
			  .elem_bytes = 4,
			  .n_ranks = 4,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .bytes = 64};
	const struct player_io counting = {count_send, no_post};
	struct player *p;
	struct err err;
	int sends = 0;

	(void)state;
	assert_int_equal(sched_init(&s, &err), 0);
	assert_int_equal(player_start(&p, &s, 1, NULL, &counting, &sends), 0);
	assert_int_equal(sends, 1);
	assert_int_equal(player_received(p, 2, 0, 0, &err), PLAYER_UNEXPECTED); /* not from there */
	assert_int_equal(player_received(p, 9999, 0, 0, &err), PLAYER_UNEXPECTED);
	assert_int_equal(player_received(p, 0, 7, 0, &err), PLAYER_UNEXPECTED);
	assert_int_equal(player_received(p, 0, 0, 5, &err), PLAYER_UNEXPECTED); /* too early */
	assert_non_null(strstr(err.text, "waits"));
	assert_int_equal(player_received(p, 0, 0, 0, &err), 0);
	assert_int_equal(player_received(p, 0, 0, 0, &err), PLAYER_UNEXPECTED); /* twice */
	assert_int_equal(player_sent(p, 2, 0, 0, &err), 0);
	assert_int_equal(player_sent(p, 2, 0, 0, &err), PLAYER_UNEXPECTED); /* twice */
	assert_int_equal(player_n_received(p), 1);
	assert_int_equal(player_n_sent(p), 1);
	assert_false(player_done(p));
	player_free(p);
}

static void test_a_failing_io_ends_the_start(void **state)
{
	struct sched s = {.kind = COLL_ALLREDUCE,
			  .algo = SCHED_RING,
			  .elem_bytes = 4,
			  .n_ranks = 2,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .bytes = 64};
	const struct player_io failing = {count_send, failing_post};
	struct player *p = NULL;
	struct err err;
	int sends = 0;

	(void)state;
	assert_int_equal(sched_init(&s, &err), 0);
	assert_int_equal(player_start(&p, &s, 0, NULL, &failing, &sends), -ECONNRESET);
	assert_null(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_collective_in_every_order),
		cmocka_unit_test(test_without_data_only_messages),
		cmocka_unit_test(test_unexpected_messages_are_named),
		cmocka_unit_test(test_a_failing_io_ends_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
