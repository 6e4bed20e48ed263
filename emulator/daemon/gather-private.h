/* Check-ins of one communicator to be: shared by gather.c and resolve.c, not for others. */
#pragma once

#include "daemon/comm.h"

enum gather_kind { GATHER_INIT, GATHER_SPLIT, GATHER_SHRINK };

struct gather {
	struct server *server; /* borrowed */
	enum gather_kind kind;
	uint8_t id[WIRE_ID_BYTES]; /* init */
	uint32_t parent, count;    /* split, shrink */
	uint32_t n_ranks;          /* init: as given; else the parent's */
	uint32_t *excluded;        /* shrink; owned */
	uint32_t n_excluded;
	struct comm_entry *entries; /* owned, sorted by rank */
	uint32_t n, n_wanted;       /* shrink and split: known; init: at most */
	uint64_t first_ns, last_ns, warn_ns;
	struct gather *prev, *next;
};

/* --- resolve.c: who the members are ------------------------------------------------ */

/* As members_infer(), with all that nboxd knows besides the check-ins. */
int resolve_init(const struct gather *g, enum members_patience patience, struct members *ret,
		 struct err *err);
/* A communicator with an id was made: what was guessed of its siblings before may be known
 * better now. */
void resolve_again(struct server *s, const struct comm *made);
