/* The simulations' queue of events: a 4-ary min-heap of (time, tie). The tie says what the event
 * is, and orders equal times, never when the event was put in. Times are not negative, so their
 * bits order as the numbers do, and time and tie compare as one 128-bit number. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct sim_event {
	uint64_t tie;
	uint64_t time; /* the bits of a double >= 0 */
};

struct sim_heap {
	struct sim_event *items; /* owned */
	uint64_t n, capacity;
	bool has_hole; /* the top is used up and may be replaced */
};

static inline uint64_t sim_heap_time(double ns)
{
	uint64_t bits;

	ns += 0.0; /* no negative zero */
	memcpy(&bits, &ns, sizeof(bits));
	return bits;
}

static inline double sim_event_ns(const struct sim_event *e)
{
	double ns;

	memcpy(&ns, &e->time, sizeof(ns));
	return ns;
}

static inline unsigned __int128 sim_event_key(const struct sim_event *e)
{
	return (unsigned __int128)e->time << 64 | e->tie;
}

static inline void sim_heap_deinit(struct sim_heap *h)
{
	free(h->items);
	*h = (struct sim_heap){0};
}

static inline int sim_heap_reserve(struct sim_heap *h, uint64_t n)
{
	uint64_t capacity = h->capacity ? h->capacity : 256;
	struct sim_event *items;

	if (n <= h->capacity)
		return 0;
	while (capacity < n)
		capacity *= 2;
	items = realloc(h->items, capacity * sizeof(*items));
	if (!items)
		return -ENOMEM;
	h->items = items;
	h->capacity = capacity;
	return 0;
}

static inline void sim_heap_sift_up(struct sim_heap *h, uint64_t i)
{
	struct sim_event item = h->items[i];
	unsigned __int128 key = sim_event_key(&item);

	while (i > 0) {
		uint64_t parent = (i - 1) / 4;

		if (sim_event_key(&h->items[parent]) <= key)
			break;
		h->items[i] = h->items[parent];
		i = parent;
	}
	h->items[i] = item;
}

static inline int sim_heap_push(struct sim_heap *h, double ns, uint64_t tie)
{
	if (h->n == h->capacity && sim_heap_reserve(h, h->n + 1))
		return -ENOMEM;
	h->items[h->n] = (struct sim_event){tie, sim_heap_time(ns)};
	sim_heap_sift_up(h, h->n++);
	return 0;
}

/* Puts @item at the top, where the smallest was, and orders again. */
static inline void sim_heap_settle(struct sim_heap *h, struct sim_event item)
{
	unsigned __int128 key = sim_event_key(&item);
	uint64_t n = h->n, i = 0;

	for (;;) {
		uint64_t child = 4 * i + 1, end = child + 4, best = child, k;
		unsigned __int128 best_key;

		if (child >= n)
			break;
		if (end > n)
			end = n;
		best_key = sim_event_key(&h->items[child]);
		for (k = child + 1; k < end; k++) {
			unsigned __int128 other = sim_event_key(&h->items[k]);

			best = other < best_key ? k : best;
			best_key = other < best_key ? other : best_key;
		}
		if (best_key >= key)
			break;
		h->items[i] = h->items[best];
		i = best;
	}
	h->items[i] = item;
}

/* Takes the smallest away. The heap must not be empty. */
static inline void sim_heap_drop(struct sim_heap *h)
{
	struct sim_event last = h->items[--h->n];

	if (h->n)
		sim_heap_settle(h, last);
}

/* The event at the top is used up: the next one put in may take its place, until the close. */
static inline void sim_heap_open(struct sim_heap *h)
{
	h->has_hole = true;
}

static inline int sim_heap_put(struct sim_heap *h, double ns, uint64_t tie)
{
	if (!h->has_hole)
		return sim_heap_push(h, ns, tie);
	h->has_hole = false;
	sim_heap_settle(h, (struct sim_event){tie, sim_heap_time(ns)});
	return 0;
}

static inline void sim_heap_close(struct sim_heap *h)
{
	if (h->has_hole)
		sim_heap_drop(h);
	h->has_hole = false;
}
