/* What a replay takes away from a run, to see what it has cost. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ideal {
	/* Ops of these communicators, by number, take no time once those are there that they need.
	 * Borrowed; NULL: none do. */
	const bool *comms;
	uint32_t n_comms;
	int64_t rank;        /* computes as its template does; -1: none */
	bool shares_no_link; /* ops do not share links */
};

struct comm;
struct timing;

/* Where the ops of @c take no time, so does @t. */
void ideal_apply(const struct comm *c, struct timing *t);
