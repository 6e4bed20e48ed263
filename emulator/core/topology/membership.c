/* See membership.h. */
#include "topology/membership.h"

uint32_t membership_world(const struct membership *m, uint32_t rank)
{
	return m->table ? m->table[rank] : m->base + rank * m->stride;
}

int64_t membership_rank(const struct membership *m, uint32_t world_rank)
{
	uint32_t rank;

	if (m->table) {
		for (rank = 0; rank < m->n_ranks; rank++)
			if (m->table[rank] == world_rank)
				return rank;
		return -1;
	}
	if (world_rank < m->base)
		return -1;
	if (m->stride == 0)
		return world_rank == m->base && m->n_ranks ? 0 : -1;
	rank = (world_rank - m->base) / m->stride;
	return rank < m->n_ranks && m->base + rank * m->stride == world_rank ? (int64_t)rank : -1;
}
