/* NCCL of another version, as far as it says (NBOX_TEST_NCCL_VERSION), in front of the real library
 * (NBOX_TEST_NCCL): all its other functions are that one's. */
#include <dlfcn.h>
#include <stdlib.h>

#include "shim/real/nccl-api.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static void *next(const char *name)
{
	static void *handle;
	void *fn;

	if (!handle)
		handle = dlopen(getenv("NBOX_TEST_NCCL"), RTLD_NOW | RTLD_LOCAL);
	fn = handle ? dlsym(handle, name) : NULL;
	if (!fn)
		abort();
	return fn;
}

#define RETURN_PLAIN(call) return call
#define RETURN_OWN(call) return call
#define RETURN_ON_REAL(call) return call
#define RETURN_REFUSE(call) return call
#define RETURN_PLAIN_VOID(call) call
#define NCCL_SYMBOL(how, ret, name, params, args)                                  \
	EXPORT ret pnccl##name params                                              \
	{                                                                          \
		RETURN_##how(((ret(*) params)(uintptr_t)next("pnccl" #name))args); \
	}
#define pncclGetVersion pass_on
#include "shim/real/nccl-symbols.h"
#undef pncclGetVersion

EXPORT ncclResult_t pncclGetVersion(int *version)
{
	ncclResult_t r = pass_on(version);

	*version = atoi(getenv("NBOX_TEST_NCCL_VERSION"));
	return r;
}
