/* The rule (rule.h) for sends and receives: when each rank arrives, and when it is over with them.
 */
#pragma once

#include "op/table.h"

/* Ends @run beside other ops: its posts at their real ranks, and at those that copy them. Return:
 * 0; negative errno with the sentence. */
int rule_p2p_end(struct run *run, struct err *err);
/* Ends @post, which waits for nobody (messages.h), at all its ranks. Return: as above. */
int rule_p2p_end_early(struct post *post, struct err *err);
