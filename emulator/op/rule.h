/* The rule of nbox: when an op is ready to be played, and when it is over at each rank. */
#pragma once

#include "op/pairing.h"
#include "op/table.h"

/* Whether @op can be played now that one of its posts has arrived. @ret_ready: the posts of
 * point-to-point ops that can be, @op's or others. Return: 1 yes, 0 not yet, negative errno with
 * the sentence. */
int rule_is_ready(struct op *op, struct pair_post **ret_ready, struct err *err);
/* Ends @run at each rank: its members arrive by their timelines, and its timing says how long it
 * takes by itself; beside others it takes longer, and so do those (contention.h). Sets the ends of
 * its posts, in virtual time and by the wall clock, and the run's own span. Return: 0; negative
 * errno with the sentence. */
int rule_apply(struct run *run, struct err *err);
/* The ends of @run's posts have moved: by the wall clock, too. */
void rule_move_posts(struct run *run);
/* The same for one post of an op that has not started, where its end depends on nobody who has not
 * arrived: a broadcast's root waits for nobody, nor does a send that NCCL's buffers take. Return:
 * 0; 1: it does; negative errno with the sentence. */
int rule_apply_early(struct op *op, struct post *post, struct err *err);
