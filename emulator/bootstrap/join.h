/* How real ranks come into the child of a split: each tells its address to its prev there, and
 * hears its next's, over the parent. Both are we. */
#pragma once

#include "bootstrap/comm.h"

/* Member @m of @parent tells where its prev in the child finds it. @parent or the child may fail.
 */
void join_message(struct bootstrap_comm *parent, struct member *m, const uint8_t *bytes,
		  uint32_t n);
