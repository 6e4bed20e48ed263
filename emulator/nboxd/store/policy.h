/* What is answered for ranks that do not exist. Pure: facts in, verdicts out; the daemon
 * keeps the clock.
 *
 * Check-ins are counted for virtual ranks from the start (init/, store barriers,
 * BARRIER), so that the last real rank completes them. A unique id that a virtual rank
 * would have made is invented, a gloo address is one of nboxd's own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nboxd/store/torch-key.h"

struct policy_world { /* borrowed facts */
	uint32_t n_ranks;
	const uint32_t *real; /* world ranks, sorted */
	size_t n_real;
};

enum policy_answer {
	POLICY_WAIT,   /* a real rank sets it, or it is not known who does: wait, and say so after a
			  while */
	POLICY_INVENT, /* a virtual rank would set it: now (an id, or an address that is played) */
	POLICY_SETTLE, /* whose it is is not known: invent it when it does not come soon */
};

struct policy_verdict {
	enum policy_answer answer;
	int64_t rank; /* world rank that would set it; -1: not known */
};

/* The world rank of a rank of the group that the key names; -1: not known. NULL allowed. */
typedef int64_t policy_lookup(void *ctx, const struct torch_key *k, uint32_t group_rank);

/* About a missing key that a client waits for. */
struct policy_verdict policy_on_missing(const struct policy_world *w, const struct torch_key *k,
					policy_lookup *lookup, void *ctx);
/* How many virtual ranks have checked in at a counter; @world: of BARRIER, else 0. */
int64_t policy_initial_count(const struct policy_world *w, const struct torch_key *k,
			     int64_t world);
/* "; world rank 0 ...": why it may not come and what to do, for the log. Return: @buf. */
char *policy_advice(const struct policy_world *w, const struct torch_key *k,
		    const struct policy_verdict *v, char *buf, size_t size);
