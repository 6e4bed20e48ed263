/* See open.h. */
#include "op/open.h"

#include <errno.h>
#include <stdlib.h>

#include "op/contention.h"

static int segment(void *ctx, uint32_t world_rank, uint64_t number, double ns, double *ret_ns,
		   struct err *err)
{
	return delay_segment(ctx, world_rank, number, ns, ret_ns, err);
}

int ops_open(struct ops *ops, struct err *err)
{
	const struct config *c = ops->config;
	const struct timeline_what_if what_if = {
		.segment = delay_has_segments(ops->delay) ? segment : NULL,
		.ctx = ops->delay,
	};

	if (solver_new(&c->topology, ops->delay, &ops->solver) < 0 || contention_open(ops) < 0 ||
	    timelines_new(ops->cluster->topology, ops->cluster->real, ops->cluster->n_real,
			  &what_if, &ops->timelines) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

void ops_close(struct ops *ops)
{
	contention_close(ops);
	timelines_free(ops->timelines);
	free(ops->ends);
	solver_free(ops->solver);
	delay_free(ops->delay);
}
