/* A call, and what follows from it: the schedule, the border, the members that messages go to, and
 * the messages that a virtual receiver would reduce. Equal calls of a communicator share one struct
 * call, which is kept for a while when no op uses it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "engine/border.h"
#include "nboxd/comm/comm.h"
#include "wire/wire.h"

struct call {
	struct call_key {
		uint32_t kind, dtype, root, zero;
		uint64_t count;
	} key;
	struct sched sched;
	bool has_border;
	struct border border;    /* owned */
	struct comm_member **to; /* owned; in-connection -> member; borrowed */
	uint64_t *first_reduce;  /* owned; out-connection -> offset into reduces */
	struct bitmap reduces;   /* out messages that the virtual receiver reduces */
	bool has_reduces;
	uint32_t n_users;         /* open ops */
	UT_hash_handle hh;        /* calls->by_key */
	struct call *prev, *next; /* calls->idle, while n_users is 0 */
};

/* Those of a communicator. */
struct calls {
	struct call *by_key; /* hash, owned */
	struct call *idle;   /* list of those without an op; the oldest first */
	uint32_t n_idle;
};

/* Finds or makes. Return: 0; negative errno with the sentence. */
int call_get(struct comm *c, struct calls *calls, const struct wire_arrive *a, struct call **ret,
	     struct err *err);
void call_put(struct calls *calls, struct call *call);
void calls_deinit(struct calls *calls);
/* Whether payload's buffers hold every message. Return: 0; -EFBIG with the sentence. */
int call_check_bytes(const struct comm *c, const struct sched *s, struct err *err);
