/* In which order a channel visits the ranks of a node. With rails, channel c starts a node of m
 * ranks at rank (c % n_rails) x m / n_rails, the one near to its NIC, and goes round the node from
 * there. Place i of a channel is the i-th rank on its ring. */
#pragma once

#include <stdint.h>

#include "schedule/sched.h"

static inline uint32_t sched_n_nodes(const struct sched *s)
{
	return (s->n_ranks + s->ranks_per_node - 1) / s->ranks_per_node;
}

/* At least one. */
static inline uint32_t sched_n_rails(const struct sched *s)
{
	return s->n_rails < 2 ? 1 : s->n_rails;
}

/* The ranks of the node that @rank is in. */
static inline uint32_t sched_node_ranks(const struct sched *s, uint32_t rank)
{
	uint32_t m = s->ranks_per_node, rest = s->n_ranks - (rank - rank % m);

	return rest < m ? rest : m;
}

/* The local index of the rank at which channel @channel enters the node of @rank. */
static inline uint32_t sched_head(const struct sched *s, uint32_t channel, uint32_t rank)
{
	if (s->n_rails < 2)
		return 0;
	return channel % s->n_rails * sched_node_ranks(s, rank) / s->n_rails;
}

static inline uint32_t sched_turn(const struct sched *s, uint32_t rank, uint32_t by)
{
	uint32_t m = sched_node_ranks(s, rank), at = rank % s->ranks_per_node, local = at + by;

	return rank - at + (local >= m ? local - m : local);
}

static inline uint32_t sched_rank_at(const struct sched *s, uint32_t channel, uint32_t place)
{
	uint32_t head = sched_head(s, channel, place);

	return head ? sched_turn(s, place, head) : place;
}

static inline uint32_t sched_place_of(const struct sched *s, uint32_t channel, uint32_t rank)
{
	uint32_t head = sched_head(s, channel, rank);

	return head ? sched_turn(s, rank, sched_node_ranks(s, rank) - head) : rank;
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
