/* See ring.h. */
#include "nboxd/store/gloo/ring.h"

#include <errno.h>
#include <stdlib.h>

#include "topology/template.h"

struct gloo_half {
	uint32_t rank, number; /* number: 0, 1 */
	struct buffer bytes;
};

struct gloo_edge {
	uint32_t rank;
	uint64_t n_put, n_got; /* messages that it sent, and received */
};

void gloo_ring_deinit(struct gloo_ring *r)
{
	for (size_t i = 0; i < r->n_halves; i++)
		buffer_deinit(&r->halves[i].bytes);
	free(r->halves);
	free(r->edges);
	*r = (struct gloo_ring){0};
}

static struct gloo_edge *edge_of(struct gloo_ring *r, uint32_t rank)
{
	struct gloo_edge *edges;

	for (size_t i = 0; i < r->n_edges; i++)
		if (r->edges[i].rank == rank)
			return &r->edges[i];
	edges = realloc(r->edges, (r->n_edges + 1) * sizeof(*edges));
	if (!edges)
		return NULL;
	r->edges = edges;
	edges[r->n_edges] = (struct gloo_edge){.rank = rank};
	return &edges[r->n_edges++];
}

static const struct gloo_half *half_find(const struct gloo_ring *r, uint32_t rank, uint32_t number)
{
	for (size_t i = 0; i < r->n_halves; i++)
		if (r->halves[i].rank == rank && r->halves[i].number == number)
			return &r->halves[i];
	return NULL;
}

static bool is_real(const struct gloo_ranks *g, uint32_t rank)
{
	for (size_t i = 0; i < g->n_real; i++)
		if (g->real[i] == rank)
			return true;
	return false;
}

/* Whose part message @number of @sender is. */
static uint32_t part_of(const struct gloo_ranks *g, uint32_t sender, uint64_t number)
{
	return (uint32_t)((sender + g->members.n_ranks - number / 2) % g->members.n_ranks);
}

static uint64_t n_messages(const struct gloo_ranks *g)
{
	return 2 * ((uint64_t)g->members.n_ranks - 1);
}

int gloo_ring_put(struct gloo_ring *r, const struct gloo_ranks *g, uint32_t from, const void *bytes,
		  size_t n)
{
	struct gloo_edge *e = is_real(g, from) ? edge_of(r, from) : NULL;
	struct gloo_half half = {0}, *halves;

	if (!e)
		return is_real(g, from) ? -ENOMEM : -EPROTO;
	if (e->n_put == n_messages(g))
		return -EPROTO;
	half.rank = part_of(g, from, e->n_put);
	half.number = e->n_put & 1;
	e->n_put++;
	/* what went through virtual ranks before is known here, or is their own */
	if (!is_real(g, half.rank) || half_find(r, half.rank, half.number))
		return 0;
	halves = realloc(r->halves, (r->n_halves + 1) * sizeof(*halves));
	if (!halves)
		return -ENOMEM;
	r->halves = halves;
	if (buffer_add(&half.bytes, bytes, n) < 0)
		return -ENOMEM;
	halves[r->n_halves++] = half;
	return 0;
}

int gloo_ring_get(struct gloo_ring *r, const struct gloo_ranks *g, uint32_t to, size_t n,
		  const uint8_t **ret)
{
	struct gloo_edge *e = is_real(g, to) ? edge_of(r, to) : NULL;
	const struct gloo_half *half;
	struct templates templates;
	uint32_t part;

	if (!e)
		return is_real(g, to) ? -ENOMEM : -EPROTO;
	if (e->n_got == n_messages(g))
		return -EPROTO;
	part = part_of(g, (to + g->members.n_ranks - 1) % g->members.n_ranks, e->n_got);
	if (templates_init(&templates, &g->members, g->gpus_per_node, g->classes, g->real,
			   g->n_real) < 0)
		return -ENOMEM;
	part = g->real[template_of(&templates, part)];
	templates_deinit(&templates);
	half = half_find(r, part, e->n_got & 1);
	if (!half)
		return 0;
	if (half->bytes.n != n)
		return -EPROTO;
	e->n_got++;
	*ret = half->bytes.n ? half->bytes.data : (const uint8_t *)"";
	return 1;
}

bool gloo_ring_is_over(const struct gloo_ring *r, const struct gloo_ranks *g)
{
	uint64_t n_put = 0, n_got = 0, n_all = 0;

	for (size_t i = 0; i < g->n_real; i++)
		n_all += is_real(g, (g->real[i] + 1) % g->members.n_ranks) ? 0 : n_messages(g);
	for (size_t i = 0; i < r->n_edges; i++) {
		n_put += r->edges[i].n_put;
		n_got += r->edges[i].n_got;
	}
	return n_put == n_all && n_got == n_all;
}
