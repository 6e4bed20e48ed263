/* Records of one job, by the world that each is of: those of one world, of other real ranks, are
 * played together (merge.h); those of other worlds say how counts change (sizes.h). */
#pragma once

#include "replay/merge.h"
#include "replay/sizes.h"

#define WORLDS_MAX 16

struct worlds {
	const struct record *recs[WORLDS_MAX]; /* of each world; the first record's first */
	struct record merged[WORLDS_MAX];      /* of all records of a world, where it has several */
	size_t n;
	struct sizes sizes;
};

/* @recs: @n >= 1 of them, borrowed for as long as @ret. Return: 0; -EINVAL with the sentence: they
 * are of no one job; -E2BIG; -ENOMEM. @ret is to be deinit'ed in any case. */
int worlds_make(const struct record *const *recs, size_t n, struct worlds *ret, struct err *err);
void worlds_deinit(struct worlds *w);
