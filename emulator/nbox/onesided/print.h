/* What nbox onesided says: text, JSON, CSV and SVG. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "onesided/onesided.h"

#define COMPARED_POINTS 201

struct compared {
	struct onesided o;
	struct onesided_collective collective;
	struct onesided_stores stores;
	double until_ns; /* the later end of both */
	/* bytes that the busiest link has sent, at even times up to @until_ns */
	double collective_sent[COMPARED_POINTS], stores_sent[COMPARED_POINTS];
};

/* Return: 0; -ENOMEM. */
int compare_onesided(const struct onesided *o, struct compared *ret);

void compared_print(const struct compared *c, FILE *to);
json_t *compared_json(const struct compared *c); /* NULL: no memory */
void compared_csv(const struct compared *c, FILE *to);
void compared_svg(const struct compared *c, FILE *to);
