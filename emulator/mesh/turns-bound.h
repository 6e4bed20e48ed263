/* The lower bound of plans: what makes one certain to be the best. */
#pragma once

#include "mesh/turn.h"

/* No plan ends before: what a receiver has to receive; what any set of senders has to send, shared
 * evenly, no task cut. Sets are all of up to 12 senders, else single ones and the tasks' own. */
double turns_bound(const struct turns_task *tasks, uint32_t n);
