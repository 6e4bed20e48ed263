/* Whether an answer can be believed: what is below the bound is wrong, and what is far above it at
 * a size that bandwidth decides needs a reason. */
#pragma once

#include "nbox/ask/ask.h"

#define HONEST_LARGE_BYTES \
	(UINT64_C(64) << 20) /* nccl-tests' size, from which on bandwidth decides */
#define HONEST_TIMES 2.0     /* the bound */

bool honest_is_below(const struct answer *a);
bool honest_is_far_above(const struct answer *a, uint64_t size);
/* Why an op that is far above takes so long: "8.00 x the bound (2.7 ms at node0.nic0.out): ...".
 * Return: 0; negative errno with the sentence. */
int honest_why(struct ask *ask, enum coll_kind kind, uint64_t bytes, uint32_t elem_bytes,
	       const struct answer *a, char *buf, size_t size, struct err *err);
