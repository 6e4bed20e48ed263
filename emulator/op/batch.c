/* See batch.h. */
#include "op/batch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/solver.h"
#include "op/ideal.h"
#include "op/image.h"
#include "op/images.h"
#include "op/p2p-start.h"

void batch_deinit(struct batch *b)
{
	free(b->index);
	free(b->calls);
	free(b->ns);
	timing_deinit(&b->timing);
}

int batch_init(struct batch *b, struct post *post, bool is_plain, uint64_t number, struct err *err)
{
	size_t n = (size_t)post->op->n_flows + 1;

	*b = (struct batch){.post = post, .is_plain = is_plain, .number = number};
	b->index = malloc(n * sizeof(*b->index));
	b->calls = calloc(n, sizeof(*b->calls));
	b->ns = calloc(n, sizeof(*b->ns));
	return b->index && b->calls && b->ns ? 0 : err_set(err, ENOMEM, "out of memory");
}

void batch_add(struct batch *b, uint32_t k, uint64_t bytes)
{
	const struct sched_p2p *call = &b->post->op->p2p->calls[k];

	b->index[b->n] = k;
	b->calls[b->n++] =
		(struct sched_p2p){.peer = call->peer, .is_send = call->is_send, .bytes = bytes};
	b->n_all = b->n;
}

double batch_ns(const struct batch *b)
{
	return b->is_plain ? b->timing.model_ns : b->timing.end_ns;
}

/* Ends by rank. */
struct ends_of {
	const struct batch *b;
	const struct run *run; /* NULL: all start at 0 */
	double *ends;
};

static double take_start(void *ctx, uint32_t rank)
{
	const struct ends_of *e = ctx;

	if (!e->run)
		return 0;
	return p2p_start_of(e->run, e->b->post, rank, e->b->is_plain);
}

static void take_end(void *ctx, uint32_t rank, double end_ns, double port_ns)
{
	const struct ends_of *e = ctx;

	(void)port_ns;
	e->ends[rank] = end_ns;
}

int batch_ends(const struct batch *b, const struct run *run, double *ends, struct err *err)
{
	const struct comm *c = b->post->op->comm;
	const struct sched_p2p *calls = b->calls;
	struct ends_of e = {b, run, ends};
	const struct p2p_ranks who = {.ctx = &e, .start = take_start, .done = take_end};

	return solve_p2p_ends(&b->post->member->rank, 1, &calls, &b->n,
			      b->post->op->sched->chunk_bytes, c->ops->cluster->topology,
			      &c->members.map, c->ops->delay, b->number, &b->timing, b->is_plain,
			      &who, err);
}

bool batch_has_one_peer(const struct batch *b)
{
	for (uint32_t i = 1; i < b->n; i++)
		if (b->calls[i].peer != b->calls[0].peer)
			return false;
	return true;
}

/* How long they take by themselves. */
int batch_solve(struct batch *b, struct err *err)
{
	const struct comm *c = b->post->op->comm;
	const struct sched_p2p *calls = b->calls;
	CLEANUP(freep) double *ends = NULL;
	int r;

	timing_deinit(&b->timing);
	r = solve_p2p(&b->post->member->rank, 1, &calls, &b->n, b->post->op->sched->chunk_bytes,
		      c->ops->cluster->topology, &c->members.map, c->ops->delay, NULL, b->number,
		      &b->timing, err);
	if (r < 0)
		return r;
	ideal_apply(c, &b->timing);
	if (!b->is_received && !batch_has_one_peer(b)) {
		ends = malloc(c->n_ranks * sizeof(*ends));
		r = ends ? batch_ends(b, NULL, ends, err) : err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < b->n && r == 0; i++)
		b->ns[i] = ends ? ends[b->calls[i].peer] : batch_ns(b);
	return r;
}

static uint32_t copies_of(void *ctx, uint32_t rank, const uint32_t **ret)
{
	const struct post *post = ctx;
	uint32_t n;

	(void)rank;
	*ret = timeline_ranks(post->node, &n);
	return n;
}

static bool are_together(void *ctx, uint32_t copy, uint32_t peer)
{
	const struct comm *c = ((const struct post *)ctx)->op->comm;
	const struct membership *m = &c->members.map;
	struct radix image;

	if (cluster_is_real(c->ops->cluster, copy))
		return false; /* its calls are its own */
	if (membership_rank(m, copy) >= 0)
		return membership_rank(m, peer) >= 0;
	return image_at(c, copy, &image) == 0 && radix_find(&image, peer) >= 0;
}

int batch_usage(const struct batch *b, struct usage **ret, struct err *err)
{
	const struct comm *c = b->post->op->comm;
	CLEANUP(images_deinit) struct images images = {.comm = c};
	const struct usage_images walk = {images_next, &images};
	const struct usage_copies copies = {copies_of, are_together, b->post};
	const struct sched_p2p *list = b->calls;
	const struct p2p_calls calls = {
		.ranks = &b->post->member->rank,
		.n_calls = &b->n_all,
		.calls = &list,
		.n_ranks = 1,
		.chunk_bytes = b->post->op->sched->chunk_bytes,
		.is_received = b->is_received,
	};

	return solver_p2p_usage(c->ops->solver, c->number, &calls, &c->members.map, b->number,
				&walk, &copies, ret, err);
}

double batch_extra_ns(const struct timing *t, bool is_plain)
{
	double ns = (is_plain ? 0 : t->extra_ns) + t->plan.base_ns + t->shared_ns;

	return fmax(0, fmin(ns, is_plain ? t->model_ns : t->end_ns));
}
