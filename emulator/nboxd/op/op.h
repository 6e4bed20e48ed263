/* Ops: what nboxd does with the ARRIVE, MESSAGE and DONE frames of real ranks. A frame finds its
 * post (table.h); arrivals are compared and start runs (run.h), by the rule (rule.h); messages go
 * to the engine (message.h); a post that is done becomes a row of the record. What waits, and too
 * long, is put into words by wait.h. This room speaks to workers (loop) and communicators (comm);
 * those know it by op_comm_sink only. */
#pragma once

#include "nboxd/comm/comm.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/ops.h"

int op_on_arrive(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);
int op_on_done(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);
/* What communicators say to their ops. */
extern const struct comm_sink op_comm_sink;
