/* ncclCommSplit and ncclCommShrink: who is in which child. */
#pragma once

#include "bootstrap/comm.h"

/* All real ranks of @comm have voted in @g: its votes are completed and, when colors and keys are
 * known, the children are made. @comm may fail. */
void split_votes(struct bootstrap_comm *comm, struct gather *g);
