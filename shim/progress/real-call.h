/* A thread of the job in the real library, which makes its calls at the virtual size. A call may
 * wait there for another rank: NCCL connects two ranks in the first call that needs it. When the
 * communicator fails meanwhile nothing else may end that wait, so the shim revokes NCCL's
 * communicator then. */
#pragma once

#include "shim/progress/comm.h"

/* Before the call. Return: 0; -ECANCELED: @c has failed, make none. */
int real_call_begin(struct comm *c);
void real_call_end(struct comm *c);
/* The progress thread: @c has failed. A call that is still under way a second later is ended. */
void real_call_failed(struct comm *c);
