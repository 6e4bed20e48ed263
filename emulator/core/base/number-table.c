/* See number-table.h. */
#include "base/number-table.h"

#include <stdlib.h>

void number_table_deinit(struct number_table *t)
{
	free(t->key);
	free(t->value);
	*t = (struct number_table){0};
}

/* Where @key is, or belongs. There is room. */
static uint32_t slot_of(const struct number_table *t, uint64_t key)
{
	uint64_t h = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i = (uint32_t)(h >> 32) & (t->capacity - 1);

	while (t->key[i] && t->key[i] != key)
		i = (i + 1) & (t->capacity - 1);
	return i;
}

static int grow(struct number_table *t)
{
	struct number_table g = {.n = t->n, .capacity = t->capacity ? 4 * t->capacity : 64};

	g.key = calloc(g.capacity, sizeof(*g.key));
	g.value = calloc(g.capacity, sizeof(*g.value));
	if (!g.key || !g.value) {
		number_table_deinit(&g);
		return -1;
	}
	for (uint32_t i = 0; i < t->capacity; i++)
		if (t->key[i]) {
			uint32_t to = slot_of(&g, t->key[i]);

			g.key[to] = t->key[i];
			g.value[to] = t->value[i];
		}
	number_table_deinit(t);
	*t = g;
	return 0;
}

uint32_t *number_table_at(struct number_table *t, uint64_t key)
{
	uint32_t i;

	if (t->capacity) {
		i = slot_of(t, key);
		if (t->key[i])
			return &t->value[i];
	}
	if (2 * t->n >= t->capacity && grow(t) < 0)
		return NULL;
	i = slot_of(t, key);
	t->key[i] = key;
	t->n++;
	return &t->value[i];
}

uint32_t number_table_get(const struct number_table *t, uint64_t key)
{
	uint32_t i = t->capacity ? slot_of(t, key) : 0;

	return t->capacity && t->key[i] ? t->value[i] : 0;
}
