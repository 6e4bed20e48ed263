/* See p2p-start.h. */
#include "op/p2p-start.h"

#include <math.h>

#include "engine/sim-ranks.h"

static double start_at(const struct post *post, uint32_t world_rank, bool is_plain)
{
	return is_plain ? timeline_plain_start(post->node) : timeline_start(post->node, world_rank);
}

double post_start(const struct post *post, bool is_plain)
{
	return start_at(post, post->member->world_rank, is_plain);
}

double p2p_start(const struct run *run, const struct post *caller, uint32_t world_rank,
		 bool is_plain)
{
	uint32_t template = timelines_template(run->comm->ops->timelines, world_rank);
	double last = -INFINITY;

	for (uint32_t i = 0; i < run->n_posts; i++)
		if (run->posts[i]->member->world_rank == template)
			last = fmax(last, start_at(run->posts[i], world_rank, is_plain));
	return isfinite(last) ? last : start_at(caller, world_rank, is_plain);
}

double p2p_start_of(const struct run *run, const struct post *caller, uint32_t rank, bool is_plain)
{
	return p2p_start(run, caller, membership_world(&run->comm->members.map, rank), is_plain);
}

uint64_t p2p_buffer_bytes(const struct op *op)
{
	uint64_t chunk = op->sched->chunk_bytes ? op->sched->chunk_bytes : SCHED_CHUNK_DEFAULT;

	return sim_buffered(op->sched) * chunk;
}

double p2p_buffered(const struct op *op, uint64_t bytes)
{
	return bytes && !op->p2p->pair.is_onesided
		       ? fmin(1, (double)p2p_buffer_bytes(op) / (double)bytes)
		       : 1;
}
