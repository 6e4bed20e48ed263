/* The virtual cluster: nodes of equal size, and two kinds of hop. World rank r lives on node r /
 * gpus_per_node. Immutable once made. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum hop { HOP_INTRA, HOP_INTER, HOP_SELF };

struct hop_cost {
	double latency_ns;
	double bytes_per_ns; /* > 0 */
};

struct topology {
	uint32_t n_nodes;
	uint32_t gpus_per_node;
	struct hop_cost intra, inter;
	/* at which a rank adds what it receives to its own; 0: at once */
	double reduce_bytes_per_ns;
	double gpu_speed; /* times that of the GPUs that the job runs on; 0: the same */
};

/* One node's worth of ranks; NVLink-like intra, 400 Gbps 5 us inter. */
void topology_default(struct topology *t);
uint32_t topology_world(const struct topology *t);
uint32_t topology_node(const struct topology *t, uint32_t world_rank);
/* "512 ranks (64 nodes x 8)", for people. Return: @buf. */
char *topology_print(const struct topology *t, char *buf, size_t size);
enum hop topology_hop(const struct topology *t, uint32_t a, uint32_t b);
