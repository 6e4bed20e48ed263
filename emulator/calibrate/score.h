/* How far a curve is from what was measured. */
#pragma once

#include "fitted/curve.h"

struct score {
	double gmae, mape, max; /* ratios: geometric mean, mean and largest of the errors */
	size_t n;               /* points; 0: the others mean nothing */
};

struct score_sum {
	double log_sum, sum, max;
	size_t n;
};

/* An error of nothing would be a logarithm of nothing. */
#define SCORE_LEAST 4e-4

void score_add(struct score_sum *s, double predicted, double measured);
struct score score_of(const struct score_sum *s);
/* Of @c at @points. */
struct score score_curve(const struct curve *c, const struct curve_point *points, size_t n);
