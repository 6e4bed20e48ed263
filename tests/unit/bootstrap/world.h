/* Communicators for tests: where ranks stand, what real ones tell, and what each must get to see,
 * by a table of all ranks. */
#pragma once

#include "rank.h"

#define WORLD_RANKS_MAX 512

struct world {
	uint32_t n, node[WORLD_RANKS_MAX], template[WORLD_RANKS_MAX], real[64], n_real;
};

/* @n_nodes of @per_node ranks, the first @n_real_nodes of them real, ranks dealt out by chance
 * (@is_odd) or node by node. */
void world_make(struct world *w, struct rng *rng, uint32_t n_real_nodes, uint32_t n_nodes,
		uint32_t per_node, bool is_odd);
/* The part of @w that @ranks [n] are; ranks count anew. */
void world_part(const struct world *w, const uint32_t *ranks, uint32_t n, struct world *ret);
/* What the real rank tells of itself. @seed: another for each communicator. */
void world_peer(const struct nccl_records *t, const struct world *w, uint32_t rank, uint64_t seed,
		uint8_t *ret_record);
void world_graph(const struct nccl_records *t, const struct world *w, uint32_t rank, uint64_t seed,
		 uint8_t *ret_record);
/* Does what a rank got of contacts hold? @p fails where not. */
void world_check_contacts(struct player *p, const struct world *w, const struct rank_comm *c,
			  const uint8_t *all, bool is_shared);
/* Peer and graph all-gathers of @c, checked. */
void world_init(struct rank_comm *c, const struct world *w, uint64_t seed);
/* A later all-gather of @bytes, checked; nothing where the version has none. */
void world_copied(struct rank_comm *c, const struct world *w, uint32_t bytes, uint8_t salt);
