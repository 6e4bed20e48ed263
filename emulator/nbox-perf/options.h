/* What the options of nbox-perf mean (base/options.def has the table): `nbox perf` checks what it
 * was given before anything is started or made, nbox-perf reads it again. The three enums are in
 * the order of the table's choices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"

enum perf_op {
	PERF_ALLREDUCE,
	PERF_ALLGATHER,
	PERF_REDUCESCATTER,
	PERF_BROADCAST,
	PERF_REDUCE,
	PERF_ALLTOALL,
	PERF_SENDRECV,
	PERF_OPS
};
enum perf_redop { PERF_SUM, PERF_PROD, PERF_MAX, PERF_MIN, PERF_AVG, PERF_REDOPS };
enum perf_dtype {
	PERF_INT8,
	PERF_UINT8,
	PERF_INT32,
	PERF_UINT32,
	PERF_INT64,
	PERF_UINT64,
	PERF_HALF,
	PERF_FLOAT,
	PERF_DOUBLE,
	PERF_BFLOAT16,
	PERF_F8E4M3,
	PERF_F8E5M2,
	PERF_DTYPES
};

struct perf_options {
	enum perf_op op;
	enum perf_dtype dtype;
	enum perf_redop redop;
	int root;
	size_t min_bytes, max_bytes, step_bytes; /* sizes as in nccl-tests; a step of 0: @factor */
	double factor;
	int iters, warmup;
	bool in_place, is_unchecked, is_silent, has_max;
	const char *json, *id_file; /* borrowed from the command line; NULL: none */
	int printer;
};

void perf_options_init(struct perf_options *o); /* the defaults */
/* Return: 0; OPTION_NONE it is no option of nbox-perf; -EINVAL with the sentence. */
int perf_options_take(struct perf_options *o, const struct option_word *w, struct err *err);
/* What must hold of all together. Return: 0; -EINVAL with the sentence. */
int perf_options_check(const struct perf_options *o, struct err *err);
/* The size behind @bytes. Always larger: 0 times a factor would never end. */
size_t perf_options_next(const struct perf_options *o, size_t bytes);
