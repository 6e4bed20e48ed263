/* How one unit task is carried out: one device sends the same bytes to A hosts with B devices each.
 * A host's NIC is what it waits for; it sends and receives at once, and any two hosts reach each
 * other at the NIC's rate. With t the time of the whole through one NIC, no start-up times, and
 * devices of a host that reach each other at once (AlpaComm, Zhuang et al., MLSys 2023,
 * section 3.1):
 *
 *   sendrecv    a copy to each device, one after another                  A B t
 *   local-ag    a part of 1/B to each device of a host, which gather      A t
 *   global-ag   a part of 1/(A B) to each device; all gather in a ring    t + (A B - 1)/(A B) t
 *   broadcast   K pieces go from host to host in a chain                  t + (A - 1)/K t
 *   signal      one byte: what remains when communication is free
 *
 * The paper's own formula for broadcast, t + A t/K, counts a piece too many. The ring of global-ag
 * takes each hop at the NIC's rate, as its formula does, also inside a host. */
#pragma once

#include <stdint.h>

enum mesh_strategy {
	MESH_SENDRECV,
	MESH_LOCAL_AG,
	MESH_GLOBAL_AG,
	MESH_BROADCAST,
	MESH_SIGNAL,
	MESH_STRATEGIES
};
extern const char *const mesh_strategy_names[MESH_STRATEGIES + 1]; /* ends with NULL */

#define MESH_K 100                /* pieces, where nobody says */
#define MESH_K_BEST 0             /* as many as are fastest */
#define MESH_K_ENDLESS UINT32_MAX /* broadcast takes t: what planners of the paper count with */

struct mesh_net {
	double nic;             /* bytes a ns */
	double alpha_ns;        /* of each message between hosts, before its bytes */
	double inside;          /* bytes a ns between devices of a host; INFINITY: at once */
	double inside_alpha_ns; /* >= 0 */
	uint32_t k;             /* pieces of a broadcast, or MESH_K_... */
};

/* The devices that receive, host by host. */
struct mesh_group {
	uint32_t hosts, devices; /* devices on each host */
};

/* How long the task holds its hosts. */
double mesh_strategy_ns(enum mesh_strategy s, uint64_t bytes, struct mesh_group to,
			const struct mesh_net *net);
/* When the receiver at place @place of the group, host by host, has all of it. */
double mesh_strategy_done_ns(enum mesh_strategy s, uint64_t bytes, struct mesh_group to,
			     uint32_t place, const struct mesh_net *net);
/* The K with which a broadcast is fastest: near sqrt((sum of hops' times - the slowest) / its
 * start-up time), the best whole number there. */
uint32_t mesh_best_k(uint64_t bytes, struct mesh_group to, const struct mesh_net *net);
