/* What a plan knows of a point beyond a sweep's summary, in the file plan.json of its folder: a
 * step of it where the model is as far off as it may be, and what bounds it. */
#pragma once

#include "config/model-error.h"
#include "nbox/sweep/point.h"

/* The GPUs are so many times as fast as they are taken to be, from the slow end to the fast one. */
struct gpu_error {
	double slow, fast; /* 0, 0: nobody said */
};

/* "0.8..1". Return: 0; -EINVAL with the sentence. */
int gpu_error_parse(const char *text, struct gpu_error *ret, struct err *err);

extern const struct sweep_extra look_extra; /* with a struct gpu_error as its ctx, or NULL */

struct look {
	bool has_band;
	double ms[MODEL_ENDS]; /* of a mean step, re-timed with all that may be off so far off */
	char error[600];       /* whose error the band is; without one why there is none */
	bool is_beyond;        /* more nodes than that was measured on */
	/* What bounds a step: that without which it is shortest, re-timed, by the name of the
	 * largest part of the critical path that goes then; "": not known */
	char bound_by[128];
	char won_if[256];    /* what that is without, in words */
	double won_ms, won;  /* the median iteration is so much shorter then; the same as a part */
	struct values notes; /* owned: the summary's warnings, and how far the model is stretched */
};

/* Return: 0; negative errno with the sentence. */
int look_read(const struct sweep *s, size_t point, struct look *ret, struct err *err);
void look_deinit(struct look *l);
