/* Chooses the reduction loops. See reduce.h. */
#include "reduce/reduce.h"

#include "reduce/reduce-kernels.h"
#include "reduce/smallfloat.h"

static const struct reduce_kernels *kernels(void)
{
#ifdef REDUCE_HAS_V3
	if (__builtin_cpu_supports("avx2"))
		return &reduce_kernels_v3;
#endif
	return &reduce_kernels_base;
}

void reduce_apply(enum coll_dtype t, enum coll_redop op, void *dst, const void *a, const void *b,
		  size_t n)
{
	kernels()->apply[t][op](dst, a, b, n);
}

void reduce_scale(enum coll_dtype t, void *dst, const void *src, const void *scalar, size_t n)
{
	kernels()->scale[t](dst, src, scalar, n);
}

void reduce_average(enum coll_dtype t, void *dst, const void *src, uint32_t by, size_t n)
{
	kernels()->divide[t](dst, src, &by, n);
}

int reduce_is_float(enum coll_dtype t)
{
	return t == COLL_FLOAT16 || t == COLL_FLOAT32 || t == COLL_FLOAT64 || t == COLL_BFLOAT16 ||
	       t == COLL_FLOAT8E4M3 || t == COLL_FLOAT8E5M2;
}
