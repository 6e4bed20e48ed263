/* The least value of a function of a few numbers, without its slope: the simplex of J. A. Nelder
 * and R. Mead, "A simplex method for function minimization", The Computer Journal 7(4), 1965. */
#pragma once

#include <stddef.h>

#define MINIMIZE_MAX 8

struct minimize_bounds {
	double low, high; /* <= 0, >= 0 */
};

/* The search begins at @at, with steps of a tenth of the way to the further bound, and leaves there
 * what is least. @cost: negative: stop, it cannot be computed. About @budget questions. Return: the
 * least cost; negative: that of @cost. */
double minimize(double (*cost)(void *ctx, const double *x), void *ctx, size_t n,
		const struct minimize_bounds *bounds, int budget, double *at);
