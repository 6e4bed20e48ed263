/* What must hold of a curve, looked at from the least to the most bytes that were measured, and two
 * octaves beyond: more bytes never take less time, and no time jumps. */
#pragma once

#include "fitted/curve.h"

struct check {
	double fall, fall_bytes; /* the largest: by which ratio time falls, and where; 0: nowhere */
	double jump, jump_bytes; /* the same of a step between neighbours */
};

/* What a step may be. */
#define CHECK_JUMP_MAX 0.05

/* @ns: the time of @bytes. */
struct check check_times(double (*ns)(const struct curve *c, double bytes), const struct curve *c);
/* By how much the equations of region 1 and 2 differ at m1, and those of 2 and 3 at m2: what the
 * crossings bridge. */
void check_bridges(const struct curve *sigmoid, double *ret_at_m1, double *ret_at_m2);
