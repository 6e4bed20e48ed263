/* The rule (rule.h) for sends and receives: when each rank arrives, and when it is over with them.
 */
#pragma once

#include "op/table.h"

/* When comm rank @rank, which calls in @run or is called there by @caller, arrives; @is_plain:
 * without what-ifs. A virtual rank whose template has no post in the run comes as much after the
 * caller's plain arrival as it is behind on its own template's timeline. */
double rule_p2p_arrival(const struct run *run, const struct post *caller, uint32_t rank,
			bool is_plain);
/* Ends @run, whose ends by itself are there for real ranks (p2p.h), beside other ops: at those, and
 * at the ranks that copy them. Return: 0; negative errno with the sentence. */
int rule_p2p_end(struct run *run, struct err *err);
