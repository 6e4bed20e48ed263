/* What nbox pipe is asked about, and its answer: a row for each schedule. */
#pragma once

#include <stdbool.h>

#include "pipe/pipe.h"

struct pipeline {
	struct pipe_stage *stages; /* owned, as all here */
	uint64_t *message_bytes;   /* by stage, towards the next; 0: not known */
	uint32_t n_stages, n_micro;
	double latency_ns; /* of a message's time, what its bytes do not take; 0: not known */
	uint32_t pieces;   /* of weights_ns */
	double update_ns;  /* of the first stage, behind its last backward pass */
	double activation_bytes, state_bytes; /* of a stage; 0: not known */
	/* of a recorded run: */
	bool is_recorded;
	enum pipe_schedule recorded;
	double recorded_ns; /* its median iteration; 0: the record says none */
	char notes[512];    /* what was assumed, in sentences */
};

void pipeline_deinit(struct pipeline *p);

/* Which rows are wanted: by bits. */
struct pipeline_wanted {
	unsigned schedules, overlaps;
};

struct pipeline_row {
	struct pipe_job job; /* its stages are the pipeline's */
	bool is_delayed;
	struct pipe_times times;
	double signal_ns;
};

#define PIPELINE_ROWS (2 * PIPE_SCHEDULES * PIPE_OVERLAPS)
#define PIPELINE_SHARE 0.97 /* of Signal, that the network is asked for */

struct pipeline_answer {
	const struct pipeline *of; /* borrowed */
	struct pipeline_row rows[PIPELINE_ROWS];
	size_t n;
	/* Eager and overlapped, as nothing delays: messages may take so many times as long, until
	 * it falls below PIPELINE_SHARE of Signal. 0: there is no message that takes time */
	double slower;
	double least_bandwidth; /* bytes/ns of the slowest link then; 0: bytes are not known */
};

/* Return: 0; -EINVAL with the sentence: the pipeline cannot be; -ENOMEM. */
int pipeline_play(const struct pipeline *p, const struct pipeline_wanted *wanted,
		  struct pipeline_answer *ret, struct err *err);
void pipeline_answer_deinit(struct pipeline_answer *a);
const char *pipeline_schedule(enum pipe_schedule schedule); /* "1f1b" */
const char *pipeline_overlap(enum pipe_overlap overlap);    /* "on", "sender", "off" */
