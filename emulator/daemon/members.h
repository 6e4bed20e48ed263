/* Which world ranks a communicator has: known for the real members, inferred for
 * the virtual ones. Pure functions, no I/O. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"
#include "engine/solve.h"
#include "topology/topology.h"
#include "wire/wire.h"

struct cluster { /* borrowed facts */
	const struct topology *topology;
	const uint32_t *real; /* world ranks, sorted */
	size_t n_real;
};

struct members {
	struct membership map; /* map.table points to table, or is NULL */
	uint32_t *table;       /* owned; NULL when base and stride say it all */
	int is_guess;          /* virtual members were inferred */
};

void members_deinit(struct members *m);
int cluster_is_real(const struct cluster *c, uint32_t world_rank);

/* MEMBERS_WAIT: what the known members say fits only with real ranks that have not
 * come yet. */
enum { MEMBERS_WAIT = 1 };

/**
 * members_infer - who takes part in a communicator of @n_ranks
 * @known: the real members, sorted by rank, without doubles
 *
 * All known: exact. A communicator of the world's size: rank = world rank.
 * Otherwise an arithmetic progression through the known ones that hits no other
 * real rank; else a contiguous block around them.
 *
 * Return: 0; MEMBERS_WAIT; -EINVAL with the sentence; -ENOMEM.
 */
int members_infer(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		  size_t n_known, struct members *ret, struct err *err);

/* What a real member of the parent said in a split. */
struct split_vote {
	uint32_t rank; /* in the parent */
	int32_t color, key;
};

/**
 * members_split - the members of the communicator of @color
 * @votes: all real members of the parent, sorted by rank
 * @ret_ranks: the parent ranks of the members, in the order of the new ranks; the
 *             caller's to free()
 *
 * A virtual rank votes as @policy says; its key is its template's, shifted by the
 * difference of their ranks.
 *
 * Return: 0; -ENOMEM.
 */
int members_split(const struct cluster *c, const struct membership *parent,
		  const struct split_vote *votes, size_t n_votes, enum config_split policy,
		  int32_t color, struct members *ret, uint32_t **ret_ranks);

/* The parent's members without @excluded (parent ranks, any order). */
int members_shrink(const struct membership *parent, const uint32_t *excluded,
		   size_t n_excluded, struct members *ret, uint32_t **ret_ranks);

/* Ranks of a node stand together in equal runs of this length; 1 when they do not. */
uint32_t members_per_node(const struct membership *m, const struct topology *t);
