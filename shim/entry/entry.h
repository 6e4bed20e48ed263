/* For the files that define entry points: prototypes of all of them, the guard that keeps errno,
 * the second name, and calls of the real library. */
#pragma once

#include <errno.h>

#include "base/cleanup.h"
#include "shim/edges/edges.h"
#include "shim/real/nccl-api.h"
#include "shim/real/real.h"

#pragma GCC visibility push(default)
#define NCCL_SYMBOL(how, ret, name, params, args) \
	ret nccl##name params;                    \
	ret pnccl##name params;
#include "shim/real/nccl-symbols.h"
#undef NCCL_SYMBOL
#pragma GCC visibility pop

static inline void restore_errno_(const int *saved)
{
	errno = *saved;
}

/* First line of every entry point: errno is the caller's, and calls of CUDA are not the job's. */
#define ENTER()                                                                         \
	__attribute__((unused)) const int saved_errno_ CLEANUP(restore_errno_) = errno; \
	EDGES_QUIET()

/* pncclX is ncclX, bound here and not through the linker: a profiler that interposes ncclX and
 * calls pncclX reaches the virtual cluster once. */
#define ALSO_PNCCL(name)                          \
	extern __typeof__(nccl##name) pnccl##name \
		__attribute__((alias("nccl" #name), visibility("default")))

/* The real library's function, where it has it. */
#define CALL_REAL(fn, args) (real_get()->fn ? real_get()->fn args : real_missing("nccl" #fn))
