/* See timeline.h: which ranks a timeline is of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "timeline/node.h"
#include "topology/template.h"

struct timelines *timelines_free(struct timelines *t)
{
	for (uint32_t i = 0; t && t->of && i < t->n_real; i++) {
		while (t->of[i].oldest) {
			t->of[i].oldest->n_holders = 0;
			node_forget(t->of[i].oldest);
		}
		free(t->of[i].spare);
		free(t->of[i].ranks);
	}
	if (t) {
		free(t->of);
		free(t->real);
		free(t->template);
		free(t->index);
		free(t);
	}
	return NULL;
}

static void timelines_freep(struct timelines **t)
{
	timelines_free(*t);
}

/* Gives each rank of the world to its template. */
static int share_out(struct timelines *t, const struct templates *templates)
{
	uint32_t world = topology_world(&t->topology);
	CLEANUP(freep) uint32_t *n = calloc(t->n_real, sizeof(*n));

	if (!n)
		return -ENOMEM;
	templates_count(templates, n);
	for (uint32_t i = 0; i < t->n_real; i++) {
		t->of[i].all = t;
		t->of[i].ranks = malloc(n[i] * sizeof(*t->of[i].ranks));
		if (!t->of[i].ranks)
			return -ENOMEM;
	}
	for (uint32_t rank = 0; rank < world; rank++) {
		uint32_t i = template_of(templates, rank);

		t->template[rank] = i;
		if (t->real[i] == rank)
			t->of[i].self = t->of[i].n_ranks;
		t->index[rank] = t->of[i].n_ranks;
		t->of[i].ranks[t->of[i].n_ranks++] = rank;
	}
	return 0;
}

int timelines_new(const struct topology *topology, const uint32_t *real, size_t n_real,
		  const uint32_t *classes, const struct timeline_what_if *what_if,
		  struct timelines **ret)
{
	const struct membership world = {.n_ranks = topology_world(topology), .stride = 1};
	CLEANUP(timelines_freep) struct timelines *t = calloc(1, sizeof(*t));
	CLEANUP(templates_deinit) struct templates templates = {0};
	int r;

	if (!t)
		return -ENOMEM;
	t->topology = *topology;
	if (what_if)
		t->what_if = *what_if;
	t->n_real = (uint32_t)n_real;
	t->real = malloc(n_real * sizeof(*real));
	t->template = malloc(world.n_ranks * sizeof(*t->template));
	t->index = malloc(world.n_ranks * sizeof(*t->index));
	t->of = calloc(n_real, sizeof(*t->of));
	if (!t->real || !t->template || !t->index || !t->of)
		return -ENOMEM;
	memcpy(t->real, real, n_real * sizeof(*real));
	r = templates_init(&templates, &world, topology->gpus_per_node, classes, real,
			   (uint32_t)n_real);
	if (r == 0)
		r = share_out(t, &templates);
	if (r == 0)
		*ret = steal_ptr(t);
	return r;
}
