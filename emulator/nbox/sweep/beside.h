/* Points of another sweep, drawn and printed beside those of this one: live runs beside re-timed
 * ones. A point stands beside one of this sweep when the settings that both have are equal. */
#pragma once

#include <jansson.h>

#include "nbox/sweep/point.h"

struct beside_point {
	double x; /* on this sweep's axis */
	struct point_result result;
	char *dir;       /* owned */
	json_t *setting; /* borrowed from @all: a text for each axis by its name */
};

struct beside {
	char name[64];             /* "live", or the folder's */
	json_t *all;               /* owned: its sweep.json */
	struct beside_point *list; /* owned; those that have steps */
	size_t n, n_without;       /* with steps; without */
};

/* @dir: of the other sweep, for points of @g. Return: 0; negative errno with the sentence, such as
 * for points without a value on the axis that @g is drawn over, or all without steps. */
int beside_read(const char *dir, const struct grid *g, struct beside *ret, struct err *err);
void beside_deinit(struct beside *b);
/* Its setting on an axis; "": none. */
const char *beside_value(const struct beside_point *b, const char *axis);
/* The median iteration of those that stand beside @point of @g, in ms; their median, where they are
 * several. NAN: none does. */
double beside_ms(const struct beside *b, const struct grid *g, size_t point);
