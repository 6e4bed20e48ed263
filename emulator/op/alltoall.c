/* See alltoall.h. */
#include "op/alltoall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/record.h"

#define ELSEWHERE_MAX 0.1 /* of the bytes: a matrix of one step is not that of each */

/* What the matrix says of a pair. */
static uint64_t cell(const struct op *op, enum matrix_way way, uint32_t from, uint32_t to)
{
	const struct config *c = op->comm->ops->config;

	return way == MATRIX_BACK ? c->alltoall[(size_t)to * c->n_alltoall + from]
				  : c->alltoall[(size_t)from * c->n_alltoall + to];
}

/* By peer, what @op sends to it, then what it receives from it. Return: whether it has one call at
 * most for each of these. */
static bool take_own(const struct op *op, uint64_t *own)
{
	uint32_t n = op->comm->n_ranks;

	memset(own, 0, 2 * (size_t)n * sizeof(*own));
	for (uint32_t k = 0; k < op->n_flows; k++) {
		const struct sched_p2p *call = &op->p2p->calls[k];
		uint64_t *at = &own[call->is_send ? call->peer : n + call->peer];

		if (call->peer == op->posts[0].member->rank)
			continue;
		if (*at)
			return false;
		*at = call->bytes;
	}
	return true;
}

/* Adds up what the op and the matrix have for its row and its column. */
static void add_sums(const struct op *op, enum matrix_way way, const uint64_t *own, double sums[2])
{
	uint32_t n = op->comm->n_ranks, self = op->posts[0].member->rank;

	for (uint32_t i = 0; i < n; i++) {
		if (i == self)
			continue;
		sums[0] += (double)own[i] + (double)own[n + i];
		sums[1] += (double)cell(op, way, self, i) + (double)cell(op, way, i, self);
	}
}

/* The share of @op's bytes that the matrix has elsewhere; INFINITY: one of them has none. */
static double elsewhere(const struct op *op, enum matrix_way way, const uint64_t *own)
{
	uint32_t n = op->comm->n_ranks, self = op->posts[0].member->rank;
	double sums[2] = {0, 0}, apart = 0;

	add_sums(op, way, own, sums);
	if (!(sums[0] > 0 && sums[1] > 0))
		return INFINITY;
	for (uint32_t i = 0; i < n; i++) {
		if (i == self)
			continue;
		apart += fabs((double)own[i] / sums[0] - (double)cell(op, way, self, i) / sums[1]);
		apart += fabs((double)own[n + i] / sums[0] -
			      (double)cell(op, way, i, self) / sums[1]);
	}
	return apart / 2;
}

static bool has_two_peers(const struct op *op)
{
	uint32_t self = op->posts[0].member->rank, first = self;

	for (uint32_t k = 0; k < op->n_flows; k++) {
		uint32_t peer = op->p2p->calls[k].peer;

		if (first != self && peer != self && peer != first)
			return true;
		first = first == self ? peer : first;
	}
	return false;
}

int alltoall_find(struct op *op)
{
	const struct config *c = op->comm->ops->config;
	CLEANUP(freep) uint64_t *own = NULL;
	double forth, back;

	if (!c->alltoall || op->comm->n_ranks != c->n_alltoall || op->p2p->plan)
		return 0;
	own = malloc(2 * (size_t)c->n_alltoall * sizeof(*own));
	if (!own)
		return -ENOMEM;
	if (take_own(op, own)) {
		forth = elsewhere(op, MATRIX_FORTH, own);
		back = elsewhere(op, MATRIX_BACK, own);
		if (fmin(forth, back) <= ELSEWHERE_MAX)
			op->p2p->matrix = back < forth ? MATRIX_BACK : MATRIX_FORTH;
	}
	op->comm->ops->is_matrix_met |= op->p2p->matrix != MATRIX_NONE;
	if (op->p2p->matrix || has_two_peers(op))
		op->p2p->flags |= op->p2p->matrix ? RECORD_BY_MATRIX : RECORD_NOT_BY_MATRIX;
	return 0;
}

/* Whether @run has all calls of its posts, of each rank one post, and all go one way. */
static bool is_one(const struct run *run)
{
	for (uint32_t i = 0; i < run->n_posts; i++) {
		const struct op *op = run->posts[i]->op;

		if (op->p2p->matrix == MATRIX_NONE ||
		    op->p2p->matrix != run->posts[0]->op->p2p->matrix ||
		    (i && run->posts[i]->member == run->posts[i - 1]->member))
			return false;
		for (uint32_t k = 0; k < op->n_flows; k++)
			if (op->flows[k].turn != run->turn)
				return false;
	}
	return run->n_posts > 0;
}

static int fill(const struct run *run, uint64_t *bytes, uint64_t *own)
{
	const struct op *first = run->posts[0]->op;
	enum matrix_way way = first->p2p->matrix;
	uint32_t n = run->comm->n_ranks;
	double sums[2] = {0, 0};

	for (uint32_t i = 0; i < run->n_posts; i++) {
		if (!take_own(run->posts[i]->op, own))
			return 0;
		add_sums(run->posts[i]->op, way, own, sums);
	}
	for (uint32_t from = 0; from < n; from++)
		for (uint32_t to = 0; to < n; to++)
			bytes[(size_t)from * n + to] = (uint64_t)llround(
				(double)cell(first, way, from, to) * (sums[0] / sums[1]));
	for (uint32_t i = 0; i < run->n_posts; i++) {
		uint32_t self = run->posts[i]->member->rank;

		take_own(run->posts[i]->op, own);
		for (uint32_t peer = 0; peer < n; peer++) {
			bytes[(size_t)self * n + peer] = own[peer];
			bytes[(size_t)peer * n + self] = own[n + peer];
		}
	}
	return 1;
}

int alltoall_fill(const struct run *run, struct matrix_calls *ret)
{
	uint32_t n = run->comm->n_ranks;
	CLEANUP(freep) uint64_t *bytes = NULL;
	CLEANUP(freep) uint64_t *own = NULL;
	int r = 0;

	if (is_one(run)) {
		bytes = malloc((size_t)n * n * sizeof(*bytes));
		own = malloc(2 * (size_t)n * sizeof(*own));
		if (!bytes || !own)
			return -ENOMEM;
		r = fill(run, bytes, own);
	}
	for (uint32_t i = 0; i < run->n_posts && !r; i++) {
		struct p2p *p2p = run->posts[i]->op->p2p;

		if (p2p->matrix)
			p2p->flags =
				(p2p->flags & ~(uint32_t)RECORD_BY_MATRIX) | RECORD_NOT_BY_MATRIX;
	}
	return r && matrix_calls_init(ret, bytes, n) < 0 ? -ENOMEM : r;
}
