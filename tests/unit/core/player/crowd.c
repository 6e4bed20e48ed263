/* See crowd.h. */
#include "crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD INT64_C(0x5ca1ab1e0ddba11)
#define WORD sizeof(int64_t)

static void sum(const struct player_data *d, void *dst, const void *a, const void *b,
		uint64_t bytes)
{
	uint64_t i;

	(void)d;
	for (i = 0; i < bytes / WORD; i++)
		((int64_t *)dst)[i] = ((const int64_t *)a)[i] + ((const int64_t *)b)[i];
}

static void triple(const struct player_data *d, void *dst, const void *src, uint64_t bytes)
{
	uint64_t i;

	(void)d;
	for (i = 0; i < bytes / WORD; i++)
		((int64_t *)dst)[i] = 3 * ((const int64_t *)src)[i];
}

static void add_seven(const struct player_data *d, void *buf, uint64_t bytes)
{
	uint64_t i;

	(void)d;
	for (i = 0; i < bytes / WORD; i++)
		((int64_t *)buf)[i] += 7;
}

static uint64_t pick(struct crowd *c, uint64_t n)
{
	return rng_u64(&c->rng) % n;
}

static bool reduces(uint32_t kind)
{
	return kind == COLL_ALLREDUCE || kind == COLL_REDUCE || kind == COLL_REDUCESCATTER;
}

/* --- what must come out ------------------------------------------------------------ */

static int64_t contribution(const struct crowd *c, uint32_t rank, uint64_t word)
{
	int64_t v = c->input[rank][word];

	return c->has_pre ? 3 * v : v;
}

static int64_t total(const struct crowd *c, uint64_t word)
{
	int64_t v = c->has_post ? 7 : 0;
	uint32_t r;

	for (r = 0; r < c->n; r++)
		v += contribution(c, r, word);
	return v;
}

static void expect_p2p(struct crowd *c, uint32_t r)
{
	uint32_t i, k, seen_i, seen_k, peer;

	for (i = 0; i < c->sched[r].n_p2p; i++) {
		const struct sched_p2p *get = &c->p2p[r][i];

		if (get->is_send)
			continue;
		/* the k-th receive from a peer gets its k-th send to us */
		peer = get->peer;
		for (k = 0, seen_i = 0; k < i; k++)
			seen_i += !c->p2p[r][k].is_send && c->p2p[r][k].peer == peer;
		for (k = 0, seen_k = 0; k < c->sched[peer].n_p2p; k++) {
			const struct sched_p2p *put = &c->p2p[peer][k];

			if (!put->is_send || put->peer != r || seen_k++ != seen_i)
				continue;
			memcpy((char *)c->expected[r] + get->off, (char *)c->input[peer] + put->off,
			       get->bytes);
		}
	}
}

static void expect(struct crowd *c, uint32_t r)
{
	const struct sched *s = &c->sched[0];
	uint64_t w = s->bytes / WORD, i;
	int64_t *out = c->expected[r];
	uint32_t peer;

	for (i = 0; i < c->n_output[r]; i++)
		out[i] = GUARD;
	for (i = 0; i < w; i++) {
		switch ((uint32_t)s->kind) {
		case COLL_ALLREDUCE:
			out[i] = total(c, i);
			break;
		case COLL_REDUCE:
			if (r == s->root)
				out[i] = total(c, i);
			break;
		case COLL_REDUCESCATTER:
			out[i] = total(c, r * w + i);
			break;
		case COLL_BROADCAST:
			out[i] = c->input[s->root][i];
			break;
		case COLL_SCATTER:
			out[i] = c->input[s->root][r * w + i];
			break;
		case COLL_ALLTOALL:
			for (peer = 0; peer < c->n; peer++)
				out[peer * w + i] = c->input[peer][r * w + i];
			break;
		case COLL_ALLGATHER:
		case COLL_GATHER:
			for (peer = 0; peer < c->n && (s->kind != COLL_GATHER || r == s->root);
			     peer++)
				out[peer * w + i] = c->input[peer][i];
			break;
		default:
			break;
		}
	}
	if (s->kind == COLL_SENDRECV)
		expect_p2p(c, r);
}

/* --- a random op ------------------------------------------------------------------- */

/* Random calls of all ranks that match: call j of the list sends from one rank to
 * another; each rank gets its own in that order. */
