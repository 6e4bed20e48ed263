/* The rows of nccl-tests' table as a model answers them: a row for each size. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nbox-perf/options.h"
#include "nbox/ask/ask.h"

struct perf_row {
	uint64_t bytes, count; /* as in nccl-tests: of the larger buffer; of one rank's part */
	struct answer answer;
	double algbw, busbw; /* GB/s */
};

struct perf_rows {
	enum coll_kind kind;
	uint32_t dtype; /* enum coll_dtype */
	uint32_t n_ranks;
	struct perf_row *rows; /* owned */
	size_t n;
};

uint32_t perf_dtype(const struct perf_options *o); /* enum coll_dtype */
/* Asks for each size from @o->min_bytes to @o->max_bytes. Sizes that have no element for each rank
 * are left out. Return: 0; -EINVAL with the sentence, also when no size is left; -ENOMEM. */
int perf_rows_ask(struct ask *a, const struct config *c, const struct perf_options *o,
		  enum coll_kind kind, struct perf_rows *ret, struct err *err);
void perf_rows_deinit(struct perf_rows *r);
double perf_rows_average_busbw(const struct perf_rows *r);
