/* Where a rank stands in the product of parallel ways, and with whom it communicates. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stepper/job.h"

enum group {
	GROUP_DATA,    /* ddp */
	GROUP_SHARD,   /* fsdp, hsdp */
	GROUP_REPLICA, /* hsdp: the same shard in the other sharding groups */
	GROUP_TENSOR,
	GROUP_EXPERT, /* the members of the dp group, with a communicator of their own */
	GROUP_PIPE,
	/* the same members, where messages overlap: a communicator has those of one direction
	 * between every other pair of stages, so that each stage either sends or receives by it */
	GROUP_PIPE_ODD, /* to the next stage, from odd ones */
	GROUP_BACK,     /* to an even stage, from the next */
	GROUP_BACK_ODD,
	GROUPS
};

struct place {
	uint32_t stage; /* of the pipeline */
	struct {
		uint32_t n;             /* members */
		uint32_t index;         /* this rank among them */
		uint32_t first, stride; /* member i is first + i x stride in the world */
		bool is_used;           /* by any rank: then all ranks make it */
	} groups[GROUPS];
};

/* The job has gone through job_fit(). */
void place_find(const struct job *job, uint32_t rank, struct place *ret);
/* What PyTorch's new_group() passes to ncclCommSplit: a hash of the members. */
int32_t place_color(const struct place *place, enum group group);
