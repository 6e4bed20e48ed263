/* What lies behind a place in a stream: the latest point or op of each stream that the place comes
 * after. A vector clock whose components are streams. An edge stands for all that lies behind it,
 * too. Ops of one group lie side by side: they share a place. No locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* More streams than that: the oldest are left out. */
#define BEHIND_MAX 32

struct edge {
	uint64_t name;
	uint64_t at;     /* order of the job's calls: later on a stream is more */
	uint32_t stream; /* number */
	bool is_op;
};

struct behind {
	uint32_t n;
	struct edge edges[BEHIND_MAX];
};

/* Does @e, or a later one of its stream, lie behind? */
bool behind_has(const struct behind *b, const struct edge *e);
/* Does all of @other? */
bool behind_covers(const struct behind *b, const struct behind *other);
/* Its latest one of @stream; NULL: none. */
const struct edge *behind_own(const struct behind *b, uint32_t stream);
void behind_add(struct behind *b, const struct edge *e);
void behind_merge(struct behind *b, const struct behind *other);
/* Drops what lies behind something else in @b as well, since that has @other behind it; but nothing
 * of stream @keep. */
void behind_drop(struct behind *b, const struct behind *other, uint32_t keep);
/* Drops what came before the call @at. */
void behind_drop_before(struct behind *b, uint64_t at);
