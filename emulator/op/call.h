/* A call of a collective, and what follows from it: the schedule, the border, and the messages that
 * a virtual receiver would reduce. Equal calls of a communicator share one struct call, which is
 * kept for a while when no op uses it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "engine/border.h"
#include "op/comm.h"
#include "wire/wire.h"

struct call {
	struct call_key {
		uint32_t kind, dtype, root;
		struct sched_took took;
		uint64_t count;
	} key;
	struct sched sched;
	bool has_border;
	struct border border; /* owned */
	/* out messages that the virtual receiver reduces; of them, those whose sum is in its output
	 */
	struct bitmap reduces, keeps;
	bool has_reduces;
	uint32_t n_users; /* open ops */
	UT_hash_handle hh;
};

/* Those of a communicator. */
struct calls {
	struct call *by_key; /* hash, owned */
	uint32_t n_swept;    /* were left when calls without an op were freed last */
};

/* Finds or makes, and counts a user. Return: 0; negative errno with the sentence. */
int call_get(struct comm *c, struct calls *calls, const struct wire_arrive *a, struct call **ret,
	     struct err *err);
void calls_deinit(struct calls *calls);
/* Whether payload's buffers hold every message. Return: 0; -EFBIG with the sentence. */
int call_check_bytes(const struct comm *c, const struct sched *s, struct err *err);
