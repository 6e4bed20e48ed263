/* What the job is told of a return code of a lower room. */
#pragma once

#include "shim/real/nccl-api.h"

/* @r: 0; a negative errno; or (positive) a result of the real NCCL. */
ncclResult_t result_of(int r);
