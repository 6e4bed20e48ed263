/* How many elements the ops of a record have in another world. */
#pragma once

#include "config/config.h"
#include "engine/record-rows.h"

/* What was taken for granted. */
struct counts_told {
	uint64_t n_kept;  /* ops whose counts stay: of these communicators, or all-reduce and the
			     like */
	uint64_t n_total; /* all-gathers and reduce-scatters: their communicator's total stays */
};

/**
 * counts_make - @ret: a count for each op of @rec, the caller's to free()
 * @n_ranks: by communicator of @rec: its ranks in the new world
 *
 * Return: 0; -EINVAL with the sentence: the record does not say; -ENOMEM.
 */
int counts_make(const struct record *rec, const uint32_t *n_ranks, uint64_t **ret,
		struct counts_told *told, struct err *err);
