/* The ops of a rank's host in a trace, each with what it launched. Of the operators of a framework
 * that contain each other the outermost one counts; ranges that a user or the profiler named are no
 * operators. A call outside of all operators is an op, too, and so is what the GPU did where the
 * trace does not say who launched it. */
#pragma once

#include <stdbool.h>

#include "trace/trace.h"

struct call {
	uint32_t op;       /* of the host, or of the GPU; number in the trace */
	uint32_t first, n; /* what it launched: in kernels */
	bool is_of_host;
	bool is_sync; /* it waits for the GPU */
};

struct calls {
	struct call *list;      /* owned; by start */
	uint32_t *kernels;      /* owned; ops of the trace, in the order of their launches */
	struct calls_end *ends; /* owned; by iteration; NULL where calls are by start */
	uint32_t n, n_kernels, n_ends;
};

/* When what the rank's GPU did in an iteration is over. */
struct calls_end {
	uint32_t step;
	double all, exchanges; /* exchanges: of these alone; -INFINITY: it has none */
};

/* Those of the rank number @rank. Return: 0; -ENOMEM. */
int host_calls_find(const struct trace *t, uint32_t rank, struct calls *ret);
void host_calls_deinit(struct calls *c);

/* Those of all ranks, by iteration and then by start. Return: owned, by rank; NULL: no memory. */
struct calls *host_calls_by_step(const struct trace *t);
/* Of @c, sorted so, those of iteration @step; TRACE_NONE: all. Borrows from @c. */
struct calls host_calls_of_step(const struct trace *t, const struct calls *c, uint32_t step);
/* When iteration @step is over at the GPU of @c's rank; -INFINITY where that has nothing of it. */
struct calls_end host_calls_end(const struct calls *c, uint32_t step);
void host_calls_free(struct calls *list, uint32_t n_ranks);
