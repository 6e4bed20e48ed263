/* See bounds.h. */
#include "nbox/topo/bounds.h"

int topo_bounds(const struct fabric *f, struct topo_bound ret[TOPO_BOUNDS])
{
	static const enum coll_kind kinds[TOPO_BOUNDS] = {COLL_ALLREDUCE, COLL_ALLGATHER,
							  COLL_REDUCESCATTER, COLL_ALLTOALL};
	struct membership m = {.n_ranks = f->n_nodes * f->gpus_per_node, .stride = 1};

	if (m.n_ranks < 2)
		return 0;
	for (int i = 0; i < TOPO_BOUNDS; i++) {
		struct topo_bound *b = &ret[i];
		uint64_t bytes = kinds[i] == COLL_ALLREDUCE ? TOPO_BOUND_BYTES
							    : TOPO_BOUND_BYTES / m.n_ranks;

		b->kind = kinds[i];
		b->ns = fabric_bound(f, b->kind, bytes, 0, &m, b->where, sizeof(b->where));
		b->busbw =
			b->ns > 0 ? coll_busbw_factor(b->kind, m.n_ranks) * TOPO_BOUND_BYTES / b->ns
				  : 0;
	}
	return TOPO_BOUNDS;
}
