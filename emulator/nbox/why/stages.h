/* Whether the run is a pipeline, what its messages cost, and what eager 1F1B would win. */
#pragma once

#include "nbox/why/found.h"

/* Fills @w's pipeline, once its parts are known. @g: rows, with the record that is looked at. A run
 * that is no pipeline has none. Return: 0; -ENOMEM. */
int stages_find(const struct rows_graph *g, struct why *w);
