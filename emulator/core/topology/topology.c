/* The virtual cluster; see topology.h. */
#include "topology/topology.h"

#include <assert.h>
#include <stdio.h>

void topology_default(struct topology *t)
{
	*t = (struct topology){
		.n_nodes = 1,
		.gpus_per_node = 8,
		/* One direction of a fourth-generation NVLink port group (18 links of
		 * 25 GB/s) less its protocol overhead; a hop costs about 1 us. */
		.intra = {.latency_ns = 1000, .bytes_per_ns = 400},
		.inter = {.latency_ns = 5000, .bytes_per_ns = 50}, /* 400 Gbps */
	};
}

uint32_t topology_world(const struct topology *t)
{
	return t->n_nodes * t->gpus_per_node;
}

uint32_t topology_node(const struct topology *t, uint32_t world_rank)
{
	assert(t->gpus_per_node > 0);
	return world_rank / t->gpus_per_node;
}

char *topology_print(const struct topology *t, char *buf, size_t size)
{
	uint32_t n = topology_world(t);

	snprintf(buf, size, "%u rank%s (%u node%s x %u)", n, n == 1 ? "" : "s", t->n_nodes,
		 t->n_nodes == 1 ? "" : "s", t->gpus_per_node);
	return buf;
}

enum hop topology_hop(const struct topology *t, uint32_t a, uint32_t b)
{
	if (a == b)
		return HOP_SELF;
	return topology_node(t, a) == topology_node(t, b) ? HOP_INTRA : HOP_INTER;
}
