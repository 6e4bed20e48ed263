/* See p2p.h. A run's ranks are those of its posts; two posts of one rank (of different streams) are
 * one list of calls to it. */
#include "op/p2p.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "engine/border-p2p.h"
#include "engine/solve-p2p.h"
#include "op/alltoall.h"
#include "op/ideal.h"
#include "op/images.h"
#include "op/messages.h"
#include "op/moment.h"
#include "op/p2p-start.h"
#include "op/resharding.h"

int p2p_define(struct op *op, const struct wire_arrive *a, const char *list, struct err *err)
{
	const struct config *config = op->comm->ops->config;
	struct comm *c = op->comm;
	struct p2p *p2p = calloc(1, sizeof(*p2p));
	uint32_t n = a->n_p2p;
	int r;

	op->p2p = p2p;
	op->flows = calloc((size_t)n + 1, sizeof(*op->flows));
	if (p2p) {
		p2p->pair.calls = calloc((size_t)n + 1, sizeof(*p2p->pair.calls));
		p2p->calls = calloc((size_t)n + 1, sizeof(*p2p->calls));
	}
	if (!p2p || !op->flows || !p2p->pair.calls || !p2p->calls)
		return err_set(err, ENOMEM, "out of memory");
	p2p->op = op;
	p2p->pair.rank = op->posts[0].member->rank;
	p2p->pair.is_onesided = a->flags & WIRE_ARRIVE_ONESIDED;
	p2p->pair.n_calls = op->n_flows = n;
	for (uint32_t i = 0; i < n; i++) {
		struct wire_p2p p;

		memcpy(&p, list + i * sizeof(p), sizeof(p));
		if (p2p->pair.is_onesided && p.bytes < WIRE_SIGNAL_BYTES)
			p.bytes = WIRE_SIGNAL_BYTES;
		if (p.peer >= c->n_ranks)
			return err_set(err, EPROTO, "a call to rank %u of %u ranks", p.peer,
				       c->n_ranks);
		p2p->calls[i] =
			(struct sched_p2p){.peer = p.peer, .is_send = p.is_send, .bytes = p.bytes};
		p2p->pair.calls[i] =
			(struct pair_call){.peer = p.peer, .is_send = p.is_send, .bytes = p.bytes};
	}
	p2p->sched = (struct sched){
		.kind = COLL_SENDRECV,
		.algo = (enum sched_algo)config->algo[COLL_SENDRECV],
		.n_ranks = c->n_ranks,
		.ranks_per_node = c->ranks_per_node,
		.n_channels = config->channels,
		.elem_bytes = (uint32_t)coll_dtype_bytes(a->dtype),
		.chunk_bytes = config->chunk_bytes,
		.p2p = p2p->calls,
		.n_p2p = n,
		.p2p_rank = p2p->pair.rank,
	};
	op->sched = &p2p->sched;
	r = sched_init(&p2p->sched, err);
	if (r == 0 && !p2p->pair.is_onesided && (resharding_find(op) < 0 || alltoall_find(op) < 0))
		return err_set(err, ENOMEM, "out of memory");
	return r < 0 ? r : call_check_bytes(c, &p2p->sched, err);
}

/* --- the calls of a run ---------------------------------------------------------------- */

struct calls_of_run {
	struct sched_p2p *calls; /* of all its posts, by rank */
	struct run_end *ends;    /* whose call each of them is */
	uint32_t n_calls;
	uint32_t *ranks, *n_by_rank; /* n_ranks of them */
	const struct sched_p2p **by_rank;
	uint32_t n_ranks;
	struct matrix_calls matrix;
	struct p2p_calls played; /* these, or the matrix's; borrowed */
};

static void calls_of_run_deinit(struct calls_of_run *x)
{
	free(x->calls);
	free(x->ends);
	free(x->ranks);
	free(x->n_by_rank);
	free(x->by_rank);
	matrix_calls_deinit(&x->matrix);
}

/* Return: 0 or -ENOMEM. */
static int claim(struct run *run, struct calls_of_run *x, struct pair_post *pair, uint32_t call)
{
	struct op *op = container_of(pair, struct p2p, pair)->op;
	struct post **posts;

	if (call < pair->n_calls) {
		op->flows[call].turn = run->turn;
		op->flows[call].run = run;
		pair->n_unplayed -= pair->calls[call].pair != NULL;
		op->p2p->calls[call].bytes = pair->calls[call].bytes; /* a wait's are known now */
		x->n_calls++;
	}
	if (op->turn == run->turn)
		return 0;
	posts = realloc(run->posts, (run->n_posts + 1) * sizeof(struct post *));
	if (!posts)
		return -ENOMEM;
	run->posts = posts;
	posts[run->n_posts++] = &op->posts[0];
	op->turn = run->turn;
	return 0;
}

