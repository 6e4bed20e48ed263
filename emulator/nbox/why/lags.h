/* When virtual ranks come to the rows of their templates: how much later than those, at the rows
 * that are looked at. From the run, re-timed once more. */
#pragma once

#include "replay/replay.h"

struct lags {
	const bool *is_wanted; /* borrowed; by row of the graph */
	uint32_t n;            /* rows */
	struct lags_row {
		double *at, *end; /* owned; NULL: all come, or are over, with their template */
	} * rows;                 /* owned; by row of the graph */
	struct lags_of {
		uint32_t real_rank;
		uint32_t *ranks; /* owned, sorted: those that copy it, itself among them */
		uint32_t n;
	} * of; /* owned */
	uint32_t n_of;
};

/* Re-times @in at the rows of @is_wanted. Return: 0; negative errno with the sentence. */
int lags_play(const struct replay *in, const bool *is_wanted, struct lags *ret, struct err *err);
void lags_deinit(struct lags *l);
/* Those that copy what @rank copies. @ret_index: of @rank among them. NULL: not known. */
const struct lags_of *lags_find(const struct lags *l, uint32_t rank, uint32_t *ret_index);
/* How much later than its template number @index comes to @row, or is over with it. NAN: not known.
 */
double lags_at(const struct lags *l, uint32_t row, uint32_t index);
double lags_end(const struct lags *l, uint32_t row, uint32_t index);
