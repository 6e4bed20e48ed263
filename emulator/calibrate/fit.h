/* Fits the forms of a curve to its points, and picks the one that predicts best what it was not
 * fitted to. Pure, and the same each time: no chance in it. */
#pragma once

#include "base/err.h"
#include "calibrate/score.h"
#include "fitted/curve.h"

/* Too few points, or none where the form needs them. */
enum { FIT_IMPOSSIBLE = 1 };

#define FIT_POINTS_MIN 5

/* Fits @form to @n @points; takes the place of what @c had of that form. Return: 0;
 * FIT_IMPOSSIBLE; -ENOMEM. */
int fit_form(struct curve *c, enum curve_form form, const struct curve_point *points, size_t n);

struct fit_scores {
	struct score held_out[CURVE_FORMS]; /* n 0: the form cannot be fitted */
};

#define FIT_AUTO CURVE_FORMS /* the form with the least geometric mean of errors */

/* Each fifth of the points, but not the outermost two, is held out in turn; the errors are those at
 * points held out. Then fits @form to all. Return: 0: @c has its form, parameters and errors;
 * -EINVAL with the sentence: too few points; -ENOMEM. */
int fit_curve(struct curve *c, enum curve_form form, struct fit_scores *ret, struct err *err);
