/* Resharding steps of the job, with the times of a plan (config/resharding.h): the what-if `xmesh`.
 * A group of sends whose peers do not send in turn, or of receives alone, is one rank's part of
 * such a step. It is recognised by itself, so that nobody waits for anybody that he would not wait
 * for without the plan:
 *
 *   declared  its calls go from the senders to the receivers, and each has the bytes that the
 *             tensor has for the two; a receiver gets all of its tile in this group. What has the
 *             ranks but not the bytes is left alone, counted, and the first one is told
 *   assumed   it has more than one peer. Equal messages of a rank are copies of one slice, which
 *             goes out once, by the strategy; a rank's slices take turns, as do those that a rank
 *             receives; the other ranks of its node in the communicator do as it does, and take
 *             their shares of the node's NICs
 *
 * A rank is over so long after the last of itself and those that it calls has come as by the plan's
 * beginning; a sender whose message the buffers take does not wait for the receiver. Declared steps
 * share links with other ops (resharding-step.h); assumed ones claim none: other ops are neither in
 * their way nor kept. */
#pragma once

#include "op/table.h"

/* Sets op->p2p->plan and its flags, where it is one rank's part of a step. Return: 0; -ENOMEM. */
int resharding_find(struct op *op);
/* @post, of a planned op, has arrived: what it sends and the buffers take. Return: 0; negative
 * errno with the sentence, as below. */
int resharding_send(struct post *post, struct err *err);
/* Call @k of planned @post is call @call of @to, which is there. */
int resharding_meet(struct post *post, uint32_t k, struct post *to, uint32_t call, struct err *err);
/* The same where @to is left alone, and takes @ns: so is the sender. */
void resharding_meet_plainly(struct post *post, uint32_t k, struct post *to, uint32_t call,
			     double ns);
/* The calls of planned @post with virtual ranks that @run plays. */
int resharding_virtual(const struct run *run, struct post *post, struct err *err);
/* @post, planned, is over: at the real rank at @end, at those that copy it by their own part of the
 * plan. Return: 0; -ENOMEM. */
int resharding_end(struct post *post, double end, double plain_end);
