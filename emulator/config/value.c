/* See value.h. */
#include "config/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void value_clear(struct config_value *v)
{
	for (size_t i = 0; i < v->n_items; i++)
		free(v->items[i].text);
	free(v->items);
	*v = (struct config_value){0};
}

bool value_is_again(const struct config_value *v, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(v->items[k].text, v->items[i].text) == 0)
			return true;
	return false;
}

int value_add(struct config_value *v, enum config_source source, const char *text, unsigned line,
	      unsigned column)
{
	struct config_item *items;
	char *copy = strdup(text);

	items = copy ? realloc(v->items, (v->n_items + 1) * sizeof(*items)) : NULL;
	if (!items) {
		free(copy);
		return -ENOMEM;
	}
	v->items = items;
	items[v->n_items++] = (struct config_item){.text = copy, .line = line, .column = column};
	v->source = source;
	return 0;
}
