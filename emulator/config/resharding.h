/* The what-if `xmesh`: what if the job's framework carried out a cross-mesh resharding by a plan
 * (mesh/mesh.h) instead of plain sends and receives. No delay and no model of ops: the model that
 * the user has times everything else, and, for the times without what-ifs, the plain sends, too.
 * op/resharding.h says what becomes of a step of the job.
 *
 *   xmesh:strategy=broadcast,tensor=1024x1024x512,dtype=f32,src=RS0R@2x4,dst=S0RR@2x4
 *                               world ranks 0 to 7 send, 8 to 15 receive, unless senders= and
 *                               receivers= say otherwise: the mesh's devices, host by host
 *   xmesh:strategy=broadcast    nothing is said of the tensor: what goes to whom is assumed
 *
 * The network is the paper's where nic= is given: a NIC a host, nothing else takes time but alpha=.
 * Else it is the cluster's: all NICs of a node together, its latencies, its NVLinks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fabric/fabric.h"
#include "mesh/strategy.h"
#include "topology/topology.h"

#define RESHARDING_NOWHERE UINT32_MAX

struct resharding {
	const char *text; /* borrowed, as typed */
	enum mesh_strategy strategy;
	struct mesh_net net;
	uint32_t n_senders, n_receivers; /* 0: nothing is said of the tensor */
	uint32_t n_world;
	uint32_t *place; /* owned; of a world rank: its number among the senders, then the
			    receivers; RESHARDING_NOWHERE */
	uint64_t *bytes; /* owned; by sender, then receiver: what the one has and the other needs */
	uint64_t *needs; /* owned; by receiver: its tile */
	double *done_ns; /* owned; by place: when it is over, from the plan's beginning */
	double end_ns;   /* the last of these */
	uint32_t n_hosts;
	uint32_t *nodes;  /* owned; by host of the senders, then of the receivers */
	double *crossing; /* owned; bytes from host, then to host, all in all */
};

/* For `nbox models`. */
extern const char resharding_help[];

/* Is it "xmesh", or "xmesh:..."? */
bool resharding_is_one(const char *text);
/* @f: NULL: the network is @t's. Return: 0; negative errno with the sentence. */
int resharding_parse(const char *text, const struct topology *t, const struct fabric *f,
		     struct resharding *ret, struct err *err);
void reshardings_free(struct resharding *list, size_t n);
