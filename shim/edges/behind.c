/* See behind.h. */
#include "shim/edges/behind.h"

#include <stddef.h>

static void drop_one(struct behind *b, uint32_t i)
{
	b->edges[i] = b->edges[--b->n];
}

bool behind_has(const struct behind *b, const struct edge *e)
{
	for (uint32_t i = 0; i < b->n; i++) {
		const struct edge *own = &b->edges[i];

		if (own->stream == e->stream &&
		    (own->at > e->at || (own->at == e->at && own->name == e->name)))
			return true;
	}
	return false;
}

bool behind_covers(const struct behind *b, const struct behind *other)
{
	for (uint32_t i = 0; i < other->n; i++)
		if (!behind_has(b, &other->edges[i]))
			return false;
	return true;
}

const struct edge *behind_own(const struct behind *b, uint32_t stream)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->edges[i].stream == stream)
			return &b->edges[i];
	return NULL;
}

void behind_add(struct behind *b, const struct edge *e)
{
	uint32_t oldest = 0;

	if (behind_has(b, e))
		return;
	for (uint32_t i = b->n; i-- > 0;)
		if (b->edges[i].stream == e->stream && b->edges[i].at < e->at)
			drop_one(b, i);
	if (b->n == BEHIND_MAX) {
		for (uint32_t i = 1; i < b->n; i++)
			if (b->edges[i].at < b->edges[oldest].at)
				oldest = i;
		drop_one(b, oldest);
	}
	b->edges[b->n++] = *e;
}

void behind_merge(struct behind *b, const struct behind *other)
{
	for (uint32_t i = 0; i < other->n; i++)
		behind_add(b, &other->edges[i]);
}

void behind_drop(struct behind *b, const struct behind *other, uint32_t keep)
{
	for (uint32_t i = b->n; i-- > 0;)
		if (b->edges[i].stream != keep && behind_has(other, &b->edges[i]))
			drop_one(b, i);
}

void behind_drop_before(struct behind *b, uint64_t at)
{
	for (uint32_t i = b->n; i-- > 0;)
		if (b->edges[i].at < at)
			drop_one(b, i);
}
