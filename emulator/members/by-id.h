/* Communicators made with an id (ncclCommInitRank). */
#pragma once

#include "members/members.h"

enum members_patience {
	MEMBERS_AT_ONCE,  /* more may come: only what leaves nothing open is answered */
	MEMBERS_SETTLED,  /* nobody came for a while, but some real rank has been seen nowhere */
	MEMBERS_ALL_CAME, /* who has not come here has come to another communicator of this size */
};

/* What the known members say fits only with real ranks that have not come yet. */
enum { MEMBERS_WAIT = 1 };

/**
 * members_by_id - who takes part in a communicator of @n_ranks
 * @known: the real members, sorted by rank, without doubles
 *
 * All members known: exact. A communicator of the world's size: rank = world rank. Else the group
 * of the layout that fits: exact when it is the only one, else the first of them, guessed. Else a
 * guess: the progression through the known members (through a single one: one rank a node), or a
 * block of ranks where the progression does not fit.
 *
 * Return: 0; MEMBERS_WAIT; -EINVAL with the sentence; -ENOMEM.
 */
int members_by_id(const struct cluster *c, uint32_t n_ranks, const struct wire_member *known,
		  size_t n_known, enum members_patience patience, struct members *ret,
		  struct err *err);
