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
