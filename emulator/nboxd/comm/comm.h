/* Communicators: who takes part, which members are real, and their ops. Check-ins
 * of one communicator are gathered first (gather.c), then it gets a number. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/bitmap.h"
#include "config/config.h"
#include "members/members.h"
#include "schedule/schedule.h"
#include "topology/template.h"

struct comm;
struct comm_ops;
struct ops;
struct server;
struct worker;

/* What communicators say upwards, to their ops. */
struct comm_sink {
	/* @c has died or is freed: its ops end, without a word to the members. */
	void (*end_ops)(struct comm *c);
	/* Whether member @i owes the others an op or a call; it is then named in @buf. */
	bool (*is_owed)(const struct comm *c, size_t i, char *buf, size_t size);
};

/* All communicators. */
struct comms {
	const struct comm_sink *sink;
	struct server *server;       /* borrowed */
	const struct config *config; /* borrowed */
	struct cluster *cluster;     /* borrowed */
	struct ops *ops;             /* borrowed; op/ops.h */
	struct comm *by_number;      /* hash, owned */
	uint32_t n, last;            /* last: number of the newest */
};

struct comm_member {
	uint32_t rank, world_rank;
	struct worker *worker; /* borrowed; NULL: gone */
	bool is_freed;
	bool has_promised; /* meet.c */
};

struct comm {
	struct comms *comms; /* borrowed */
	uint32_t number;
	uint8_t id[WIRE_ID_BYTES]; /* of COMM_INIT; zero: by split or shrink */
	uint32_t parent;           /* number, 0: none */
	struct members members;
	uint32_t n_ranks, ranks_per_node;
	struct comm_member *real; /* owned, sorted by rank */
	uint32_t n_real;
	struct bitmap is_real;      /* by rank */
	struct templates templates; /* by index into real */
	uint32_t n_promised;        /* meet.c */
	bool is_id_due;             /* the lowest real member's */
	bool is_dead;               /* aborted: frames are swallowed until it is freed */
	struct comm_ops *open;      /* op/table.h; NULL: no op yet */
	UT_hash_handle hh;
};

/* One check-in of a gather. */
struct comm_entry {
	struct worker *worker;
	uint32_t rank, world_rank; /* rank: of init in the new, of split and shrink in the parent */
	uint32_t cookie;
	int32_t color, key;
};

/**
 * comm_new - a communicator with all its real members; they are told
 * @members: consumed on success
 * @entries: sorted by @ranks[i], the new ranks
 *
 * Return: 0; negative errno with the sentence.
 */
int comm_new(struct comms *comms, struct members *members, const struct comm_entry *entries,
	     const uint32_t *ranks, size_t n, const uint8_t *id, uint32_t parent, struct comm **ret,
	     struct err *err);
struct comm *comm_free(struct comm *c);                       /* NULL allowed; returns NULL */
struct comm *comm_find(struct comms *comms, uint32_t number); /* NULL: none */
/* The real member with @rank, or NULL. O(log n). */
struct comm_member *comm_member(struct comm *c, uint32_t rank);
/* The member that a frame of @w speaks for. Return: it, *ret is its communicator, which may be
 * dead; NULL: the communicator is gone, and the frame crossed an ABORT on its way; or @w was
 * refused. */
struct comm_member *comm_frame_member(struct comms *comms, struct worker *w,
				      const struct wire_hdr *h, struct comm **ret);

/* What a row of the record says about the members. */
uint32_t comm_record_flags(const struct comm *c);
/* "color, exact, dp": how the members are known. Return: @buf. */
char *comm_how(const struct comm *c, char *buf, size_t size);

/* The communicator is dead: its ops end, every member but @except (NULL: none) is told. */
void comm_abort(struct comm *c, const struct comm_member *except, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The worker has gone without a word, and @why is what its link said; NULL: it has said BYE. */
void comm_worker_gone(struct server *s, struct worker *w, const char *why);

int comm_on_free(struct worker *w, const struct wire_hdr *h);
int comm_on_abort(struct worker *w, const struct wire_hdr *h, const void *body);

/* --- meet.c: how the real members come to make their real communicator -------- */

/* MEET of a member: it goes into the real init once all have promised to. It is answered by MEET
 * then, or by ABORT when the communicator dies before. */
int meet_on_promise(struct worker *w, const struct wire_hdr *h);
/* The lowest member's id, which nboxd passes to the others. Also where the communicator has died:
 * members that were answered by MEET wait for it. */
int meet_on_id(struct worker *w, const struct wire_hdr *h, const void *body);
/* Do others wait for the promise of @m? */
bool meet_is_owed(const struct comm *c, const struct comm_member *m);
/* Has @m promised, and nobody has answered? */
bool meet_waits(const struct comm *c, const struct comm_member *m);
/* A member is gone: nobody waits for an id that it has not sent. */
void meet_member_left(struct comm *c);

/* --- gather.c ---------------------------------------------------------------- */

int gather_on_init(struct worker *w, const struct wire_hdr *h, const void *body);
int gather_on_split(struct worker *w, const struct wire_hdr *h, const void *body);
int gather_on_shrink(struct worker *w, const struct wire_hdr *h, const void *body);
/* A check-in that has not been answered is taken back: the others need not wait. */
void gather_on_abort(struct worker *w, uint32_t cookie, const char *why);
void gather_free_all(struct server *s);

/* --- gather-missing.c --------------------------------------------------------- */

void gather_worker_gone(struct server *s, struct worker *w, const char *why);
/* A member freed @parent: who waits for it in a split or shrink is told. */
void gather_member_left(struct comm *parent, uint32_t rank);
void gather_comm_dead(struct comm *parent, const char *why);
/* Completes what settled, warns, gives up. Return: when to call again. */
uint64_t gather_tick(struct server *s, uint64_t now_ns);
/* For the status: calls @each with a sentence a gather. */
void gather_describe(const struct server *s, void (*each)(void *ctx, const char *sentence),
		     void *ctx);
