/* See pace.h. */
#include "traffic/pace.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

void pace_deinit(struct pace *p)
{
	free(p->items);
	*p = (struct pace){0};
}

int pace_reserve(struct pace *p, uint32_t n)
{
	uint32_t room = p->room ? p->room : 64;
	struct pace_item **items;

	if (n <= p->room)
		return 0;
	while (room < n)
		room *= 2;
	items = realloc(p->items, room * sizeof(struct pace_item *));
	if (!items)
		return -ENOMEM;
	p->items = items;
	p->room = room;
	return 0;
}

static bool is_before(const struct pace_item *a, const struct pace_item *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void set(struct pace *p, uint32_t i, struct pace_item *item)
{
	p->items[i] = item;
	item->place = i + 1;
}

/* @item belongs at @i or further up. */
static void rise(struct pace *p, uint32_t i, struct pace_item *item)
{
	while (i > 0 && is_before(item, p->items[(i - 1) / 4])) {
		set(p, i, p->items[(i - 1) / 4]);
		i = (i - 1) / 4;
	}
	set(p, i, item);
}

/* ... or further down. */
static void sink(struct pace *p, uint32_t i, struct pace_item *item)
{
	for (;;) {
		uint32_t child = 4 * i + 1, best = child;

		if (child >= p->n)
			break;
		for (uint32_t k = child + 1; k < child + 4 && k < p->n; k++)
			if (is_before(p->items[k], p->items[best]))
				best = k;
		if (!is_before(p->items[best], item))
			break;
		set(p, i, p->items[best]);
		i = best;
	}
	set(p, i, item);
}

static void settle(struct pace *p, uint32_t i, struct pace_item *item)
{
	if (i > 0 && is_before(item, p->items[(i - 1) / 4]))
		rise(p, i, item);
	else
		sink(p, i, item);
}

void pace_put(struct pace *p, struct pace_item *item, uint64_t due_ns)
{
	item->due_ns = due_ns;
	if (item->place) {
		settle(p, item->place - 1, item);
		return;
	}
	assert(p->n < p->room);
	rise(p, p->n++, item);
}

void pace_remove(struct pace *p, struct pace_item *item)
{
	uint32_t i = item->place - 1;
	struct pace_item *last;

	if (!item->place)
		return;
	item->place = 0;
	last = p->items[--p->n];
	if (last != item)
		settle(p, i, last);
}

struct pace_item *pace_first(const struct pace *p)
{
	return p->n ? p->items[0] : NULL;
}
