/* How much longer ops may take before the iteration does. */
#pragma once

#include "nbox/why/chains.h"
#include "nbox/why/found.h"

/* From one row to another. */
struct slack_step {
	uint32_t from, to;
};

/* Adds to @w's slacks: of each kind of op of each group, as @on has @n iterations. Return: 0;
 * -ENOMEM. */
int slack_find(const struct chains_rank *on, const struct slack_step *steps, uint64_t n,
	       struct why *w);
