/* Ops of point-to-point calls: what a member calls in one group. They wait until the peers that
 * they name have called too (pairing.h). Then one run plays all calls of the ops that have become
 * ready, and the other ends of their pairs. Those other ends' ops may have to wait on for their
 * remaining calls, which a later run plays. */
#pragma once

#include "op/table.h"

/* Reads the calls of an ARRIVE, and makes the schedule that the worker has too. @list: of struct
 * wire_p2p, need not be aligned. Return: 0; negative errno with the sentence. */
int p2p_define(struct op *op, const struct wire_arrive *a, const char *list, struct err *err);
/* Fills an empty run with the calls of @ready and their other ends: posts, border, timing. Return:
 * as above. */
int p2p_fill_run(struct run *run, struct pair_post *ready, struct err *err);

/* The messages that come to @op's rank, once runs play all its calls. */
uint64_t p2p_n_awaited(const struct op *op);

/* The first call of @op that waits for @peer; NULL: that is to meet one who has freed the
 * communicator. Return: NULL: there is none. */
const struct pair_call *p2p_waits_for(const struct op *op, const struct comm_member *peer);
/* "send of 4 KiB to rank 3 (send 12 between them)". Return: @buf. */
char *p2p_call_text(const struct pair_call *call, char *buf, size_t size);
