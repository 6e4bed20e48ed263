/* The critical path of an iteration: from its end back over what each row waited for last. Where an
 * op waited for another rank, it goes on there. */
#pragma once

#include "nbox/why/chains.h"
#include "nbox/why/found.h"

/* The part of @w that is like @like, made where there is none; NULL: no memory. */
struct why_part *path_part(struct why *w, const struct why_part *like);
/* When an op of a real rank begins: all that it needs have come. */
double path_begin(const struct chain *c, uint32_t row);
/* Fills @w's parts: from path_begin() of row @to of @w->rank back to @from_ns. Their sum is that
 * time. Return: 0; -ENOMEM. */
int path_walk(struct chains *chains, uint32_t to, double from_ns, struct why *w);
/* Fills @w's exposed, by its slacks' groups: what the chain's rows in (from_ns, to_ns] say. Return:
 * 0; -ENOMEM. */
int path_exposed(const struct chain *c, double from_ns, double to_ns, struct why *w);
