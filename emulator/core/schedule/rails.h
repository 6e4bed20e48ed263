/* In which order a channel visits the ranks of a node. With rails, channel c starts a node at rank
 * (c % n_rails) x ranks_per_node / n_rails, the one near to its NIC, and goes round the node from
 * there. Place i of a channel is the i-th rank on its ring. */
#pragma once

#include <stdint.h>

#include "schedule/sched.h"

/* The local index of the rank at which channel @channel enters a node. */
static inline uint32_t sched_head(const struct sched *s, uint32_t channel)
{
	return s->n_rails < 2 ? 0 : channel % s->n_rails * s->ranks_per_node / s->n_rails;
}

static inline uint32_t sched_turn(const struct sched *s, uint32_t rank, uint32_t by)
{
	uint32_t m = s->ranks_per_node, local = rank % m + by;

	return rank - rank % m + (local >= m ? local - m : local);
}

static inline uint32_t sched_rank_at(const struct sched *s, uint32_t channel, uint32_t place)
{
	uint32_t head = sched_head(s, channel);

	return head ? sched_turn(s, place, head) : place;
}

static inline uint32_t sched_place_of(const struct sched *s, uint32_t channel, uint32_t rank)
{
	uint32_t head = sched_head(s, channel);

	return head ? sched_turn(s, rank, s->ranks_per_node - head) : rank;
}

/* The next rank on the channel's ring, and the one before. */
static inline uint32_t sched_next(const struct sched *s, uint32_t channel, uint32_t rank)
{
	uint32_t place = sched_place_of(s, channel, rank) + 1;

	return sched_rank_at(s, channel, place == s->n_ranks ? 0 : place);
}

static inline uint32_t sched_previous(const struct sched *s, uint32_t channel, uint32_t rank)
{
	uint32_t place = sched_place_of(s, channel, rank);

	return sched_rank_at(s, channel, (place ? place : s->n_ranks) - 1);
}
