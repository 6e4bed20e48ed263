/* A scenario file: what-ifs on a timeline, and what is expected of the run.
 *
 *   steps: {ops: 4, op: allreduce, communicator: world}
 *   events:
 *     - at: step 20             # or 30s; else from the beginning
 *       for: 15 steps           # or 10s; else to the end
 *       what: link:slower=4     # a what-if as the command line has it, or a list of them
 *       rack: 3                 # any other key goes to the what-if
 *     - at: step 40
 *       ramp: 10 steps          # rises from nothing
 *       every: 60 steps         # again and again
 *       for: 30 steps
 *       what: slow:rank=97,compute=1.3
 *   expect:
 *     - iteration_ms p95 < 700
 *
 * It becomes what-ifs with from=, for= and every= (scenario/when.h), the option steps and the
 * option expect: what nbox does knows nothing of scenarios. A ramp becomes up to RAMP_STAGES
 * what-ifs. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "config/scenario-list.h"

struct scenario {
	struct scenario_list steps; /* one at most */
	struct scenario_list what_ifs, expects;
	size_t n_events;
};

/* Errors name file, line and column; what-ifs themselves are not looked at. Return: 0; -EINVAL with
 * the sentence; -ENOMEM. */
int scenario_parse(const char *name, const char *text, size_t n, struct scenario *ret,
		   struct err *err);
void scenario_deinit(struct scenario *s);
