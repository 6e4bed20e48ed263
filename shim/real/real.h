/* The real NCCL, found once, at the first call: the library that NBOX_NCCL names, else what
 * real-find.h finds. libnbox itself is never taken for it. */
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

/* Sets the sentence for a function that the real library lacks. Return: ncclInvalidUsage;
 * ncclSystemError: there is no real library. */
ncclResult_t real_missing(const char *name);

/* What a call of the real library answered. Return: 0; ncclResult_t > 0 with the sentence. */
int real_check(ncclResult_t result, const char *what, struct err *err);
/* Calls the real library's function @fn. Uses @err of the function that it stands in. */
#define REAL(fn, args) real_check(real_get()->fn ? real_get()->fn args : ncclInvalidUsage, #fn, err)
