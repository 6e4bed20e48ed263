/* The ncclConfig_t that a job gives to a new communicator: checked, and kept. */
#pragma once

#include "base/err.h"
#include "shim/real/nccl-api.h"

/* Copies the job's config, as long as its size says, with the strings that it points to: the job
 * may free them before a real communicator is made. The copy is blocking, since the shim does the
 * waiting. Checks its values as NCCL 2.28.9 does: with one real rank no NCCL may ever see them.
 * @config may be NULL. @ret: the caller's to free(), NULL when there is none. Any thread. Return:
 * 0; -EINVAL with the sentence (NCCL's ncclInvalidArgument); -ENOMEM. */
int config_copy(const ncclConfig_t *config, void **ret, struct err *err);
