/* Records of several runs of one job, each of other real ranks, as one record: one machine plays
 * the ranks of a cluster one after the other, such as the stages of a pipeline. */
#pragma once

#include "base/err.h"
#include "engine/record-rows.h"

/**
 * merge_records - @recs: @n >= 1 of them, of worlds of one shape, borrowed for as long as @ret
 * @ret: all rows. Communicators of the same members are one, in the order in which they were made;
 *       the wall clock of each run begins with its first row
 *
 * Return: 0; -EINVAL with the sentence: the worlds differ, or a rank is real in two of them;
 * -ENOMEM.
 */
int merge_records(const struct record *const *recs, size_t n, struct record *ret, struct err *err);
