/* NCCL's own decisions of a communicator, where a decision file has its shape. */
#ifndef NCCL_DECIDED_H
#define NCCL_DECIDED_H

#include "cost.h"
#include "decisions.h"

/* What the file @d says of the communicator @c takes the place of what the fabric says: graphs and
 * channels, and costs from here on. Nothing changes where the file has no such shape, or where the
 * nodes have not as many ranks each. @d stays. */
void decided_apply(const struct decisions *d, struct comm *c);

/* The file's costs of that kind of op; NULL: it has none, and nbox's rules say them. */
const struct decisions_op *decided_op(const struct comm *c, uint32_t kind);

/* NCCL's cost at @bytes, in us; negative: not possible, because of *ret_why_not (static). At the
 * file's sizes it is the file's. Between two it follows from both: NCCL's cost is latency and bytes
 * over bandwidth, where a tree of AllReduce has a share of the bandwidth by powers of two, and a
 * ring more latency from some bytes a rank and channel on. Outside, the two nearest sizes say it.
 */
float decided_us(const struct comm *c, const struct decisions_op *op, uint32_t kind, uint32_t algo,
		 uint32_t proto, uint64_t bytes, const char **ret_why_not);

/* Most channels that NCCL gives them at @bytes; 0: the file does not say, or the user does. */
uint32_t decided_channels(const struct comm *c, const struct decisions_op *op, uint32_t algo,
			  uint32_t proto, uint64_t bytes);

#endif
