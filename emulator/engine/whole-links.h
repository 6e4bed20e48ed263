/* What a plan without messages puts on the links between NICs: NVLSTree's two trees over domains.
 * PAT's steps are not placed; NVLS stays in its domain. */
#pragma once

#include "contention/usage-maker.h"
#include "engine/price.h"

/* @p's members stand domain by domain. @is_own: of the op itself. Return: 0; -ENOMEM. O(ranks). */
int whole_links_add(const struct price *p, const struct nbox_plan *plan, struct usage_maker *maker,
		    bool is_own);
/* The least that these links take for it; 0: none, or out of memory. */
double whole_links_ns(const struct price *p, const struct nbox_plan *plan);
