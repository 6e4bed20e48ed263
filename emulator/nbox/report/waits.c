/* See waits.h. Points and arrivals are passed in the order in which nboxd took them. For each name
 * is kept which op was the last one before it. */
#include "nbox/report/waits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* A point, or an op's arrival. */
struct place {
	uint64_t order, name, host;
	const struct record_dep *deps;
	uint32_t n_deps;
	bool is_op;
	uint64_t number; /* of those that are asked for, from 1; 0: none of them */
};

struct name {
	uint64_t name;
	bool is_op;
	uint64_t before; /* the last op that is over with it */
};

static int by_order(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	return (a->order > b->order) - (a->order < b->order);
}

static int by_name(const void *pa, const void *pb)
{
	const struct name *a = pa, *b = pb;

	return (a->name > b->name) - (a->name < b->name);
}

/* The places of the rank of @rows, in order. Return: how many. */
static uint64_t take_places(const struct record *rec, const struct record_op *rows, uint64_t n_rows,
			    const uint64_t *at, uint64_t n_at, struct place *places)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < n_rows; i++)
		places[n++] = (struct place){.order = rows[i].order,
					     .name = rows[i].name,
					     .host = rows[i].host,
					     .deps = rows[i].deps,
					     .n_deps = rows[i].n_deps,
					     .is_op = true};
	for (uint64_t i = 0; i < n_at; i++)
		places[at[i]].number = i + 1;
	for (uint64_t i = 0; i < rec->n_points; i++) {
		const struct record_point *p = &rec->points[i];

		if (p->world_rank == rows[0].world_rank)
			places[n++] = (struct place){.order = p->order,
						     .name = p->name,
						     .host = p->host,
						     .deps = p->deps,
						     .n_deps = p->n_deps};
	}
	qsort(places, n, sizeof(*places), by_order);
	return n;
}

static struct name *find(struct name *names, uint64_t n, uint64_t name)
{
	const struct name key = {.name = name};

	return name ? bsearch(&key, names, n, sizeof(*names), by_name) : NULL;
}

static uint64_t later(uint64_t a, const struct name *b)
{
	return b && b->before > a ? b->before : a;
}

/* Return: the last op before the computation that led to @p. An op on a stream of ops stands behind
 * the one before it, and nothing is computed between the two. */
static uint64_t pass(const struct place *p, struct name *names, uint64_t n)
{
	struct name *own = find(names, n, p->name);
	uint64_t before = later(0, find(names, n, p->host)), computed = before;
	bool has_other = false;

	for (uint32_t i = 0; i < p->n_deps; i++)
		has_other |= !p->deps[i].is_same_stream;
	for (uint32_t i = 0; i < p->n_deps; i++) {
		const struct name *dep = find(names, n, p->deps[i].name);

		before = later(before, dep);
		if (dep && !(p->is_op && has_other && dep->is_op && p->deps[i].is_same_stream))
			computed = later(computed, dep);
	}
	if (own) {
		own->is_op = p->is_op;
		own->before = p->number > before ? p->number : before;
	}
	return computed;
}

int waits_find(const struct record *rec, const struct record_op *rows, uint64_t n_rows,
	       const uint64_t *at, uint64_t n, uint64_t *ret)
{
	uint64_t size = n_rows + (rec ? rec->n_points : 0) + 1, n_places;
	CLEANUP(freep) struct place *places = calloc(size, sizeof(*places));
	CLEANUP(freep) struct name *names = calloc(size, sizeof(*names));

	if (!places || !names)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		ret[i] = 0;
	if (!rec || n_rows == 0)
		return 0;
	n_places = take_places(rec, rows, n_rows, at, n, places);
	for (uint64_t i = 0; i < n_places; i++)
		names[i].name = places[i].name;
	qsort(names, n_places, sizeof(*names), by_name);
	for (uint64_t i = 0; i < n_places; i++) {
		uint64_t computed = pass(&places[i], names, n_places);

		if (places[i].number)
			ret[places[i].number - 1] = computed;
	}
	return 0;
}
