/* What nbox predict and nbox blame print. Of all iterations their times; of the one in the middle
 * what its time is made of. */
#pragma once

#include <jansson.h>

#include "nbox/predict/request.h"
#include "predict/blame.h"
#include "predict/path.h"

struct shown {
	const struct predict_request *q;
	uint32_t iteration; /* number of the one in the middle */
	struct task task;   /* owned, as those below */
	struct predict p;
	struct path_segment *path; /* in parts that belong together, the longest first */
	uint32_t n_path;
	struct blame *blames; /* the most worth first; NULL: not wanted */
	uint32_t n_blames;
};

/* @n_asked: collectives whose culprits are asked what they cost. Return: 0; negative errno with the
 * sentence. */
int shown_make(const struct predict_request *q, bool has_blames, struct shown *ret,
	       struct err *err);
void shown_deinit(struct shown *s);
void shown_print(const struct shown *s, FILE *to);        /* a prediction */
void shown_print_blames(const struct shown *s, FILE *to); /* and what its ranks wait for */
json_t *shown_json(const struct shown *s);                /* both; NULL: no memory */
