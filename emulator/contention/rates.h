/* How fast ops go on that are alive together. Each connection of each op gets as much of a link as
 * any other that wants more (share.h); an op is as fast as its connections, and what it waits for
 * latency is not shared. Answers are kept by set: a set that was seen before costs one look-up. */
#pragma once

#include "contention/link-classes.h"
#include "contention/share.h"

enum rate_kind {
	RATE_OP,
	RATE_LOAD, /* others' traffic: on each link as many bytes/ns as @usage has bytes, or its
		    * connections' fair share; what it did not get it does not send later */
	RATE_LOSS  /* so many bytes/ns of each link are gone before anybody shares it; of several
		    * on one link each takes its part of what the others leave */
};

struct rate_op {
	struct usage *usage; /* borrowed; NULL: it uses no links */
	double solo_ns;      /* what it takes where it is alone; > 0; but for RATE_OP 1 */
	enum rate_kind kind;
};

/* The fullest link of a set of several ops: what they put on it by their bytes and speeds, as a
 * part of what it carries. Above 1: they are faster than the network. */
struct rate_peak {
	double load;
	uint64_t link;
};

struct rates {
	struct rate_peak peak; /* of the set that was found last; 0: one op */
	struct link_classes classes;
	struct share share;
	struct rate_set *sets; /* owned: an open hash table */
	uint32_t n_sets, n_slots;
	/* room for one set */
	struct share_user *users;
	struct share_use *uses;
	double *user_speeds;
	uint32_t *places;      /* of its ops, among the classes' users */
	struct rate_row *rows; /* by class */
	double *left, *full;   /* by row */
	uint32_t n_users, n_uses, n_speeds, n_places, n_rows, n_left, n_full;
	uint64_t n_solved;
};

void rates_deinit(struct rates *r);
/* The speed of each of @n ops, 1: as if alone; 0: a link of it is down. Those that are no ops come
 * last; their answer is 1 where an op uses a link of theirs, else 0. The order is part of what a
 * set is. Return: 0; -ENOMEM. */
int rates_find(struct rates *r, const struct rate_op *ops, uint32_t n, double *ret_speed);
