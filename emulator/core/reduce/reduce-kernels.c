/* The loops of reduce.h. Compiled with -O3, and on x86-64 a second time for
 * AVX2 (REDUCE_V3). dst may be a or b, element for element, so there is never a
 * dependency between iterations; the pragma says so. */
#include "reduce/reduce-kernels.h"

#include <stdint.h>

#include "reduce/smallfloat.h"

#ifdef __clang__
#define VECTORISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define VECTORISE _Pragma("GCC ivdep")
#endif

#define SAME(x) (x)
#define ADD(x, y) ((x) + (y))
#define MUL(x, y) ((x) * (y))
#define IMAX(x, y) ((x) > (y) ? (x) : (y))
#define IMIN(x, y) ((x) < (y) ? (x) : (y))
#define FMAX(x, y) ((x) > (y) || (y) != (y) ? (x) : (y))
#define FMIN(x, y) ((x) < (y) || (y) != (y) ? (x) : (y))

/* S: stored, W: computed with */
#define APPLY(name, S, W, LOAD, STORE, OP)                                  \
	static void name(void *dst, const void *a, const void *b, size_t n) \
	{                                                                   \
		S *d = dst;                                                 \
		const S *p = a, *q = b;                                     \
                                                                            \
		VECTORISE                                                   \
		for (size_t i = 0; i < n; i++) {                            \
			W x = LOAD(p[i]), y = LOAD(q[i]);                   \
                                                                            \
			d[i] = (S)STORE((W)OP(x, y));                       \
		}                                                           \
	}

#define SCALE(name, S, W, LOAD, STORE, SCALAR, EXPR)                               \
	static void name(void *dst, const void *src, const void *scalar, size_t n) \
	{                                                                          \
		S *d = dst;                                                        \
		const S *p = src;                                                  \
		SCALAR;                                                            \
                                                                                   \
		VECTORISE                                                          \
		for (size_t i = 0; i < n; i++) {                                   \
			W x = LOAD(p[i]);                                          \
                                                                                   \
			d[i] = (S)STORE((W)(EXPR));                                \
		}                                                                  \
	}

/* Sums and products of integers are made unsigned and 32 bits or wider: they wrap. */
#define INTEGER(t, S, U)                                                                           \
	APPLY(t##_sum, S, U, (U), (S), ADD)                                                        \
	APPLY(t##_prod, S, U, (U), (S), MUL)                                                       \
	APPLY(t##_max, S, S, SAME, SAME, IMAX)                                                     \
	APPLY(t##_min, S, S, SAME, SAME, IMIN)                                                     \
	SCALE(t##_scale, S, U, (U), (S), const U s = (U) * (const S *)scalar, x * s)               \
	SCALE(t##_divide, S, int64_t, (int64_t), (S), const int64_t s = *(const uint32_t *)scalar, \
	      x / s)

#define FLOATING(t, S, W, LOAD, STORE)                                                          \
	APPLY(t##_sum, S, W, LOAD, STORE, ADD)                                                  \
	APPLY(t##_prod, S, W, LOAD, STORE, MUL)                                                 \
	APPLY(t##_max, S, W, LOAD, STORE, FMAX)                                                 \
	APPLY(t##_min, S, W, LOAD, STORE, FMIN)                                                 \
	SCALE(t##_scale, S, W, LOAD, STORE, const W s = LOAD(*(const S *)scalar), x * s)        \
	SCALE(t##_divide, S, W, LOAD, STORE, const W s = (W)1 / (W) * (const uint32_t *)scalar, \
	      x * s)

INTEGER(i8, int8_t, uint32_t)
INTEGER(u8, uint8_t, uint32_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(u32, uint32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
APPLY(u64_sum, uint64_t, uint64_t, SAME, SAME, ADD)
APPLY(u64_prod, uint64_t, uint64_t, SAME, SAME, MUL)
APPLY(u64_max, uint64_t, uint64_t, SAME, SAME, IMAX)
APPLY(u64_min, uint64_t, uint64_t, SAME, SAME, IMIN)
SCALE(u64_scale, uint64_t, uint64_t, SAME, SAME, const uint64_t s = *(const uint64_t *)scalar, x *s)
SCALE(u64_divide, uint64_t, uint64_t, SAME, SAME, const uint64_t s = *(const uint32_t *)scalar,
      x / s)
FLOATING(f16, uint16_t, float, half_float, float_half)
FLOATING(f32, float, float, SAME, SAME)
FLOATING(f64, double, double, SAME, SAME)
FLOATING(bf16, uint16_t, float, bfloat_float, float_bfloat)
FLOATING(e4m3, uint8_t, float, e4m3_float, float_e4m3)
FLOATING(e5m2, uint8_t, float, e5m2_float, float_e5m2)

#ifdef REDUCE_V3
#define TABLE reduce_kernels_v3
#else
#define TABLE reduce_kernels_base
#endif

#define ROW(t)                                      \
	{                                           \
		t##_sum, t##_prod, t##_max, t##_min \
	}
#define ALL(X)                                                                             \
	{                                                                                  \
		[COLL_INT8] = X(i8), [COLL_UINT8] = X(u8), [COLL_INT32] = X(i32),          \
		[COLL_UINT32] = X(u32), [COLL_INT64] = X(i64), [COLL_UINT64] = X(u64),     \
		[COLL_FLOAT16] = X(f16), [COLL_FLOAT32] = X(f32), [COLL_FLOAT64] = X(f64), \
		[COLL_BFLOAT16] = X(bf16), [COLL_FLOAT8E4M3] = X(e4m3),                    \
		[COLL_FLOAT8E5M2] = X(e5m2)                                                \
	}
#define SCALE_OF(t) t##_scale
#define DIVIDE_OF(t) t##_divide

const struct reduce_kernels TABLE = {
	.apply = ALL(ROW),
	.scale = ALL(SCALE_OF),
	.divide = ALL(DIVIDE_OF),
};
