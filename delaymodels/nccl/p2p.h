/* What NCCL makes of sends and receives, and of the kinds that it builds from them: AllToAll,
 * Gather, Scatter. */
#ifndef NCCL_P2P_H
#define NCCL_P2P_H

#include "cost.h"

struct p2p {
	uint32_t proto, n_channels; /* of one peer */
	uint64_t chunk_bytes;
};

/* @bytes: of one peer. */
void p2p_make(const struct comm *c, uint64_t bytes, struct p2p *ret);

#endif
