/* When ranks start point-to-point calls, virtual ones too, and what NCCL's buffers take of their
 * messages. @is_plain: without what-ifs. */
#pragma once

#include "op/table.h"

/* Real @post's own. */
double post_start(const struct post *post, bool is_plain);
/* When world rank @world_rank, which calls in @run or is called there by @caller, does. A virtual
 * rank whose template has no post in the run comes as much after the caller's plain arrival as it
 * is behind on its own template's timeline. */
double p2p_start(const struct run *run, const struct post *caller, uint32_t world_rank,
		 bool is_plain);
/* The same of comm rank @rank. */
double p2p_start_of(const struct run *run, const struct post *caller, uint32_t rank, bool is_plain);
/* What buffers take of a message, at most; and as a share of one of @bytes. A put waits for nobody.
 */
uint64_t p2p_buffer_bytes(const struct op *op);
double p2p_buffered(const struct op *op, uint64_t bytes);
