/* Ops: what nboxd does with the ARRIVE, MESSAGE and DONE frames of real ranks. A frame finds its
 * post (table.h); arrivals are compared and start runs (run.h), by the rule (rule.h); messages go
 * to the engine (message.h); a post that is done becomes a row of the record. What waits, and too
 * long, is put into words by wait.h. This room speaks to workers (loop) and communicators (comm);
 * those know it by op_comm_sink only. */
#pragma once

#include "nboxd/loop/worker.h"
#include "nboxd/op/live.h"

int op_on_arrive(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body);
/* What NCCL took for an op of a member that waits for this: it arrives at the op now. */
int op_on_took(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body);
int op_on_done(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body);
/* What communicators say to their ops, and ops to nboxd. */
extern const struct comm_sink op_comm_sink;
extern const struct ops_sink op_live_sink;
