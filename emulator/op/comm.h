/* A communicator, as its ops see it: its members, and those of them that are real. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/bitmap.h"
#include "members/members.h"
#include "topology/template.h"

struct comm_ops;
struct comms;
struct full_comm;
struct ops;
struct worker;

struct comm_member {
	uint32_t rank, world_rank;
	bool is_recorded; /* it has no process: a record says what it calls */
	/* nboxd's: */
	struct worker *worker; /* borrowed; NULL: gone */
	bool is_freed;
	bool has_promised; /* nboxd/comm/meet.h */
};

struct comm {
	struct ops *ops; /* borrowed; ops.h */
	uint32_t number;
	struct members members;
	uint32_t n_ranks, ranks_per_node;
	struct comm_member *real; /* owned, sorted by rank */
	uint32_t n_real;
	struct bitmap is_real;      /* by rank */
	struct bitmap has_process;  /* real ranks that are not recorded */
	struct templates templates; /* by index into real; of times */
	struct comm_ops *open;      /* table.h; NULL: no op yet */
	/* its owner's: */
	struct comms *comms;       /* borrowed; nboxd's, as what follows up to @hh */
	uint8_t id[WIRE_ID_BYTES]; /* of COMM_INIT; zero: by split or shrink */
	uint32_t parent;           /* number, 0: none */
	uint32_t n_promised;       /* nboxd/comm/meet.h */
	bool is_id_due;            /* the lowest real member's */
	struct full_comm *full;    /* nboxd/full; NULL: it has no id of nboxd's */
	bool is_dead;              /* aborted: frames are swallowed until it is freed */
	UT_hash_handle hh;         /* by number */
};

/**
 * comm_init - fills what @c's ops need
 * @members: consumed on success
 * @real: the real members, sorted by rank
 *
 * Return: 0; -ENOMEM.
 */
int comm_init(struct comm *c, struct ops *ops, struct members *members,
	      const struct wire_member *real, size_t n_real);
void comm_deinit(struct comm *c); /* its ops are gone */
/* The real member with @rank, or NULL. O(log n). */
struct comm_member *comm_member(struct comm *c, uint32_t rank);
