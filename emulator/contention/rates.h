/* How fast ops go on that are alive together. Each connection of each op gets as much of a link as
 * any other that wants more (share.h); an op is as fast as its connections. Answers are kept by
 * set: a set that was seen before costs one look-up. */
#pragma once

#include "contention/link-classes.h"
#include "contention/share.h"

struct rate_op {
	struct usage *usage; /* borrowed; NULL: it uses no links */
	double solo_ns;      /* what it takes where it is alone; > 0 */
};

struct rates {
	struct link_classes classes;
	struct share share;
	struct rate_set *sets; /* owned: an open hash table */
	uint32_t n_sets, n_slots;
	/* room for one set */
	struct share_user *users;
	struct share_use *uses;
	uint32_t *places;      /* of its ops, among the classes' users */
	struct rate_row *rows; /* by class */
	uint32_t n_users, n_uses, n_places, n_rows;
	uint64_t n_solved;
};

void rates_deinit(struct rates *r);
/* The speed of each of @n ops, 1: as if alone. The order of the ops is part of what a set is.
 * Return: 0; -ENOMEM. */
int rates_find(struct rates *r, const struct rate_op *ops, uint32_t n, double *ret_speed);
