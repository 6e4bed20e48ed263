/* Shared by op.c and op-message.c. */
#pragma once

#include "daemon/op.h"

/* The live communicator and member that a frame speaks for; NULL: swallow it (the
 * communicator is dead or gone), or the worker was refused. */
struct comm_member *op_find_member(struct worker *w, const struct wire_hdr *h,
				   struct comm **ret);
/* The op too; false as above. */
bool op_find(struct worker *w, const struct wire_hdr *h, struct op **ret, size_t *ret_i);

void op_send_message(void *owner, struct engine_op *engine_op, uint32_t in, uint64_t index,
		     uint64_t due_ns);
/* Gives the engine what arrived before the start. Return: 0; negative errno. */
int op_replay_early(struct op *op, struct err *err);
void op_sort_early(struct op_member *m);
