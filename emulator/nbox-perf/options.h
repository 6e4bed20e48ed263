/* The options of nbox-perf (tests/bench/bench-nccl.c), the one table of them: nbox perf checks what
 * it was given before anything is started or made, the program reads them again. libc only, no
 * allocation, no state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

extern const char *const perf_op_names[PERF_OPS];
extern const char *const perf_redop_names[PERF_REDOPS];
extern const char *const perf_dtype_names[PERF_DTYPES];

struct perf_options {
	enum perf_op op;
	enum perf_dtype dtype;
	enum perf_redop redop;
	int root;
	size_t min_bytes, max_bytes, step_bytes; /* sizes as in nccl-tests; a step of 0: @factor */
	double factor;
	int iters, warmup;
	bool in_place, is_unchecked, is_silent, has_max, wants_help;
	const char *json, *id_file; /* borrowed from the command line; NULL: none */
	int printer;
};

enum { PERF_WHY_MAX = 256, PERF_NOT_MINE = 1 };

void perf_options_init(struct perf_options *o);
/**
 * perf_options_take - argv[*index], and its value, if it is one of these options
 * @is_user: only those that nbox perf has, too
 * @index: moved behind it when it was taken
 * @ret_why: at least PERF_WHY_MAX bytes; the sentence
 *
 * Return: 0; PERF_NOT_MINE; -EINVAL with the sentence.
 */
int perf_options_take(struct perf_options *o, bool is_user, int argc, char *const argv[],
		      int *index, char *ret_why);
/* What must hold of all together. Return: 0; -EINVAL with the sentence. */
int perf_options_check(const struct perf_options *o, char *ret_why);
/* A line each. */
void perf_options_help(bool is_user, FILE *to);
/* The names of those that nbox perf has, with dashes, for suggestions. Return: how many; at most
 * @max. */
size_t perf_options_names(const char **ret_names, size_t max);
