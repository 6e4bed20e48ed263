/* Which flow's next message is due first: a 4-ary heap. */
#pragma once

#include <stdint.h>

struct pace_item {
	uint64_t due_ns;
	uint64_t number; /* orders those that are due together */
	uint32_t place;  /* in the heap, from 1; 0: not in it */
};

struct pace {
	struct pace_item **items; /* owned; the items are their flows' */
	uint32_t n, room;
};

void pace_deinit(struct pace *p);
/* Room for @n items, after which pace_put() cannot fail. Return: 0; -ENOMEM. */
int pace_reserve(struct pace *p, uint32_t n);
/* Puts it in, or moves it. */
void pace_put(struct pace *p, struct pace_item *item, uint64_t due_ns);
void pace_remove(struct pace *p, struct pace_item *item); /* one that is not in it is allowed */
struct pace_item *pace_first(const struct pace *p);       /* NULL: none */
