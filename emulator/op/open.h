/* Makes what all ops of a world share. */
#pragma once

#include "op/ops.h"

/* Solver, overlaps and timelines of ops->config's world, once @delay, config and cluster are set.
 * Return: 0; negative errno with the sentence. */
int ops_open(struct ops *ops, struct err *err);
void ops_close(struct ops *ops); /* the delay chain, too; communicators are gone */
