/* Binary min-heap of (key, id) pairs. Ties are broken by the smaller id, so
 * that the order of equal keys never depends on the order of insertion. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_item {
	double key; /* or ns as an integer below 2^53 */
	uint64_t id;
};

struct heap {
	struct heap_item *items; /* owned */
	size_t n, capacity;
};

int heap_init(struct heap *h, size_t capacity); /* 0 or -ENOMEM */
void heap_deinit(struct heap *h);
int heap_push(struct heap *h, double key, uint64_t id); /* grows; 0 or -ENOMEM */
/* Return: false when empty; else *ret is the smallest item, still inside. */
bool heap_peek(const struct heap *h, struct heap_item *ret);
bool heap_pop(struct heap *h, struct heap_item *ret);
