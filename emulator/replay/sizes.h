/* Records of one job in worlds of several sizes: which op of the one is which of the others. Ops of
 * a real rank are told apart by their communicator, and in that by their order. Communicators are
 * alike where their ops are: the same number of them, of the same kinds, one after the other. */
#pragma once

#include "replay/world.h"

#include "engine/record-rows.h"

#define SIZES_NONE UINT64_MAX

struct sizes {
	const struct record *rec; /* borrowed, as those below */
	struct sizes_other {
		const struct record *rec;
		struct world world;
		uint64_t *same; /* owned; by op of the first record; SIZES_NONE: it has none */
	} * others;             /* owned */
	size_t n;               /* of others */
};

/**
 * sizes_match - the ops of @rec in each of the @n records @others
 *
 * Return: 0; -EINVAL with the sentence that names the first op that differs, or a communicator that
 * @rec has not; -ENOMEM.
 */
int sizes_match(const struct record *rec, const struct record *const *others, size_t n,
		struct sizes *ret, struct err *err);
void sizes_deinit(struct sizes *s);
