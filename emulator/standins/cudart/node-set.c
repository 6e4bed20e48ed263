/* See node-set.h. */
#include "node-set.h"

#include <errno.h>
#include <stdlib.h>

void node_set_clear(struct node_set *set)
{
	set->n = 0;
}

void node_set_deinit(struct node_set *set)
{
	free(set->ids);
	*set = (struct node_set){0};
}

int node_set_add(struct node_set *set, unsigned id)
{
	unsigned capacity = set->capacity ? set->capacity * 2 : 4;
	unsigned *ids;

	for (unsigned i = 0; i < set->n; i++)
		if (set->ids[i] == id)
			return 0;
	if (set->n == set->capacity) {
		ids = realloc(set->ids, capacity * sizeof(*ids));
		if (!ids)
			return -ENOMEM;
		set->ids = ids;
		set->capacity = capacity;
	}
	set->ids[set->n++] = id;
	return 0;
}

int node_set_merge(struct node_set *set, const struct node_set *other)
{
	int r = 0;

	for (unsigned i = 0; i < other->n && r == 0; i++)
		r = node_set_add(set, other->ids[i]);
	return r;
}