/* Marks the calls that the run plays, and lists their posts. */
static int claim_ready(struct run *run, struct calls_of_run *x, struct pair_post *ready)
{
	int r = 0;

	for (; r == 0 && ready; ready = ready->next_ready) {
		const struct op *op = container_of(ready, struct p2p, pair)->op;

		r = claim(run, x, ready, UINT32_MAX); /* it may be without calls */
		for (uint32_t i = 0; r == 0 && i < ready->n_calls; i++) {
			struct pair_call *other = ready->calls[i].pair;

			if (op->flows[i].turn || ready->calls[i].is_waiting)
				continue; /* a put: the run of who waits for it has it */
			r = claim(run, x, ready, i);
			if (r < 0 || !other)
				continue;
			r = claim(run, x, other->post, (uint32_t)(other - other->post->calls));
		}
	}
	return r;
}

/* By member, then seq. */
static int compare_posts(const void *a, const void *b)
{
	const struct op_key *x = &(*(struct post *const *)a)->op->key,
			    *y = &(*(struct post *const *)b)->op->key;

	if (x->member != y->member)
		return x->member < y->member ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int collect(struct run *run, struct calls_of_run *x, struct pair_post *ready)
{
	uint32_t n = 0;

	if (claim_ready(run, x, ready) < 0)
		return -ENOMEM;
	x->calls = calloc((size_t)x->n_calls + 1, sizeof(*x->calls));
	x->ends = calloc((size_t)x->n_calls + 1, sizeof(*x->ends));
	x->ranks = calloc(run->n_posts, sizeof(*x->ranks));
	x->n_by_rank = calloc(run->n_posts, sizeof(*x->n_by_rank));
	x->by_rank = calloc(run->n_posts, sizeof(*x->by_rank));
	if (!x->calls || !x->ends || !x->ranks || !x->n_by_rank || !x->by_rank)
		return -ENOMEM;
	qsort(run->posts, run->n_posts, sizeof(struct post *), compare_posts);
	for (uint32_t p = 0; p < run->n_posts; p++) {
		struct post *post = run->posts[p];
		const struct op *op = post->op;

		if (p == 0 || run->posts[p - 1]->member != post->member) {
			x->ranks[x->n_ranks] = post->member->rank;
			x->by_rank[x->n_ranks++] = &x->calls[n];
		}
		for (uint32_t i = 0; i < op->n_flows; i++) {
			const struct pair_call *call = &op->p2p->pair.calls[i];

			if (op->flows[i].turn != run->turn)
				continue;
			x->n_by_rank[x->n_ranks - 1]++;
			x->ends[n] = (struct run_end){post, i};
			x->calls[n++] = (struct sched_p2p){.peer = call->peer,
							   .is_send = call->is_send,
							   .bytes = call->bytes};
		}
	}
	return 0;
}

/* Starts and ends, with what-ifs or without. */
struct ask {
	struct run *run;
	const struct run_end *by_peer; /* the run's calls, sorted; borrowed */
	uint32_t n_calls;
	double *ends; /* by post */
	bool is_plain;
};

static uint32_t peer_of(const struct run_end *end)
{
	return end->post->op->p2p->calls[end->call].peer;
}

static int compare_peers(const void *a, const void *b)
{
	uint32_t x = peer_of(a), y = peer_of(b);

	return (x > y) - (x < y);
}

/* The first of @a's calls to @rank or one behind it. */
static uint32_t first_to(const struct ask *a, uint32_t rank)
{
	uint32_t low = 0, high = a->n_calls;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (peer_of(&a->by_peer[middle]) < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of several callers the last counts. */
static double start_of(void *ctx, uint32_t rank)
{
	const struct ask *a = ctx;
	uint32_t first = first_to(a, rank), i = first;
	double start = -INFINITY;

	for (; i < a->n_calls && peer_of(&a->by_peer[i]) == rank; i++)
		if (i == first || a->by_peer[i].post != a->by_peer[i - 1].post)
			start = fmax(start,
				     p2p_start_of(a->run, a->by_peer[i].post, rank, a->is_plain));
	return i > first ? start : p2p_start_of(a->run, a->run->posts[0], rank, a->is_plain);
}

/* Of real ranks: each of its posts. By a matrix they are over when the last rank is. */
static void take_end(void *ctx, uint32_t rank, double end_ns, double port_ns)
{
	const struct ask *a = ctx;

	(void)port_ns;
	for (uint32_t i = 0; i < a->run->n_posts; i++)
		if (a->run->is_by_matrix)
			a->ends[i] = fmax(a->ends[i], end_ns);
		else if (a->run->posts[i]->member->rank == rank)
			a->ends[i] = end_ns;
}

static int find_ends(struct ask *a, const struct calls_of_run *x, struct err *err)
{
	const struct run *run = a->run;
	const struct ops *ops = run->comm->ops;
	const struct p2p_ranks who = {.ctx = a, .start = start_of, .done = take_end};

	for (uint32_t i = 0; i < run->n_posts; i++) /* without calls of others */
		a->ends[i] =
			p2p_start_of(run, run->posts[i], run->posts[i]->member->rank, a->is_plain);
	return solve_p2p_ends(x->played.ranks, x->played.n_ranks, x->played.calls,
			      x->played.n_calls, x->played.chunk_bytes, ops->cluster->topology,
			      &run->comm->members.map, ops->delay, run->number, &run->timing,
			      a->is_plain, &who, err);
}

static int find_all_ends(struct run *run, const struct calls_of_run *x, struct err *err)
{
	CLEANUP(freep) struct run_end *by_peer = malloc((x->n_calls + 1) * sizeof(*by_peer));
	struct ask a = {.run = run, .by_peer = by_peer, .n_calls = x->n_calls};
	int r;

	run->ends = malloc(2 * run->n_posts * sizeof(*run->ends));
	if (!run->ends || !by_peer)
		return err_set(err, ENOMEM, "out of memory");
	memcpy(by_peer, x->ends, x->n_calls * sizeof(*by_peer));
	qsort(by_peer, x->n_calls, sizeof(*by_peer), compare_peers);
	a.ends = run->ends;
	r = find_ends(&a, x, err);
	a.ends = run->ends + run->n_posts;
	a.is_plain = true;
	return r < 0 ? r : find_ends(&a, x, err);
}

static int solve_run(struct run *run, const struct calls_of_run *x, struct err *err)
{
	const struct ops *ops = run->comm->ops;
	uint64_t chunk = run->posts[0]->op->sched->chunk_bytes;
	int r = 0;

	if (ops->config->exchange != EXCHANGE_NONE) {
		r = border_make_p2p(x->ranks, x->n_ranks, x->by_rank, x->n_by_rank, chunk,
				    &run->comm->has_process, &run->p2p_border, err);
		run->border = &run->p2p_border;
	}
	if (r < 0)
		return r;
	moment_of_run(run);
	return solve_p2p(x->played.ranks, x->played.n_ranks, x->played.calls, x->played.n_calls,
			 chunk, ops->cluster->topology, &run->comm->members.map, ops->delay,
			 run->border, run->number, &run->timing, err);
}

static int find_usage(struct run *run, const struct calls_of_run *x, struct err *err)
{
	CLEANUP(images_deinit) struct images images = {.comm = run->comm};
	const struct usage_images walk = {images_next, &images};
	const struct p2p_calls calls = {
		.ranks = x->ranks,
		.n_calls = x->n_by_rank,
		.calls = x->by_rank,
		.n_ranks = x->n_ranks,
		.chunk_bytes = run->posts[0]->op->sched->chunk_bytes,
	};
	struct usage *usage;
	int r = solver_p2p_usage(run->comm->ops->solver, run->comm->number, &calls,
				 &run->comm->members.map, run->number, &walk, NULL, &usage, err);

	if (r == 0)
		run->usage = usage_ref(usage);
	return r;
}

/* A connection of the border has a lane among the run's calls, which need not be the one
 * that the member knows: its op may be played by several runs. */
static int index_rank(struct run *run, struct calls_of_run *x, uint32_t k, struct err *err)
{
	uint32_t first = (uint32_t)(x->by_rank[k] - x->calls), rank = x->ranks[k];
	struct sched s;
	int r;

	if (x->n_by_rank[k] == 0 || !bitmap_test(&run->comm->has_process, rank))
		return 0;
	s = *x->ends[first].post->op->sched;
	s.p2p = &x->calls[first];
	s.n_p2p = x->n_by_rank[k];
	r = sched_init(&s, err);
	if (r < 0)
		return r;
	for (uint32_t i = first; i < first + x->n_by_rank[k]; i++) {
		const struct sched_p2p *call = &x->calls[i];
		const struct run_end *end = &x->ends[i];
		int64_t conn;

		if (call->bytes == 0 || call->peer == rank)
			continue;
		conn = call->is_send ? border_find_out(run->border, rank, call->peer, call->lane)
				     : border_find_in(run->border, call->peer, rank, call->lane);
		if (conn < 0)
			return err_set(err, EINVAL, "no connection of ranks %u and %u", rank,
				       call->peer);
		if (call->is_send)
			end->post->op->flows[end->call].out = (uint32_t)conn;
		else
			run->to[conn] = *end;
	}
	return 0;
}

/* Whose calls say how long the run takes. Return: 0 or -ENOMEM. */
static int choose_calls(struct run *run, struct calls_of_run *x)
{
	int r;

	x->played = (struct p2p_calls){
		.ranks = x->ranks,
		.n_calls = x->n_by_rank,
		.calls = x->by_rank,
		.n_ranks = x->n_ranks,
		.chunk_bytes = run->posts[0]->op->sched->chunk_bytes,
	};
	for (uint32_t i = 0; i < run->n_posts; i++)
		run->has_messages |= !messages_are_alltoall(run->posts[i]->op);
	r = alltoall_fill(run, &x->matrix);
	run->is_by_matrix = r > 0;
	if (run->is_by_matrix) {
		x->played.ranks = x->matrix.ranks;
		x->played.n_calls = x->matrix.n_by_rank;
		x->played.calls = x->matrix.by_rank;
		x->played.n_ranks = x->matrix.n;
	}
	return r < 0 ? r : 0;
}

int p2p_fill_run(struct run *run, struct pair_post *ready, struct err *err)
{
	CLEANUP(calls_of_run_deinit) struct calls_of_run x = {0};
	int r;

	if (collect(run, &x, ready) < 0 || choose_calls(run, &x) < 0)
		return err_set(err, ENOMEM, "out of memory");
	r = solve_run(run, &x, err);
	if (r == 0)
		ideal_apply(run->comm, &run->timing);
	if (r == 0 && !run->has_messages)
		r = find_usage(run, &x, err);
	if (r == 0 && !run->has_messages)
		r = find_all_ends(run, &x, err);
	if (r < 0 || !run->border)
		return r;
	run->to = calloc((size_t)run->border->n_in + 1, sizeof(*run->to));
	if (!run->to)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t k = 0; r == 0 && k < x.n_ranks; k++)
		r = index_rank(run, &x, k, err);
	return r;
}

uint64_t p2p_n_awaited(const struct op *op)
{
	const struct sched *s = op->sched;
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->n_p2p; i++)
		if (!s->p2p[i].is_send && s->p2p[i].peer != s->p2p_rank)
			n += sched_conn_messages(s, s->p2p[i].peer, s->p2p_rank, s->p2p[i].lane);
	return n;
}

/* --- what they wait for ---------------------------------------------------------------- */

const struct pair_call *p2p_waits_for(const struct op *op, const struct comm_member *peer)
{
	const struct pair_post *pair = &op->p2p->pair;

	for (uint32_t i = 0; pair->n_unplayed && i < pair->n_calls; i++) {
		const struct pair_call *call = &pair->calls[i];

		if (peer ? pair_call_waits(call) && call->peer == peer->rank
			 : call->is_waiting && comm_member(op->comm, call->peer)->is_freed)
			return call;
	}
	return NULL;
}

char *p2p_call_text(const struct pair_call *call, char *buf, size_t size)
{
	char bytes[32];

	units_print_bytes(call->bytes, bytes, sizeof(bytes));
	if (!call->post->is_onesided)
		snprintf(buf, size, "%s of %s %s rank %u (%s %llu between them)",
			 call->is_send ? "send" : "receive", bytes, call->is_send ? "to" : "from",
			 call->peer, call->is_send ? "send" : "receive",
			 (unsigned long long)call->number);
	else if (call->is_send)
		snprintf(buf, size, "put of %s to rank %u", bytes, call->peer);
	else
		snprintf(buf, size, "wait for signal %llu from rank %u",
			 (unsigned long long)call->number, call->peer);
	return buf;
}
