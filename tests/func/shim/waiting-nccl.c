/* A real library in front of the real library (NBOX_TEST_NCCL). It passes all functions on. Making
 * a communicator first waits for everything that the device has to do, as NCCL's own may. It also
 * checks that a config names the network "some net" and itself "some comm". */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "shim/real/nccl-api.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static void *next(const char *name)
{
	static void *handle;

	if (!handle)
		handle = dlopen(getenv("NBOX_TEST_NCCL"), RTLD_NOW | RTLD_LOCAL);
	return handle ? dlsym(handle, name) : NULL;
}

static void before(const char *name)
{
	int (*synchronize)(void);

	if (name[0] != 'C' || name[4] != 'I') /* CommInit... */
		return;
	synchronize = (int (*)(void))dlsym(RTLD_DEFAULT, "cudaDeviceSynchronize");
	if (!synchronize || synchronize())
		abort();
}

#define RETURN_PLAIN(call) return call
#define RETURN_OWN(call) return call
#define RETURN_ON_REAL(call) return call
#define RETURN_REFUSE(call) return call
#define RETURN_PLAIN_VOID(call) call
#define NCCL_SYMBOL(how, ret, name, params, args)                     \
	EXPORT ret pnccl##name params                                 \
	{                                                             \
		ret(*fn) params = (ret(*) params)next("pnccl" #name); \
		before(#name);                                        \
		if (!fn)                                              \
			abort();                                      \
		RETURN_##how(fn args);                                \
	}
#define pncclCommInitRankConfig pass_on
#include "shim/real/nccl-symbols.h"
#undef pncclCommInitRankConfig

EXPORT ncclResult_t pncclCommInitRankConfig(ncclComm_t *ret, int n_ranks, ncclUniqueId id, int rank,
					    ncclConfig_t *config)
{
	if (!config->net_name || strcmp(config->net_name, "some net") || !config->comm_name ||
	    strcmp(config->comm_name, "some comm"))
		return ncclInternalError;
	config->net_name = config->comm_name = NULL;
	return pass_on(ret, n_ranks, id, rank, config);
}
