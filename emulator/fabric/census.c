/* See census.h. */
#include "fabric/census.h"

#include <errno.h>
#include <stdlib.h>

/* Adds nodes behind the others. */
static void add(struct census *c, struct census_run run, bool is_other_class)
{
	struct census_run *last = c->n ? &c->runs[c->n - 1] : NULL;

	if (!run.n_nodes || !run.n_ranks)
		return;
	if (last && !is_other_class && last->first + last->n_nodes == run.first &&
	    last->n_ranks == run.n_ranks && last->nics == run.nics)
		last->n_nodes += run.n_nodes;
	else
		c->runs[c->n++] = run;
}

static uint32_t nics_of(const struct fabric *f, uint32_t node, uint32_t from, uint32_t to)
{
	return fabric_nics_of_gpus(fabric_class_of(f, node), from, to);
}

/* Ranks from @low to before @high: in nodes of one class there are a first, a last, and full ones.
 */
static int take_range(const struct fabric *f, uint32_t low, uint32_t high, struct census *c)
{
	uint32_t g = f->gpus_per_node;

	c->runs = calloc(3 * f->n_nodes_runs, sizeof(*c->runs));
	if (!c->runs)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_nodes_runs; i++) {
		uint32_t from = f->nodes[i].first * g, to = from + f->nodes[i].n * g, full;

		from = from < low ? low : from;
		to = to > high ? high : to;
		if (from >= to)
			continue;
		if (from % g || to - from < g) { /* a part of one node */
			uint32_t end = (from / g + 1) * g < to ? (from / g + 1) * g : to;

			add(c,
			    (struct census_run){from / g, 1, end - from,
						nics_of(f, from / g, from % g,
							from % g + end - from)},
			    true);
			from = end;
		}
		full = (to - from) / g;
		add(c, (struct census_run){from / g, full, g, nics_of(f, from / g, 0, g)}, true);
		from += full * g;
		if (from < to)
			add(c,
			    (struct census_run){from / g, 1, to - from,
						nics_of(f, from / g, 0, to - from)},
			    true);
	}
	return 0;
}

static int take_table(const struct fabric *f, const struct membership *m, struct census *c)
{
	struct census_run *nodes = calloc(f->n_nodes, sizeof(*nodes));
	const struct fabric_class *last = NULL;

	c->runs = nodes; /* a run is written where its nodes were read */
	if (!nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_ranks; i++) {
		uint32_t rank = membership_world(m, i), node = rank / f->gpus_per_node;

		nodes[node].n_ranks++;
		nodes[node].nics |=
			fabric_near_nics(fabric_class_of(f, node), rank % f->gpus_per_node);
	}
	for (uint32_t i = 0; i < f->n_nodes; i++) {
		const struct fabric_class *class = fabric_class_of(f, i);

		add(c, (struct census_run){i, 1, nodes[i].n_ranks, nodes[i].nics}, class != last);
		last = class;
	}
	return 0;
}

int census_take(const struct fabric *f, const struct membership *m, struct census *ret)
{
	*ret = (struct census){0};
	if (!m->n_ranks)
		return 0;
	if (!m->table && (m->stride == 1 || m->n_ranks == 1))
		return take_range(f, m->base, m->base + m->n_ranks, ret);
	return take_table(f, m, ret);
}

void census_deinit(struct census *c)
{
	free(c->runs);
	c->runs = NULL;
}

/* The first run that does not end before @node. */
static size_t find(const struct census *c, uint32_t node)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->runs[mid].first + c->runs[mid].n_nodes <= node)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool census_next(const struct fabric *f, const struct census *c, uint32_t *at,
		 struct census_domains *ret)
{
	size_t i = find(c, *at);
	const struct census_run *run = &c->runs[i];
	uint32_t first, n, end;

	if (i == c->n)
		return false;
	first = fabric_domain(f, (run->first > *at ? run->first : *at) * f->gpus_per_node);
	n = fabric_domain_nodes(f, first);
	*ret = (struct census_domains){.first = first, .n_nodes = n, .times = 1};
	end = run->first + run->n_nodes;
	if (first >= run->first && first + n <= end) {
		ret->times = (end - first) / n;
		ret->n_ranks = n * run->n_ranks;
		ret->n_nics = n * (uint32_t)__builtin_popcount(run->nics);
		*at = first + ret->times * n;
		return true;
	}
	for (; i < c->n && c->runs[i].first < first + n; i++) {
		uint32_t from = c->runs[i].first > first ? c->runs[i].first : first;
		uint32_t to = c->runs[i].first + c->runs[i].n_nodes;

		to = to < first + n ? to : first + n;
		ret->n_ranks += (to - from) * c->runs[i].n_ranks;
		ret->n_nics += (to - from) * (uint32_t)__builtin_popcount(c->runs[i].nics);
	}
	*at = first + n;
	return true;
}

uint32_t census_nics(const struct census *c, uint32_t node)
{
	size_t i = find(c, node);

	return i < c->n && c->runs[i].first <= node ? c->runs[i].nics : 0;
}