static void make_calls(struct crowd *c)
{
	uint32_t n_calls = (uint32_t)pick(c, 3 * c->n + 1), j, r, side;
	uint64_t n_in[CROWD_MAX] = {0}, n_out[CROWD_MAX] = {0};

	for (r = 0; r < c->n; r++) {
		c->p2p[r] = calloc(2 * n_calls + 1, sizeof(*c->p2p[r]));
		assert_non_null(c->p2p[r]);
	}
	for (j = 0; j < n_calls; j++) {
		uint32_t rank[2] = {(uint32_t)pick(c, c->n), (uint32_t)pick(c, c->n)};
		uint64_t bytes = WORD * pick(c, pick(c, 3) ? 40 : 2000);

		for (side = 0; side < 2; side++) {
			struct sched *s = &c->sched[rank[side]];
			uint64_t *off = side ? &n_out[rank[1]] : &n_in[rank[0]];

			c->p2p[rank[side]][s->n_p2p++] = (struct sched_p2p){.peer = rank[!side],
									    .is_send = side == 0,
									    .bytes = bytes,
									    .off = *off};
			*off += bytes;
		}
	}
	for (r = 0; r < c->n; r++) {
		c->sched[r].p2p = c->p2p[r];
		c->sched[r].p2p_rank = r;
		c->n_input[r] = n_in[r] / WORD;
		c->n_output[r] = n_out[r] / WORD;
	}
}

static struct sched random_request(struct crowd *c)
{
	static const uint32_t algos[COLL_KINDS][2] = {
		[COLL_ALLREDUCE] = {SCHED_RING, SCHED_TREE},
		[COLL_ALLGATHER] = {SCHED_RING, SCHED_RING},
		[COLL_REDUCESCATTER] = {SCHED_RING, SCHED_RING},
		[COLL_BROADCAST] = {SCHED_CHAIN, SCHED_RING},
		[COLL_REDUCE] = {SCHED_CHAIN, SCHED_RING},
		[COLL_ALLTOALL] = {SCHED_DIRECT, SCHED_DIRECT},
		[COLL_GATHER] = {SCHED_DIRECT, SCHED_DIRECT},
		[COLL_SCATTER] = {SCHED_DIRECT, SCHED_DIRECT},
		[COLL_SENDRECV] = {SCHED_DIRECT, SCHED_DIRECT},
	};
	struct sched s = {.kind = (enum coll_kind)pick(c, COLL_KINDS), .n_ranks = c->n};

	s.algo = algos[s.kind][pick(c, 2)];
	s.root = (uint32_t)pick(c, c->n);
	do
		s.ranks_per_node = 1 + (uint32_t)pick(c, c->n);
	while (c->n % s.ranks_per_node);
	s.n_channels = 1 + (uint32_t)pick(c, 3);
	s.elem_bytes = WORD;
	s.bytes = s.kind == COLL_SENDRECV ? 0 : WORD * pick(c, pick(c, 2) ? 20 : 5000);
	s.chunk_bytes = pick(c, 3) ? 64 * (1 + pick(c, 100)) : 0;
	s.slices = (uint32_t)pick(c, 4);
	return s;
}

/* NCCL's in-place forms: where in the big buffer the small one lies. */
static void place(struct crowd *c, uint32_t r)
{
	uint64_t w = c->sched[0].bytes / WORD;
	uint32_t kind = c->sched[0].kind;

	if (!c->in_place)
		return;
	if (kind == COLL_ALLGATHER || kind == COLL_GATHER) {
		if (c->n_output[r])
			memcpy(c->output[r] + r * w, c->input[r], w * WORD);
	} else if (kind == COLL_ALLREDUCE || kind == COLL_REDUCE || kind == COLL_BROADCAST) {
		if (c->n_output[r] && c->n_input[r])
			memcpy(c->output[r], c->input[r], w * WORD);
	}
}

