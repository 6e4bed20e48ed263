/* See latency.h. */
#include "fabric/latency.h"

#include <math.h>

#include "fabric/leaf.h"
#include "fabric/link-number.h"

static struct fabric_link link_of(const struct fabric *f, enum link_kind kind, uint32_t a,
				  uint32_t b, unsigned direction)
{
	struct fabric_link l;

	fabric_link(f, link_number(kind, a, b, direction), &l);
	return l;
}

double latency_door(const struct fabric *f, const struct census *c, uint32_t domain,
		    unsigned direction)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < fabric_domain_nodes(f, domain); i++) {
		uint32_t bits = census_nics(c, domain + i);

		for (; bits; bits &= bits - 1)
			least = fmin(least, link_of(f, LINK_NIC, domain + i,
						    (uint32_t)__builtin_ctz(bits), direction)
						    .latency_ns);
	}
	return least;
}

/* Least latency of the leaves of a row. */
static double row_latency(const struct fabric *f, uint32_t node, unsigned direction)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < leaf_rails(f); i++)
		least = fmin(least,
			     link_of(f, LINK_LEAF, leaf_of(f, node, i), 0, direction).latency_ns);
	return least;
}

/* The least of a switch's cables, one way. */
static double cables_latency(const struct fabric *f, uint32_t at, unsigned direction)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < f->n_cables; i++) {
		bool is_first = f->cables[i].from == at;

		if (is_first || f->cables[i].to == at)
			least = fmin(least, link_of(f, LINK_CABLE, i, 0, direction ^ !is_first)
						    .latency_ns);
	}
	return least;
}

/* Between the switches of two domains at least. */
static double network_latency(const struct fabric *f, uint32_t from, uint32_t to)
{
	uint64_t links[FABRIC_PATH_MAX];
	double sum = 0;
	int n;

	if (!leaf_is_cut(f))
		return 0;
	if (f->network.kind == FABRIC_CABLES) {
		if (f->node_switch[from] == f->node_switch[to])
			return 0;
		return fmax(cables_latency(f, f->node_switch[from], LINK_OUT),
			    cables_latency(f, f->node_switch[to], LINK_IN));
	}
	if (from / f->network.nodes_per_leaf == to / f->network.nodes_per_leaf)
		return 0;
	n = fabric_path(f, from * f->gpus_per_node, to * f->gpus_per_node, FABRIC_NIC_NEAR, links);
	for (int i = 0; i < n; i++) {
		enum link_kind kind = link_kind(links[i]);
		struct fabric_link l;

		fabric_link(f, links[i], &l);
		if (kind == LINK_POD || kind == LINK_GROUP)
			sum += l.latency_ns;
	}
	return sum + row_latency(f, from, LINK_UP) + row_latency(f, to, LINK_DOWN);
}

double latency_least(const struct fabric *f, const struct census *c, uint32_t src, uint32_t dst)
{
	uint32_t from = fabric_domain(f, src), to = fabric_domain(f, dst), n = f->gpus_per_node;

	if (from == to)
		return link_of(f, LINK_GPU, src / n, src % n, LINK_OUT).latency_ns +
		       link_of(f, LINK_GPU, dst / n, dst % n, LINK_IN).latency_ns;
	return latency_door(f, c, from, LINK_OUT) + network_latency(f, from, to) +
	       latency_door(f, c, to, LINK_IN);
}
