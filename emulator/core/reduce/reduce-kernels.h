/* One set of reduction loops; reduce.c chooses the set that the processor can run. */
#pragma once

#include <stddef.h>

#include "schedule/coll.h"

typedef void (*reduce_fn)(void *dst, const void *a, const void *b, size_t n);
typedef void (*scale_fn)(void *dst, const void *src, const void *scalar, size_t n);

struct reduce_kernels {
	reduce_fn apply[COLL_DTYPES][4]; /* sum, prod, max, min */
	scale_fn scale[COLL_DTYPES];     /* by an element of the type */
	scale_fn divide[COLL_DTYPES];    /* by a uint32_t: x / by, floats x * (1/by) */
};

extern const struct reduce_kernels reduce_kernels_base, reduce_kernels_v3;
