/* Which ops: op=, bytes= and communicator= of a what-if's text, or of what a step is.
 *
 *   op=allreduce+reducescatter   of these kinds
 *   bytes=1MiB-64MiB             of that size, as the summary of a run has it; 1MiB-: at least
 *   communicator=world           of all ranks; or along axes of the declared layout (dp, tp+pp);
 *                                or the number that a record has for it */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct target {
	uint32_t kinds; /* bits, 1 << enum coll_kind; 0: any */
	bool has_bytes;
	uint64_t min_bytes, max_bytes;
	char communicator[64]; /* "": any */
};

/* A communicator. */
struct target_comm {
	uint32_t number;
	bool is_world;
	const char *axes; /* "dp", "tp+pp"; "": of none */
};

/* Takes @key if it is one of the three. Return: 0; 1: it is not; -EINVAL with the sentence. */
int target_take(struct target *t, const char *key, const char *value, struct err *err);
bool target_is_any(const struct target *t);
/* @bytes as struct record_op has them. */
bool target_has_op(const struct target *t, uint32_t kind, uint64_t bytes);
/* @c NULL: it is not known which, and counts as any. */
bool target_has_comm(const struct target *t, const struct target_comm *c);
