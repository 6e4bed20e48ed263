/* The sigmoid with three regions, by variable projection: for a given x0 and k the other two of the
 * middle region follow from two linear equations, so that a grid and a pattern search over those
 * two are enough. x0, k and L are bounded, else a stretch that has no bend gets an L of 1e5.
 *
 * The regions are found as the authors of the form do (Lin et al., curve.h): region 3 begins two
 * octaves above the largest size with less than 95 % of the most bandwidth; region 1 ends where
 * time first grows by more than a tenth an octave. */
#pragma once

#include <stdbool.h>

#include "fitted/curve.h"

/* Return: whether there are enough points, also in the middle region. */
bool fit_sigmoid(struct curve *c, const struct curve_point *points, size_t n);
