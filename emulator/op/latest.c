/* See latest.h. */
#include "op/latest.h"

#include <math.h>

#include "topology/membership.h"

void latest_is(struct post *post, uint32_t world_rank, double start)
{
	double waited = start - timeline_start(post->node, post->member->world_rank);

	if (waited > post->waited_ns) {
		post->waited_ns = waited;
		post->waited_for = world_rank;
	}
}

static uint32_t last_of(const struct sched *s, uint32_t own, const double *arrive)
{
	uint32_t last = own;

	if (coll_has_root(s->kind) && own != s->root)
		return s->kind == COLL_BROADCAST || s->kind == COLL_SCATTER ? s->root : own;
	if (s->kind == COLL_BROADCAST || s->kind == COLL_SCATTER)
		return own;
	for (uint32_t r = 0; r < s->n_ranks; r++)
		if (isfinite(arrive[r]) && arrive[r] > arrive[last])
			last = r;
	return last;
}

void latest_of_ranks(struct post *post, const double *arrive)
{
	uint32_t last = last_of(post->op->sched, post->member->rank, arrive);

	if (isfinite(arrive[last]))
		latest_is(post, membership_world(&post->op->comm->members.map, last), arrive[last]);
}

void latest_of_posts(struct run *run)
{
	const struct post *last = run->posts[0];
	double at = -INFINITY;

	for (uint32_t i = 0; i < run->n_posts; i++) {
		const struct post *post = run->posts[i];
		double start = timeline_start(post->node, post->member->world_rank);

		last = start > at ? post : last;
		at = fmax(start, at);
	}
	for (uint32_t i = 0; i < run->n_posts; i++)
		latest_is(run->posts[i], last->member->world_rank, at);
}
