/* What is left of measured times where the links are right: see links.h. */
#pragma once

#include <stdbool.h>

#include "calibrate/sample.h"

/* By what ops between nodes of @kind and @bytes (one rank's part, where ranks have parts) take
 * longer than their links say. */
struct residual {
	uint32_t kind;
	double bytes, factor;
};

struct residuals {
	struct residual *list; /* owned; by kind, bytes */
	size_t n;
};

/* A sample as the residuals see it. */
struct residual_point {
	uint32_t kind;
	int octave; /* of the bytes of a call */
	int band;
	double log; /* of predicted over measured */
};

/* Whether residuals are found from it: an op between nodes, and none of the large ones, whose time
 * is the links'. */
bool residual_counts(const struct sample *s);
/* Those of @n samples, by kind, octave, log. @ret: room for @n. Return: how many. */
size_t residual_points(const struct sample *samples, const double *ns, size_t n,
		       struct residual_point *ret);
/* How many of @n points from the first on are of one kind and octave; @ret_middle: their median, of
 * two in the middle the smaller one: a first launch takes long. */
size_t residual_octave(const struct residual_point *points, size_t n, double *ret_middle);
/* The residuals of points. Return: 0; -ENOMEM. */
int residuals_find(const struct residual_point *points, size_t n, struct residuals *ret);
