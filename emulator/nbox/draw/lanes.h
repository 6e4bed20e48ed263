/* A timeline: lanes below each other, with bars, over one axis of time. */
#pragma once

#include <stddef.h>

#include "nbox/draw/svg.h"

struct lane_bar {
	double from, to; /* in the axis's unit */
	enum svg_role role;
	char tip[160];
};

struct lane {
	char name[64]; /* stands above it */
	struct lane_bar *bars;
	size_t n;
};

struct lanes {
	const struct lane *lanes;
	size_t n;
	double length; /* the axis goes from 0 to it */
	const char *label;
};

double lanes_height(const struct lanes *l);
/* Bars outside of the axis are cut. */
void lanes_draw(const struct lanes *l, FILE *to, double x, double y, double width);

/* Boxes of colours with what they stand for, in a line. */
struct lane_key {
	enum svg_role role;
	const char *text;
};
void lanes_keys(const struct lane_key *keys, size_t n, FILE *to, double x, double y);
