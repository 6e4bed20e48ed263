/* What a fitted model says: times by size, and whether it is sound. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "calibrate/skew.h"
#include "fitted/fitted-file.h"

struct eval_sizes {
	double min, max, factor;
};

/* A table for each curve, or for @n_ranks (0: those of the curve) on @n_nodes nodes (0: as many
 * ranks on each as were measured). */
void eval_print(const struct fitted *f, const struct eval_sizes *sizes, uint32_t n_ranks,
		uint32_t n_nodes, FILE *to);
/* Of an all-to-all that is not even. @n_nodes: as there. Return: whether there is a curve of that
 * kind. */
bool eval_skew(const struct fitted *f, const struct skew *skew, uint32_t n_ranks, uint32_t n_nodes,
	       FILE *to);
/* A line a curve. Return: whether all are sound. */
bool eval_check(const struct fitted *f, FILE *to);
