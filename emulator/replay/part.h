/* What the ranks of a record do in another world: who is in each communicator there, and each op
 * with its counts and calls. */
#pragma once

#include "engine/record-rows.h"
#include "members/members.h"
#include "replay/counts.h"
#include "replay/world.h"
#include "wire/wire.h"

/* A communicator in the new world. */
struct part_comm {
	struct members members;   /* owned, until comm_init() takes them */
	struct wire_member *real; /* owned, sorted: those that are real in the record */
	uint32_t n_real;
};

struct part {
	const struct record *rec; /* borrowed */
	struct world from, to;
	struct part_comm *comms; /* owned; as in the record */
	uint64_t n_comms;
	struct record out; /* the record's rows, with ranks, counts and calls of the new world;
			    * their times are still those of the old one */
	struct counts_told told;
};

/**
 * part_make - @rec: borrowed for as long as @ret
 * @sizes, @declared: as struct counts_ask has them
 *
 * Return: 0; -EINVAL with the sentence: communicators, ranks or counts have no place in the world
 * of
 * @config; -ENOMEM.
 */
int part_make(const struct record *rec, const struct config *config, const struct sizes *sizes,
	      const struct declared_counts *declared, struct part *ret, struct err *err);
void part_deinit(struct part *p);
/* The rank of the new world that does what @world_rank_was of the record did; UINT32_MAX: none. */
static inline uint32_t part_rank(const struct part *p, uint32_t world_rank_was)
{
	return (uint32_t)world_rank(&p->from, &p->to, world_rank_was);
}