static void data_init(struct crowd *c, uint32_t r)
{
	struct player_data *d = &c->data[r];
	uint32_t kind = c->sched[0].kind;
	uint64_t w = c->sched[0].bytes / WORD;

	d->input = c->input[r];
	d->output = c->n_output[r] ? c->output[r] : NULL;
	d->reduce = sum;
	d->pre = c->has_pre ? triple : NULL;
	d->post = c->has_post ? add_seven : NULL;
	if (!c->in_place)
		return;
	switch (kind) {
	case COLL_ALLREDUCE:
	case COLL_REDUCE:
	case COLL_BROADCAST:
		if (c->n_output[r] && c->n_input[r])
			d->input = c->output[r];
		break;
	case COLL_ALLGATHER:
	case COLL_GATHER:
		if (c->n_output[r])
			d->input = c->output[r] + r * w;
		break;
	case COLL_SCATTER:
	case COLL_REDUCESCATTER:
		if (!c->n_input[r]) /* a Scatter's other ranks */
			break;
		/* the output lies in the input; crowd_check() looks at it there */
		memcpy(c->output[r], c->input[r], c->n_input[r] * WORD);
		d->input = c->output[r];
		d->output = c->output[r] + r * w;
		break;
	default:
		break;
	}
}

void crowd_init(struct crowd *c, uint64_t seed)
{
	struct err err;
	struct sched s;
	uint64_t i;
	uint32_t r;

	memset(c, 0, sizeof(*c));
	rng_seed(&c->rng, seed, 0);
	c->n = 1 + (uint32_t)pick(c, CROWD_MAX);
	s = random_request(c);
	for (r = 0; r < c->n; r++)
		c->sched[r] = s;
	c->in_place = pick(c, 2) && s.kind != COLL_ALLTOALL && s.kind != COLL_SENDRECV;
	c->has_pre = reduces(s.kind) && pick(c, 2);
	c->has_post = reduces(s.kind) && pick(c, 2);
	if (s.kind == COLL_SENDRECV)
		make_calls(c);
	for (r = 0; r < c->n; r++) {
		if (sched_init(&c->sched[r], &err)) {
			/* this algorithm does not do this kind: the default does */
			c->sched[r].algo = sched_default_algo(s.kind);
			assert_int_equal(sched_init(&c->sched[r], &err), 0);
		}
		if (s.kind != COLL_SENDRECV) {
			c->n_input[r] = coll_input_bytes(s.kind, s.bytes, c->n, r == s.root) / WORD;
			c->n_output[r] =
				coll_output_bytes(s.kind, s.bytes, c->n, r == s.root) / WORD;
		}
		i = (c->n_input[r] + c->n_output[r] + 1) * WORD;
		c->input[r] = malloc(i);
		c->output[r] = malloc(i);
		c->expected[r] = malloc(i);
		assert_true(c->input[r] && c->output[r] && c->expected[r]);
		for (i = 0; i < c->n_input[r]; i++)
			c->input[r][i] = (int64_t)(rng_u64(&c->rng) >> 20);
		for (i = 0; i < c->n_output[r]; i++)
			c->output[r][i] = GUARD;
	}
	for (r = 0; r < c->n; r++)
		place(c, r);
	for (r = 0; r < c->n; r++)
		expect(c, r);
	for (r = 0; r < c->n; r++)
		data_init(c, r);
}

void crowd_deinit(struct crowd *c)
{
	uint32_t r;

	for (r = 0; r < c->n; r++) {
		c->player[r] = player_free(c->player[r]);
		free(c->p2p[r]);
		free(c->input[r]);
		free(c->output[r]);
		free(c->expected[r]);
	}
}

void crowd_print(const struct crowd *c)
{
	const struct sched *s = &c->sched[0];
	char where[200];
	uint32_t r;

	fprintf(stderr,
		"# %s %s n %u root %u per node %u channels %u bytes %lu chunk %lu "
		"slices %u%s%s%s\n",
		coll_kind_name(s->kind), sched_algo_name(s->algo), c->n, s->root, s->ranks_per_node,
		s->n_channels, (unsigned long)s->bytes, (unsigned long)s->chunk_bytes, s->slices,
		c->in_place ? " in place" : "", c->has_pre ? " pre" : "",
		c->has_post ? " post" : "");
	for (r = 0; r < c->n; r++) {
		if (!c->player[r])
			continue;
		player_describe(c->player[r], where, sizeof(where));
		fprintf(stderr, "# rank %u: %s\n", r, where);
	}
}

void crowd_check(const struct crowd *c)
{
	uint64_t i, wrong = 0;
	uint32_t r;

	for (r = 0; r < c->n; r++) {
		const int64_t *out = c->data[r].output;

		wrong += !player_done(c->player[r]);
		for (i = 0; i < c->n_output[r]; i++)
			wrong += out[i] != c->expected[r][i];
	}
	if (wrong)
		crowd_print(c);
	assert_int_equal(wrong, 0);
}
