/* What the job is told of the return codes of lower rooms, which know no ncclResult_t. */
#pragma once

#include "shim/progress/comm.h"
#include "shim/real/nccl-api.h"

/* @r: 0; a negative errno; or (positive) a result of the real NCCL. */
ncclResult_t result_of(int r);
/* What a call on @c has to answer before anything else: ncclSuccess, or why not. */
ncclResult_t result_check(struct comm *c, const char *what);
