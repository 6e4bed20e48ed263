/* What the computation before an op had waited for: the points of a record say it. */
#pragma once

#include "engine/record-read.h"

/**
 * waits_find - for each of some ops of a rank: how many of them its computation waited for
 * @rec: NULL: no points are known
 * @rows: all ops of the rank, @n_rows; the ops are those @at, @n of them, in their order
 * @ret: @n numbers; k: op k - 1 of these is the last one that was over before computation began
 *       that led to this op; 0: none, or not known
 *
 * Return: 0; -ENOMEM.
 */
int waits_find(const struct record *rec, const struct record_op *rows, uint64_t n_rows,
	       const uint64_t *at, uint64_t n, uint64_t *ret);
