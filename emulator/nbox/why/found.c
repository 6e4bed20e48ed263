/* See found.h. */
#include "nbox/why/found.h"

#include <stdlib.h>

uint32_t why_group_of(const struct why *w, uint32_t number)
{
	uint32_t i = 0;

	while (i < w->n_groups && (number >= w->groups[i].n_has || !w->groups[i].has[number]))
		i++;
	return i;
}

bool why_group_is_used(const struct why *w, uint32_t group)
{
	for (uint32_t i = 0; i < w->n_slacks; i++)
		if (w->slacks[i].group == group)
			return true;
	return false;
}

double why_slowed_ns(const struct why *w, uint32_t rank)
{
	double ns = 0;

	for (uint32_t i = 0; i < w->n_parts; i++)
		if (w->parts[i].kind == WHY_SLOWED && w->parts[i].own == rank)
			ns += w->parts[i].ns;
	return ns;
}

void why_deinit(struct why *w)
{
	for (uint32_t i = 0; i < w->n_groups; i++)
		free(w->groups[i].has);
	free(w->groups);
	free(w->parts);
	free(w->exposed);
	free(w->late);
	free(w->slacks);
	free(w->won);
}
