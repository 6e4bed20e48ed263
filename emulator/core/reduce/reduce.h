/* Arithmetic of the reductions, for every data type of NCCL 2.28.
 *
 * Small floats are widened to float, reduced, and rounded to nearest even: that
 * gives the correctly rounded half and bfloat16 results. 8-bit floats saturate at
 * their largest finite value, as NVIDIA's conversions do. max and min return
 * the other operand when one is NaN. Integers wrap around. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "schedule/coll.h"

/* dst[i] = a[i] (op) b[i] for n elements; dst may be a or b, and nothing else may
 * overlap. op: sum, prod, max, min. */
void reduce_apply(enum coll_dtype t, enum coll_redop op, void *dst, const void *a, const void *b,
		  size_t n);

/* dst[i] = src[i] * *scalar, which is one element of the same type. dst may be src. */
void reduce_scale(enum coll_dtype t, void *dst, const void *src, const void *scalar, size_t n);

/* dst[i] = src[i] * (1/by) for floats, src[i] / by truncated for integers. */
void reduce_average(enum coll_dtype t, void *dst, const void *src, uint32_t by, size_t n);

int reduce_is_float(enum coll_dtype t);
