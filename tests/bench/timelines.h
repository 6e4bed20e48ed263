/* Rows of bench-scale: what the timelines of a world cost. */
#pragma once

#include <stdio.h>

#include "engine/delay.h"
#include "topology/topology.h"

/* @open: a model with one what-if (NULL: none), for that world; NULL after it has said why. Prints
 * a table, and rows to @json (NULL: none) after others. Return: 0 or 1. */
int timelines_rows(struct delay_chain *(*open)(const char *what_if, const struct topology *t),
		   FILE *json);
