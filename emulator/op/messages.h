/* The messages of point-to-point calls. Each claims the links (contention.h) from its sender's
 * arrival on: all of it where its receiver is there by then, else what NCCL's buffers take, and the
 * rest when both are there. Who receives later finds it there. Groups in which all send to all are
 * played as one op instead (p2p.h). */
#pragma once

#include "op/table.h"

/* @post has arrived, and rule_is_ready() looked at it: what it sends is on its way, unless it waits
 * for the op before, or is part of an all-to-all. Return: 0; negative errno with the sentence. */
int messages_sent(struct post *post, struct err *err);
/* Its buffers take all that @op sends, it is on its way, and there is nothing else. */
bool messages_wait_for_nobody(const struct op *op);
/* The calls of @run, with has_messages: what its posts' ends follow from. Return: as above. */
int messages_play(struct run *run, struct err *err);
/* Whether @op sends to and receives from each of the others, more than one, or --alltoall says that
 * it is an all-to-all. */
bool messages_are_alltoall(const struct op *op);
