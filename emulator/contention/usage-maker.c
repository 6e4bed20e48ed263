/* See usage-maker.h. */
#include "contention/usage-maker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void usage_maker_deinit(struct usage_maker *u)
{
	number_table_deinit(&u->at);
	free(u->links);
	*u = (struct usage_maker){0};
}

int usage_maker_add(struct usage_maker *u, uint64_t link, double capacity, double bytes,
		    double connections, bool is_own)
{
	uint32_t *place;
	struct usage_link *l;

	if (!(bytes > 0))
		return 0;
	place = number_table_at(&u->at, link + 1);
	if (!place)
		return -ENOMEM;
	if (!*place && u->n == u->capacity) {
		uint32_t more = u->capacity ? 2 * u->capacity : 64;
		struct usage_link *links = realloc(u->links, more * sizeof(*links));

		if (!links)
			return -ENOMEM;
		u->links = links;
		u->capacity = more;
	}
	if (!*place) {
		u->links[u->n] = (struct usage_link){.link = link, .capacity = capacity};
		*place = ++u->n;
	}
	l = &u->links[*place - 1];
	l->bytes += bytes;
	l->own_bytes += is_own ? bytes : 0;
	l->connections += connections;
	return 0;
}

static int by_link(const void *a, const void *b)
{
	const struct usage_link *x = a, *y = b;

	return (x->link > y->link) - (x->link < y->link);
}

static uint64_t hash_of(const struct usage *u)
{
	uint64_t h = u->n;

	for (uint32_t i = 0; i < u->n; i++) {
		uint64_t words[sizeof(u->links[0]) / sizeof(uint64_t)];

		memcpy(words, &u->links[i], sizeof(words));
		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
			h = (h ^ words[k]) * UINT64_C(0x9e3779b97f4a7c15);
			h ^= h >> 29;
		}
	}
	return h | 1;
}

int usage_maker_end(struct usage_maker *u, struct usage **ret)
{
	struct usage *made = malloc(sizeof(*made) + u->n * sizeof(made->links[0]));

	if (!made)
		return -ENOMEM;
	*made = (struct usage){.n = u->n, .n_refs = 1};
	if (u->n) {
		qsort(u->links, u->n, sizeof(*u->links), by_link);
		memcpy(made->links, u->links, u->n * sizeof(*u->links));
	}
	made->number = hash_of(made);
	*ret = made;
	return 0;
}
