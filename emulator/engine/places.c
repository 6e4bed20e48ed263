/* See places.h. */
#include "engine/places.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Fills @ret_turn: of each domain, at its first node, the number of domains that appear before it.
 * Return: do all ranks of a domain stand together? */
static bool take_turns(const struct fabric *f, const struct membership *m, uint32_t *ret_turn)
{
	uint32_t n = 0, last = UINT32_MAX;
	bool is_together = true;

	for (uint32_t i = 0; i < f->n_nodes; i++)
		ret_turn[i] = UINT32_MAX;
	for (uint32_t r = 0; r < m->n_ranks; r++) {
		uint32_t domain = fabric_domain(f, membership_world(m, r));

		is_together &= domain == last || ret_turn[domain] == UINT32_MAX;
		if (ret_turn[domain] == UINT32_MAX)
			ret_turn[domain] = n++;
		last = domain;
	}
	return is_together;
}

struct item {
	uint32_t turn, world, rank;
};

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	return x->world < y->world ? -1 : x->world > y->world;
}

int places_init(struct places *p, const struct fabric *f, const struct membership *m)
{
	CLEANUP(freep) uint32_t *turn = NULL;
	CLEANUP(freep) struct item *items = NULL;

	*p = (struct places){.of = NULL};
	if (!m->table)
		return 0;
	turn = malloc(f->n_nodes * sizeof(*turn));
	if (!turn)
		return -ENOMEM;
	if (take_turns(f, m, turn))
		return 0;
	items = malloc(m->n_ranks * sizeof(*items));
	p->of = malloc(m->n_ranks * sizeof(*p->of));
	p->world = malloc(m->n_ranks * sizeof(*p->world));
	if (!items || !p->of || !p->world) {
		places_deinit(p);
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < m->n_ranks; r++) {
		uint32_t world = membership_world(m, r);

		items[r] = (struct item){turn[fabric_domain(f, world)], world, r};
	}
	qsort(items, m->n_ranks, sizeof(*items), compare);
	for (uint32_t i = 0; i < m->n_ranks; i++) {
		p->world[i] = items[i].world;
		p->of[items[i].rank] = i;
	}
	p->members = (struct membership){.n_ranks = m->n_ranks, .table = p->world};
	return 0;
}

void places_deinit(struct places *p)
{
	free(p->of);
	free(p->world);
	*p = (struct places){.of = NULL};
}
