/* What what-ifs make of the computation of each rank of a world: where it computes otherwise than
 * its template did, as a replay tells (replay/replay.h). Ranks that compute alike all the time
 * share one list, so that memory follows what differs, not the world. */
#pragma once

#include "base/number-table.h"
#include "replay/replay.h"

/* The last one of a list. */
struct computed_stretch {
	uint32_t before; /* of the same ranks; 0: none */
	double ns;
	uint64_t number; /* of the row of the template, from 1 (replay/rows.h) */
};

struct computed {
	uint32_t world;
	uint32_t *of;                       /* owned; by world rank: its last stretch; 0: it
					     * computes as recorded all the time */
	struct computed_stretch *stretches; /* owned, from 1 on */
	uint32_t n, capacity;
	struct number_table known; /* by what a stretch is */
};

/* Return: 0; -ENOMEM with the sentence. */
int computed_init(struct computed *c, uint32_t world, struct err *err);
void computed_deinit(struct computed *c);
/* Computed()'s of struct replay_sink; @ctx: the struct. Also -E2BIG: ranks differ in too much. */
int computed_told(void *ctx, uint32_t world_rank, uint64_t number, double was_ns, double ns,
		  struct err *err);
bool computed_differs(const struct computed *c); /* some rank does */
/* Writes what @world_rank computes at the numbers below @n over what its template did: ns[number].
 */
void computed_apply(const struct computed *c, uint32_t world_rank, double *ns, uint64_t n);
