/* See fabric.h. */
#include "fabric/fabric.h"

#include <stdlib.h>

struct fabric *fabric_free(struct fabric *f)
{
	if (!f)
		return NULL;
	free(f->source);
	free(f->nodes);
	free(f->node_switch);
	free(f->cables);
	free(f->next_cable);
	free(f->changes);
	free(f->residuals);
	free(f);
	return NULL;
}

struct fabric *fabric_new(const struct fabric_class *class, const struct fabric_network *network,
			  uint32_t n_nodes)
{
	struct fabric *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->nodes = calloc(1, sizeof(*f->nodes));
	if (!f->nodes)
		return fabric_free(f);
	f->classes[0] = *class;
	f->n_classes = 1;
	f->nodes[0] = (struct fabric_nodes){.first = 0, .n = n_nodes, .class = 0};
	f->n_nodes_runs = 1;
	f->n_nodes = n_nodes;
	f->gpus_per_node = class->n_gpus;
	f->network = *network;
	return f;
}

static const struct fabric_nodes *run_of(const struct fabric *f, uint32_t node)
{
	size_t low = 0, high = f->n_nodes_runs;

	while (high - low > 1) { /* the last that does not begin behind @node */
		size_t mid = low + (high - low) / 2;

		if (f->nodes[mid].first <= node)
			low = mid;
		else
			high = mid;
	}
	return &f->nodes[low];
}

const struct fabric_class *fabric_class_of(const struct fabric *f, uint32_t node)
{
	return &f->classes[run_of(f, node)->class];
}

uint32_t fabric_domain(const struct fabric *f, uint32_t world_rank)
{
	uint32_t node = world_rank / f->gpus_per_node;
	const struct fabric_nodes *run = run_of(f, node);
	uint32_t domain_nodes = f->classes[run->class].domain_nodes;

	return node - (node - run->first) % domain_nodes;
}

uint32_t fabric_domain_nodes(const struct fabric *f, uint32_t domain)
{
	const struct fabric_nodes *run = run_of(f, domain);
	uint32_t n = f->classes[run->class].domain_nodes, rest = run->first + run->n - domain;

	return n < rest ? n : rest;
}
