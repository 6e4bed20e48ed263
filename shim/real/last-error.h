/* The sentence behind ncclGetLastError(). Each thread has its own: no lock is needed, and no other
 * thread's call overwrites it. */
#pragma once

#include "shim/real/nccl-api.h"

/* Return: @result, so that `return last_error_set(...)` reads well. */
ncclResult_t last_error_set(ncclResult_t result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *last_error_get(void); /* "" when this thread had none */
