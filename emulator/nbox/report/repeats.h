/* What repeats in a sequence of numbers: candidates for the length of the repeating unit, and where
 * a unit of a given length repeats. Pure; knows nothing of ops. */
#pragma once

#include <stdint.h>

#define REPEATS_PERIODS_MAX 64
#define REPEATS_SAMPLE \
	(UINT64_C(1) << 18) /* numbers looked at to find candidates: those in the middle */

/* A part in which each number equals the one @period before it, as long as it can be; at least two
 * units. */
struct repeats_stretch {
	uint64_t first, n;
};

static inline uint64_t repeats_end(const struct repeats_stretch *s)
{
	return s->first + s->n;
}

double repeats_median(double *values, uint64_t n); /* sorts them; of none: 0 */

/**
 * repeats_periods - lengths that units may have, the shortest first
 *
 * The length of each unit that repeats often is among them; others may be, too. Takes O(n log n).
 *
 * Return: how many, at most REPEATS_PERIODS_MAX; -ENOMEM.
 */
int repeats_periods(const uint64_t *seq, uint64_t n, uint64_t ret_periods[REPEATS_PERIODS_MAX]);

/**
 * repeats_stretches - where a unit of @period numbers repeats; units with the same numbers in any
 * order count as one
 * @weights: n + 1 prefix sums: @weights[i] is the sum of the weights of the first i numbers
 * @ret: the caller's to free; in order, without overlap
 *
 * Only the unit whose stretches weigh most is returned (of the first 16 of this length). Takes
 * O(n).
 *
 * Return: how many stretches; -ENOMEM.
 */
int64_t repeats_stretches(const uint64_t *seq, uint64_t n, uint64_t period, const double *weights,
			  struct repeats_stretch **ret);

/* Is each k-th of @values larger than @limit, and no other? Return: k; 0: no. *ret_gap: their mean.
 */
uint64_t repeats_above(const double *values, uint64_t n, double limit, double *ret_gap);

#define REPEATS_WAVE_MAX 1024 /* numbers looked at: the first ones */

/**
 * repeats_wave - do @values, none below 0, come in the same order after each k, large and small
 * ones?
 *
 * Such as the times of a forward pass and of the backward pass behind it, layer by layer. A few
 * that stand out among k like ones are no wave. Takes O(n^2 log n), of REPEATS_WAVE_MAX numbers at
 * most.
 *
 * Return: k, at least 4; 0: no.
 */
uint64_t repeats_wave(const double *values, uint64_t n);
