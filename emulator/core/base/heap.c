/* Binary min-heap in an array; see heap.h. Sifting moves a hole instead of
 * swapping items. */
#include "base/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static bool is_less(struct heap_item a, struct heap_item b)
{
	return a.key < b.key || (a.key == b.key && a.id < b.id);
}

int heap_init(struct heap *h, size_t capacity)
{
	h->items = NULL;
	h->n = h->capacity = 0;
	if (capacity == 0)
		return 0;
	h->items = calloc(capacity, sizeof(h->items[0]));
	if (!h->items)
		return -ENOMEM;
	h->capacity = capacity;
	return 0;
}

void heap_deinit(struct heap *h)
{
	free(h->items);
	h->items = NULL;
	h->n = h->capacity = 0;
}

static int heap_grow(struct heap *h)
{
	size_t capacity = h->capacity ? h->capacity * 2 : 16;
	struct heap_item *items;

	if (capacity < h->capacity || capacity > SIZE_MAX / sizeof(*items))
		return -ENOMEM;
	items = realloc(h->items, capacity * sizeof(*items));
	if (!items)
		return -ENOMEM;
	h->items = items;
	h->capacity = capacity;
	return 0;
}

int heap_push(struct heap *h, double key, uint64_t id)
{
	struct heap_item item = {.key = key, .id = id};
	size_t hole;

	assert(key == key); /* not a number has no place in an order */
	if (h->n == h->capacity) {
		int r = heap_grow(h);

		if (r < 0)
			return r;
	}
	hole = h->n++;
	while (hole > 0) {
		size_t parent = (hole - 1) / 2;

		if (!is_less(item, h->items[parent]))
			break;
		h->items[hole] = h->items[parent];
		hole = parent;
	}
	h->items[hole] = item;
	return 0;
}

bool heap_peek(const struct heap *h, struct heap_item *ret)
{
	if (h->n == 0)
		return false;
	*ret = h->items[0];
	return true;
}

bool heap_pop(struct heap *h, struct heap_item *ret)
{
	struct heap_item last;
	size_t hole = 0, n;

	if (h->n == 0)
		return false;
	*ret = h->items[0];
	n = --h->n;
	last = h->items[n];
	for (;;) {
		size_t child = 2 * hole + 1;

		if (child >= n)
			break;
		if (child + 1 < n && is_less(h->items[child + 1], h->items[child]))
			child++;
		if (!is_less(h->items[child], last))
			break;
		h->items[hole] = h->items[child];
		hole = child;
	}
	h->items[hole] = last;
	return true;
}
