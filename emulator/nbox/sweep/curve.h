/* The points of a sweep as curves: iteration time over the axis that has the most numbers. */
#pragma once

#include "nbox/sweep/point.h"

#define CURVE_NO_AXIS ((size_t)-1)

/* @ret_unit: of its numbers. Return: the axis; CURVE_NO_AXIS: none has two numbers of one unit. */
size_t curve_axis(const struct grid *g, const char **ret_unit);
/* Marks on each curve along @axis the point from which the slope sets in: before it, what the
 * setting adds is hidden by computation. From it on, no part of the curve that lies beside it is
 * less than half as steep as the steepest one. None where the first part is that steep already, or
 * the curve rises by less than 2 %. @ret: a mark a point. Return: 0; -ENOMEM. */
int curve_knees(const struct grid *g, const struct point_result *results, size_t axis, bool *ret);
