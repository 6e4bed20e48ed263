/* NCCL's cost model: what an op of a communicator takes by each algorithm and protocol. */
#ifndef NCCL_COST_H
#define NCCL_COST_H

#include "graph.h"
#include "setting.h"

struct decisions_comm;

/* What NCCL knows of a communicator. */
struct comm {
	const struct setting *setting;
	uint32_t n_ranks, n_nodes, most_local, least_local;
	uint32_t sm_min, sm_max, cpu; /* enum nbox_cpu */
	int has_nvls;                 /* the hardware, and NCCL_NVLS_ENABLE */
	int has_no_order;             /* nbox_fabric's */
	struct graphs graphs;
	uint32_t n_channels, n_nvls_channels;
	uint32_t n_nvlinks; /* of a GPU to the switch, or to another GPU */
	/* What a decision file says of it (decided.h); NULL: it has no such communicator */
	const struct decisions_comm *told;
	uint32_t n_p2p_channels, n_p2p_peer_channels; /* 0: by the rule (p2p.c) */
};

struct cost {
	float bw,
		latency_us; /* bytes / 1000 / bw + latency is the time in us; bw 0: not possible */
	const char *why_not;
};

/* @n_ranks > 1. */
void comm_make(const struct setting *s, const struct nbox_fabric *f, uint32_t n_ranks,
	       struct comm *ret);
/* Channels, once the graphs are there. */
void comm_set_channels(struct comm *c);
/* Why the user or the environment does not allow it; static; NULL: they do. */
const char *cost_forbidden(const struct setting *s, uint32_t kind, uint32_t algo, uint32_t proto);
/* How often @bytes take the latency. @n_channels: of the communicator. */
double cost_latencies(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto,
		      uint64_t bytes, uint64_t n_channels);
/* What share of the bandwidth they have. */
float cost_share(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto,
		 uint64_t bytes);
int cost_exists(uint32_t kind, uint32_t algo, uint32_t proto);
/* What the graph's channels carry together, before it is counted by the bytes of the call, GB/s. */
float cost_bus_bw(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto);
void cost_find(const struct comm *c, uint32_t kind, uint32_t algo, uint32_t proto,
	       struct cost *ret);
/* Of @bytes, the larger of a rank's buffers, in us; negative: not possible. */
float cost_us(const struct comm *c, const struct cost *cost, uint32_t kind, uint32_t algo,
	      uint32_t proto, uint64_t bytes);

#endif
