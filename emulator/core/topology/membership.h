/* Which world ranks the ranks of a communicator are. */
#pragma once

#include <stdint.h>

/* world rank = base + rank * stride, or table[rank] where table is not NULL (borrowed). */
struct membership {
	uint32_t n_ranks;
	uint32_t base, stride;
	const uint32_t *table;
};

uint32_t membership_world(const struct membership *m, uint32_t rank);
int64_t membership_rank(const struct membership *m, uint32_t world_rank); /* -1: no member */
