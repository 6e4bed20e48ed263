/* See latest.h. */
#include "op/latest.h"

#include <math.h>

#include "topology/membership.h"

#define ROUNDED_NS 1

void latest_is(struct post *post, uint32_t world_rank, double start)
{
	double waited = start - timeline_start(post->node, post->member->world_rank);

	if (waited > post->waited_ns) {
		post->waited_ns = waited;
		post->waited_for = world_rank;
	}
}

/* The rank that @own needs and that comes last, if @last comes last of all. */
static uint32_t needed_by(const struct sched *s, uint32_t own, uint32_t last)
{
	bool is_from_root = s->kind == COLL_BROADCAST || s->kind == COLL_SCATTER;

	if (!coll_has_root(s->kind))
		return last;
	if (own == s->root)
		return is_from_root ? own : last;
	return is_from_root ? s->root : own;
}

/* Whether @world_rank, on the timeline of @of, arrives when @post could have begun, and further
 * behind its op before than that rank behind its own. */
static bool is_late(const struct post *of, uint32_t world_rank, const struct post *post)
{
	uint32_t own = post->member->world_rank;
	double behind = timeline_behind(of->node, world_rank),
	       own_behind = timeline_behind(post->node, own);

	return timeline_arrival(of->node, world_rank) > timeline_start(post->node, own) &&
	       (isinf(behind) || isinf(own_behind) || behind > fmax(own_behind, 0) + ROUNDED_NS);
}

void latest_of_ranks(struct post *const *posts, uint32_t n, const double *arrive)
{
	const struct op *op = posts[0]->op;
	uint32_t last = posts[0]->member->rank;

	for (uint32_t r = 0; r < op->sched->n_ranks; r++)
		if (isfinite(arrive[r]) && arrive[r] > arrive[last])
			last = r;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t rank = needed_by(op->sched, posts[i]->member->rank, last);
		uint32_t world_rank = membership_world(&op->comm->members.map, rank);

		if (isfinite(arrive[rank]) &&
		    is_late(op_post_with(op, rank, world_rank), world_rank, posts[i]))
			latest_is(posts[i], world_rank, arrive[rank]);
	}
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
		if (is_late(last, last->member->world_rank, run->posts[i]))
			latest_is(run->posts[i], last->member->world_rank, at);
}
