/* See scenario-list.h. */
#include "config/scenario-list.h"

#include <errno.h>
#include <stdlib.h>

int scenario_list_add(struct scenario_list *l, char *text, unsigned line, unsigned column)
{
	struct scenario_item *more = text ? realloc(l->items, (l->n + 1) * sizeof(*more)) : NULL;

	if (!more) {
		free(text);
		return -ENOMEM;
	}
	l->items = more;
	more[l->n++] = (struct scenario_item){text, line, column};
	return 0;
}

void scenario_list_deinit(struct scenario_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i].text);
	free(l->items);
	*l = (struct scenario_list){0};
}
