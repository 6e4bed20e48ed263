/* Shared by op*.c and p2p*.c. */
#pragma once

#include "nboxd/op/op.h"

/* The live communicator and member that a frame speaks for; NULL: swallow it (the
 * communicator is dead or gone), or the worker was refused. See comm_frame_member(). */
struct comm_member *op_find_member(struct ops *ops, struct worker *w, const struct wire_hdr *h,
				   struct comm **ret);
/* The op too; false as above. */
bool op_find(struct ops *ops, struct worker *w, const struct wire_hdr *h, struct op **ret,
	     size_t *ret_i);

struct op *op_by_seq(const struct comm *c, uint64_t seq); /* NULL: there is none */
/* No op more can be begun: @c is aborted. What nboxd keeps of an op is less than what the job's
 * own process does, so this is against peers that have gone wrong. */
bool op_is_full(struct comm *c);

/* What a frame of ARRIVE may say by itself; its time is corrected. Return: 0; -1: the
 * worker was refused. */
int op_check_arrive(struct worker *w, const struct comm *c, const struct wire_hdr *h,
		    struct wire_arrive *a);
/* What @m computed before its first op of a kind counts as its set-up, which no what-if makes
 * longer: import, data and models lie between a barrier, an all-gather of sizes and the first
 * all-reduce. */
void op_leave_out_setup(struct comm_member *m, struct wire_arrive *a);
void op_send_message(struct engine_user *user, uint32_t in, uint64_t index);
/* Gives the engine what arrived before the start. Return: 0; negative errno. */
int op_replay_early(struct op *op, struct err *err);

/* --- op-wait.c ------------------------------------------------------------------------ */

/* "AllReduce of 1024 float32 (4 KiB), root 0". Return: @buf. */
char *op_call_text(const struct wire_arrive *a, char *buf, size_t size);
/* Of the members that have arrived, the first; of none, the first of all. */
const struct op_member *op_first_arrived(const struct op *op);
/* Something of @c has not moved since @moved_ns: @text says so and is a warning, or, after the
 * timeout, what
 * @c is aborted for. Return: when to come again, twice as long after; 0: it was aborted. */
uint64_t op_wait_tick(struct comm *c, const char *text, uint64_t moved_ns, uint64_t now_ns);
