/* Which ranks of a world do the same at the same time, so that one stands for all of them: a real
 * rank for those that compute as it does. Told apart are ranks that compute otherwise, and, in
 * turn, those that have ops with such a rank and with no real one: in the image of a communicator
 * (op/image.h), or in sends and receives. */
#pragma once

#include "config/config.h"
#include "engine/record-rows.h"
#include "nbox/replay/computed.h"
#include "op/image.h"

struct alike {
	uint32_t world;
	uint32_t *template; /* owned; by world rank: the real rank that it copies */
	uint32_t *as;       /* owned; by world rank: the one that stands for it; a real rank's is
			     * itself */
	uint32_t *apart;    /* owned, sorted: those that stand for others and are not real */
	uint32_t n_apart;
};

/* @rec: of the world of @c. @computed: NULL: all compute as their templates. Return: 0; -ENOMEM. */
int alike_find(const struct record *rec, const struct config *c, const struct computed *computed,
	       struct alike *ret);
void alike_deinit(struct alike *a);

/* Those that play an op of @of together with @rank. */
struct alike_group {
	struct membership members; /* of the communicator; its table is the record's */
	struct radix image;
	bool is_image;
};
/* Return: false: that is not known. */
bool alike_group_of(const struct config *c, const struct record_comm *of, uint32_t rank,
		    struct alike_group *ret);
uint32_t alike_group_at(const struct alike_group *g, uint32_t number);
int64_t alike_group_find(const struct alike_group *g, uint32_t rank); /* -1: not in it */
/* What peer number @peer of a call by @caller, both of the communicator itself, is to @rank, which
 * copies @caller: it has as far to go. UINT32_MAX: not known. */
uint32_t alike_peer(const struct alike_group *g, uint32_t caller, uint32_t peer, uint32_t rank);
/* Whether @op sends to, or receives from, all others of its communicator at once. */
bool alike_is_alltoall(const struct record_op *op);
