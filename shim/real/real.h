/* The real NCCL: found at run time, once, at the first call. Looked for in this
 * order: NBOX_NCCL (a path), a libnccl.so.2 that is already loaded (also one that
 * a Python extension loaded RTLD_LOCAL, which RTLD_NEXT does not see), RTLD_NEXT,
 * the dynamic linker's search path. libnbox itself is never taken for it. */
#pragma once

#include "base/err.h"
#include "shim/real/nccl-api.h"

struct real {
#define NCCL_SYMBOL(how, ret, name, params, args) ret(*name) params;
#include "shim/real/nccl-symbols.h"
#undef NCCL_SYMBOL
	char path[256]; /* "" when none was found */
	struct err err; /* then: the sentence */
};

/* Never NULL; absent functions are NULL pointers. Thread-safe. */
const struct real *real_get(void);

/* The result of a call that the real library does not have (or that could not
 * be found at all): sets the sentence. Return: ncclInvalidUsage, or
 * ncclSystemError when there is no real library. */
ncclResult_t real_missing(const char *name);

/* What a call of the real library answered. Return: 0; ncclResult_t > 0 with the sentence. */
int real_check(ncclResult_t result, const char *what, struct err *err);
/* Calls the real library's function @fn. Uses @err of the function that it stands in. */
#define REAL(fn, args) real_check(real_get()->fn ? real_get()->fn args : ncclInvalidUsage, #fn, err)
