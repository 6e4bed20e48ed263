/* What a process needs before it makes its first virtual communicator: the link to nboxd and the
 * device. Once they are there, nboxd is told what the run's summary and its versions.txt must say
 * of this process. */
#pragma once

#include "shim/gate/device.h"
#include "shim/real/nccl-api.h"

/* Return: the device; NULL: *ret says what the caller @what has to answer. */
const struct device *ready_get(const char *what, ncclResult_t *ret);
/* The answer of @what for the negative errno @r with its sentence. The first one also goes to
 * stderr, followed by @hint: what to do. */
ncclResult_t ready_refuse(const char *what, int r, const struct err *err, const char *hint);
