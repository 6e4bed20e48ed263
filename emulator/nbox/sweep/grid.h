/* The points of a sweep: what its command line says of the options of a run, with every list in it
 * taken apart. Each list is an axis; the points are all combinations, the last axis fastest.
 *
 *   --nodes 2,8,32                                where a value of the option has no commas
 *   --what-if add:op=allreduce,delay={0,1,2ms}    in braces where it may have some; any part of it
 *   --list FILE                                   a line is a point: options, as on a command line
 */
#pragma once

#include "base/options.h"
#include "nbox/sweep/values.h"

#define GRID_POINTS_MAX 10000
#define GRID_LABEL_MAX 1024

struct axis {
	char name[64]; /* "nodes", "delay" */
	struct values values;
};

/* One option of the command line, or a file of them. */
struct term {
	char option[32];     /* "--what-if"; "": a file's lines */
	struct values parts; /* texts around the axes: one more than those */
	size_t first_axis, n_axes;
};

struct grid {
	struct axis *axes; /* owned, as all below */
	size_t n_axes;
	struct term *terms;
	size_t n_terms;
	size_t n_points;
};

/* Adds what one word of the command line says. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int grid_take(struct grid *g, const struct option_word *w, struct err *err);
/* Return: 0; negative errno with the sentence. */
int grid_take_file(struct grid *g, const char *path, struct err *err);
void grid_deinit(struct grid *g);

/* The value of an axis at a point. */
const char *grid_value(const struct grid *g, size_t point, size_t axis);
/* "nodes=8,delay=2ms". @buf: GRID_LABEL_MAX bytes. Return: @buf. */
char *grid_label(const struct grid *g, size_t point, char *buf);
/* Adds the words of a point's options, "--nodes=8", to @ret. Return: 0; -EINVAL with the sentence;
 * -ENOMEM. */
int grid_words(const struct grid *g, size_t point, struct values *ret, struct err *err);
