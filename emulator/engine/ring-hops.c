/* See ring-hops.h. */
#include "engine/ring-hops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ring_hops_deinit(struct ring_hops *h)
{
	free(h->of);
	h->of = NULL;
}

/* The lane's number for a class; RING_CLASSES: there are too many. */
static uint32_t class_number(struct ring_hops *h, uint32_t number, uint32_t place)
{
	for (uint32_t i = 0; i < h->n; i++)
		if (h->number[i] == number)
			return i;
	if (h->n == RING_CLASSES)
		return RING_CLASSES;
	h->number[h->n] = number;
	h->place[h->n] = place;
	return h->n++;
}

int ring_hops_load(struct ring_hops *h, struct symmetry *y, uint16_t lane)
{
	uint32_t n = y->s->n_ranks, known = y->period ? y->period : n, r;

	if (!h->of)
		h->of = malloc(n);
	if (!h->of)
		return -ENOMEM;
	h->n = 0;
	for (r = 0; r < known; r++) {
		uint32_t number = y->class_of(y->ctx, ring_rank(y->s, lane, r),
					      ring_behind(y->s, lane, r), lane);
		uint32_t class = class_number(h, number, r);

		if (number == UINT32_MAX || class == RING_CLASSES)
			return SYMMETRY_NONE;
		h->of[r] = (uint8_t) class;
	}
	for (; r < n; r++)
		h->of[r] = h->of[r - known];
	return 0;
}

int ring_known_add(struct ring_known *k, const struct ring_hops *h, uint16_t lane, uint32_t n_ranks)
{
	void *grown = realloc(k->items, (k->n + 1) * sizeof(*k->items));
	uint8_t *of = malloc(n_ranks);

	k->items = grown ? grown : k->items;
	if (!grown || !of) {
		free(of);
		return -ENOMEM;
	}
	memcpy(of, h->of, n_ranks);
	k->items[k->n].hops = *h;
	k->items[k->n].hops.of = of;
	k->items[k->n++].lane = lane;
	return 0;
}

void ring_known_deinit(struct ring_known *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		ring_hops_deinit(&k->items[i].hops);
	free(k->items);
}

static bool are_equal(const struct ring_hops *a, const struct ring_hops *b, uint32_t n)
{
	return a->n == b->n && memcmp(a->number, b->number, a->n * sizeof(a->number[0])) == 0 &&
	       memcmp(a->of, b->of, n) == 0;
}

uint32_t ring_known_find(const struct ring_known *k, uint32_t from, const struct ring_hops *h,
			 uint32_t n_ranks)
{
	while (from < k->n && !are_equal(&k->items[from].hops, h, n_ranks))
		from++;
	return from;
}

uint32_t ring_hops_period(const struct ring_hops *h, const struct symmetry *y)
{
	uint32_t n = y->s->n_ranks, per_node = y->s->ranks_per_node, r;

	if (h->n == 1)
		return 1;
	if (y->period && y->period < n)
		return y->period;
	if (per_node < 2 || n % per_node)
		return n;
	for (r = per_node; r < n; r++)
		if (h->of[r] != h->of[r - per_node])
			return n;
	return per_node;
}

int ring_hops_price(const struct ring_hops *h, struct symmetry *y, uint16_t lane, uint64_t bytes,
		    struct ring_costs *ret)
{
	struct nbox_delay d;

	for (uint32_t i = 0; i < h->n; i++) {
		int r = symmetry_cost(y, ring_rank(y->s, lane, h->place[i]),
				      ring_behind(y->s, lane, h->place[i]), lane, 0, bytes, &d);

		if (r)
			return r;
		ret->occupancy[i] = d.occupancy_ns;
		ret->latency[i] = d.latency_ns;
	}
	return 0;
}
