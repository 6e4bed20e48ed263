/* How much longer ops may take before the iteration does. */
#pragma once

#include "nbox/why/chain.h"
#include "nbox/why/found.h"

/* From one row to another. */
struct slack_step {
	uint32_t from, to;
};

/* The median of @n iterations of @c if each op of @s took @ns more. NAN: no memory. */
double slack_iteration(const struct chain *c, const struct why *w, const struct why_slack *s,
		       const struct slack_step *steps, uint64_t n, double ns);
/* Fills @w's slacks: of each kind of op of each group. Return: 0; -ENOMEM. */
int slack_find(const struct chain *c, const struct slack_step *steps, uint64_t n, struct why *w);
