/* A run's record, as the new world would have left it, as a job: rows, what they waited for and
 * what the computation between took, by the terms of timeline/timeline.h. */
#pragma once

#include "base/err.h"
#include "config/config.h"
#include "nbox/replay/computed.h"
#include "nbox/replay/job.h"
#include "replay/replay.h"

/* Borrowed for the call. */
struct job_record {
	const struct rows_graph *graph;
	const struct config *config;
	const struct record *rec;           /* replay_play()'s, of @graph and @config */
	const struct timeline_terms *terms; /* of the same replay */
	const struct computed *computed;    /* that it told; NULL: it was not asked */
};

/* Return: 0; -ENOMEM, -E2BIG, with the sentence. */
int job_of_record(const struct job_record *from, struct job *ret, struct err *err);
