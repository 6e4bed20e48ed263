/* Communicators: their members, and which of those are real. Check-ins of one communicator are
 * gathered first (gather.h), then it gets a number. Its ops are those of room op, which stands
 * above this one and which it speaks to through a sink. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "config/config.h"
#include "op/comm.h"

struct full;
struct notes;

/* What communicators say upwards, to their ops. */
struct comm_sink {
	/* @c is there, and its members were told. */
	void (*made)(struct comm *c);
	/* @c has died or is freed: its ops end, without a word to the members. */
	void (*end_ops)(struct comm *c);
	/* Whether member @i owes the others an op or a call; it is then named in @buf. */
	bool (*is_owed)(const struct comm *c, size_t i, char *buf, size_t size);
	/* Whether members without a process have ops of @c to come, or to end. */
	bool (*is_played)(const struct comm *c);
};

/* All communicators. */
struct comms {
	const struct comm_sink *sink; /* borrowed: op/'s */
	/* A communicator was aborted: nobody waits for its splits. */
	void (*on_dead)(void *ctx, const struct comm *c, const char *why);
	void *on_dead_ctx; /* borrowed */
	/* Full mode; NULL: the lowest real member makes the id. All members of @c, which has
	 * several ranks, will go into the real init. Return: 0; negative errno with the sentence,
	 * by which @c is aborted. */
	int (*make_id)(void *full, struct comm *c, uint8_t ret_id[WIRE_ID_BYTES], struct err *err);
	struct full *full;           /* borrowed; NULL: gate mode */
	const struct config *config; /* borrowed */
	struct cluster *cluster;     /* borrowed */
	struct ops *ops;             /* borrowed */
	struct notes *notes;         /* borrowed */
	struct comm *by_number;      /* hash, owned */
	uint32_t n, last;            /* last: number of the newest */
};

/* One check-in. */
struct comm_entry {
	struct worker *worker;
	uint32_t rank, world_rank; /* rank: of init in the new, of split and shrink in the parent */
	uint32_t cookie;
	int32_t color, key;
};

/**
 * comm_new - a communicator with all its real members; those that have a process are told
 * @members: consumed on success
 * @entries: of those, sorted by @ranks[i], the new ranks; @n of them
 *
 * Return: 0; negative errno with the sentence.
 */
int comm_new(struct comms *comms, struct members *members, const struct comm_entry *entries,
	     const uint32_t *ranks, size_t n, const uint8_t *id, uint32_t parent, struct comm **ret,
	     struct err *err);
struct comm *comm_free(struct comm *c);                       /* NULL allowed; returns NULL */
struct comm *comm_find(struct comms *comms, uint32_t number); /* NULL: none */
/* The member that a frame of @w speaks for. Return: it, *ret is its communicator, which may be
 * dead; NULL: the communicator is gone, and the frame crossed an ABORT on its way; or @w was
 * refused. */
struct comm_member *comm_frame_member(struct comms *comms, struct worker *w,
				      const struct wire_hdr *h, struct comm **ret);

/* What virtual ranks contribute, by kind: enum wire_data. */
void comm_policies(const struct comm *c, uint8_t ret[COLL_KINDS]);
/* "color, exact, dp": how the members are known. Return: @buf. */
char *comm_how(const struct comm *c, char *buf, size_t size);

/* The communicator is dead: its ops end, every member but @except (NULL: none) is told. */
void comm_abort(struct comm *c, const struct comm_member *except, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
