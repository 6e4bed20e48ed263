/* What a rank does in an iteration: a list of steps in the order in which the host launches them.
 * A step takes its place in one stream. Streams wait for each other by events alone. plan.c says
 * which framework each part follows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "stepper/job.h"
#include "stepper/place.h"

enum step_kind {
	STEP_COMPUTE,
	STEP_RECORD, /* the event, on the stream */
	STEP_WAIT,   /* the stream waits for the event */
	STEP_ALL_REDUCE,
	STEP_ALL_GATHER,
	STEP_REDUCE_SCATTER,
	STEP_ALL_TO_ALL,
	STEP_PASS, /* sends to and receives from neighbours in the pipeline, in one group */
};

enum stream {
	STREAM_COMPUTE,
	STREAM_DATA,    /* ddp's all-reduces */
	STREAM_GATHER,  /* fsdp's all-gathers */
	STREAM_SCATTER, /* fsdp's reduce-scatters */
	STREAM_REPLICA, /* hsdp's all-reduces */
	STREAM_TENSOR,
	STREAM_EXPERT,
	STREAM_PIPE, /* this and those behind it: of GROUP_PIPE and those behind that */
	STREAM_PIPE_ODD,
	STREAM_BACK,
	STREAM_BACK_ODD,
	STREAMS
};

#define LAYER_NONE -1 /* the update's */
#define NOBODY -1

struct step {
	enum step_kind kind;
	enum stream stream;
	uint32_t event; /* of RECORD and WAIT */
	double ns;      /* of COMPUTE */
	int layer;      /* of COMPUTE: among all layers of the job */
	enum group group;
	uint64_t bytes; /* of an op: all that the call gathers, scatters, reduces or sends */
	uint32_t parts; /* of ALL_REDUCE: so many in one group, of equal parts of the bytes */
	int send_to, recv_from; /* of PASS: members of the group, or NOBODY */
};

struct plan {
	struct step *steps; /* owned */
	size_t n;
	uint32_t n_events;
	size_t n_ops;
};

/* The job has gone through job_fit(). Return: 0; -ENOMEM. */
int plan_make(const struct job *job, const struct place *place, struct plan *ret);
void plan_deinit(struct plan *plan);
