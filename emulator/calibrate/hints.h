/* What the user says of measured times, for texts that do not say it themselves. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where the text says it, kind is the only one that is wanted, and ranks and nodes must be its own.
 */
struct read_hints {
	int kind;                  /* enum coll_kind; -1 */
	uint32_t n_ranks, n_nodes; /* 0 */
	bool in_place;             /* nccl-tests: the times of the right half */
};
