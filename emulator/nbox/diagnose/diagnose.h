/* What holds a job back: each cause is judged by a replay without it. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "nbox/replay/play.h"

enum diagnose_cause {
	DIAGNOSE_COMPUTATION,
	DIAGNOSE_COMMUNICATION,
	DIAGNOSE_STRAGGLER,
	DIAGNOSE_OVERLAP,
	DIAGNOSE_SMALL,
	DIAGNOSE_QUEUEING,
	DIAGNOSE_PIPELINE,
	DIAGNOSE_CAUSES
};

struct diagnose_finding {
	bool is_found;
	double won_ns;      /* of an iteration, by the replay without the cause */
	char evidence[256]; /* also of what was not found */
	char without[96];   /* what that replay leaves out */
};

struct diagnosis {
	double iteration_ns; /* the median */
	struct diagnose_finding of[DIAGNOSE_CAUSES];
};

const char *diagnose_name(enum diagnose_cause cause); /* "communication-bound" */
/* Return: 0; negative errno with the sentence. */
int diagnose(const struct job *job, struct costs *costs, struct diagnosis *ret, struct err *err);
void diagnose_print(const struct diagnosis *d, FILE *to);
json_t *diagnose_json(const struct diagnosis *d); /* NULL: no memory */
