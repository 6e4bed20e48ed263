/* NCCL's graphs: how many channels a domain has for rings, trees and NVLS, and how fast one is. */
#ifndef NCCL_GRAPH_H
#define NCCL_GRAPH_H

#include "nbox-delaymodel.h"

/* Of a path, as NCCL numbers them: the cost model compares. */
enum path_type {
	PATH_LOC,
	PATH_NVLINK,
	PATH_NVB, /* NVLink through another GPU */
	PATH_PIX = 4,
	PATH_PXB,
	PATH_PXN = 7, /* to a NIC by NVLink and another GPU */
	PATH_PHB,
	PATH_SYS
};

struct graph {
	uint32_t n_channels;
	float intra_bw, inter_bw; /* of a channel, GB/s */
	enum path_type intra_type, inter_type;
	int is_same;        /* all channels visit the GPUs in one order */
	int is_simple_tree; /* a chain instead of a balanced tree: it costs 15 % */
	float latency_us;   /* that the network's plug-in tells NCCL */
};

struct graphs {
	struct graph ring, tree, nvls;
};

/* The graphs of a domain with @n_gpus of the op's ranks; @is_inter: those that leave it. */
void graphs_find(const struct nbox_fabric *f, uint32_t n_gpus, int is_inter, struct graphs *ret);
/* NCCL takes the weakest of all nodes. */
void graphs_weaken(struct graphs *g, const struct graphs *other);

#endif
