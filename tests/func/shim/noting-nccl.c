/* A real library that says each of its calls on stdout and does nothing: what does NCCL get in full
 * mode? Its version is NBOX_TEST_VERSION (default 22809). */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/real/nccl-api.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (write(1, line, (size_t)n) != n)
		abort();
}

EXPORT ncclResult_t pncclGetVersion(int *ret)
{
	const char *text = getenv("NBOX_TEST_VERSION");

	*ret = text ? atoi(text) : 22809;
	return ncclSuccess;
}

static const char *text_of(const char *name)
{
	return getenv(name) ? getenv(name) : "unset";
}

/* Is the plug-in that NCCL would open the libnbox.so that is here already? */
static const char *is_self(const char *name)
{
	void *handle = dlopen(text_of(name), RTLD_NOW | RTLD_LOCAL);

	return handle && dlsym(handle, "ncclAllReduce") == dlsym(RTLD_DEFAULT, "ncclAllReduce")
		       ? "self"
		       : "another";
}

EXPORT ncclResult_t pncclCommInitRank(ncclComm_t *ret, int n, ncclUniqueId id, int rank)
{
	say("init %d rank %d id %.8s\n", n, rank, id.internal);
	say("plugin %s profiler %s net %s host %s pxn %s\n", is_self("NCCL_NET_PLUGIN"),
	    is_self("NCCL_PROFILER_PLUGIN"), text_of("NCCL_NET"), text_of("NCCL_HOSTID"),
	    text_of("NCCL_PXN_DISABLE"));
	*ret = (ncclComm_t)(void *)ret;
	return ncclSuccess;
}

EXPORT ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
	(void)comm;
	say("destroy\n");
	return ncclSuccess;
}

EXPORT ncclResult_t pncclCommAbort(ncclComm_t comm)
{
	(void)comm;
	say("abort\n");
	return ncclSuccess;
}

EXPORT ncclResult_t pncclGroupStart(void)
{
	say("(");
	return ncclSuccess;
}

EXPORT ncclResult_t pncclGroupEnd(void)
{
	say(")\n");
	return ncclSuccess;
}

EXPORT ncclResult_t pncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
				   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)recv, (void)dtype, (void)comm, (void)stream;
	say("sum %zu op %d", count, (int)op);
	return ncclSuccess;
}

EXPORT ncclResult_t pncclSend(const void *send, size_t count, ncclDataType_t dtype, int peer,
			      ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)count, (void)dtype, (void)comm, (void)stream;
	say("to %d ", peer);
	return ncclSuccess;
}

EXPORT ncclResult_t pncclRecv(void *recv, size_t count, ncclDataType_t dtype, int peer,
			      ncclComm_t comm, cudaStream_t stream)
{
	(void)recv, (void)count, (void)dtype, (void)comm, (void)stream;
	say("from %d ", peer);
	return ncclSuccess;
}
