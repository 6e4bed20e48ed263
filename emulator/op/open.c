/* See open.h. */
#include "op/open.h"

#include <errno.h>
#include <stdlib.h>

#include "op/contention.h"
#include "op/ideal.h"
#include "op/resharding-step.h"

static int segment(void *ctx, uint32_t world_rank, uint64_t number, double start, double ns,
		   double *ret_ns, struct err *err)
{
	struct ops *ops = ctx;
	int r;

	if (ops->ideal && ops->ideal->rank == world_rank)
		return 1;
	r = delay_segment(ops->delay, world_rank, number, start, ns, ret_ns, err);
	if (r == 0 && ops->sink->computed)
		r = ops->sink->computed(ops, world_rank, number, ns, *ret_ns, err);
	return r;
}

int ops_open(struct ops *ops, struct err *err)
{
	const struct config *c = ops->config;
	const struct timeline_what_if what_if = {
		.segment = delay_has_segments(ops->delay) ? segment : NULL,
		.ctx = ops,
	};

	if (solver_new(&c->topology, ops->delay, &ops->solver) < 0 || contention_open(ops) < 0 ||
	    resharding_steps_open(ops) < 0 ||
	    timelines_new(ops->cluster->topology, ops->cluster->real, ops->cluster->n_real,
			  c->classes.of, &what_if, &ops->timelines) < 0 ||
	    (c->steps.n_ops &&
	     step_count_new(&c->steps, (uint32_t)ops->cluster->n_real, &ops->steps) < 0))
		return err_set(err, ENOMEM, "out of memory");
	ops->has_moments = ops->steps || delay_has_when(ops->delay);
	return 0;
}

void ops_close(struct ops *ops)
{
	contention_close(ops);
	resharding_steps_close(ops);
	timelines_free(ops->timelines);
	step_count_free(ops->steps);
	free(ops->ends);
	solver_free(ops->solver);
	delay_free(ops->delay);
}
