/* What an iteration would take without this or that: the run re-timed. */
#pragma once

#include "nbox/retime/retime.h"
#include "nbox/why/found.h"

/* Makes the configuration that the run is looked at with, before config_finish(). */
struct why_config {
	int (*make)(void *ctx, struct config **ret, struct err *err);
	void *ctx;
	bool skips_won; /* what could be won is not asked */
};

/* From the arrival of one op of the re-timed record to that of another. */
struct won_step {
	uint64_t from, to;
};

/* The median of the @n iterations of @rec. NAN: no memory, or rows are missing. */
double won_median(const struct record *rec, const struct won_step *steps, uint64_t n);
/* Fills @w's won, the most first. @c: what @from makes, finished. Return: 0; -ENOMEM. */
int won_find(const struct recorded *r, const struct why_config *from, const struct config *c,
	     const struct record *rec, const struct won_step *steps, uint64_t n, struct why *w,
	     struct err *err);
