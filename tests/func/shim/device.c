/* device WORLD HOW: which device libnbox takes, seen from outside.
 *   host     it launches host functions
 *   cuda     it launches none
 *   refused  the first communicator fails; usage: because of what the user said
 *   broken   an op fails with ncclUnhandledCudaError, and so does all after it */
#include "job.h"

#include <dlfcn.h>
#include <stdatomic.h>

static _Atomic unsigned int n_host_functions; /* libnbox's; host NCCL's kernels are some too */

/* In the program: found before the runtime's. */
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
	cudaError_t (*real)(cudaStream_t, cudaHostFn_t, void *) =
		(__typeof__(real))dlsym(RTLD_NEXT, "cudaLaunchHostFunc");

	Dl_info info;

	if (dladdr((void *)fn, &info) && strstr(info.dli_fname, "libnbox"))
		atomic_fetch_add(&n_host_functions, 1);
	return real(s, fn, arg);
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	ncclUniqueId id = {.internal = "device"};
	ncclResult_t r, async;
	cudaStream_t s;
	ncclComm_t c;
	float *buf;

	n = atoi(argv[1]);
	me = atoi(getenv("RANK"));
	CUDA(cudaSetDevice(me % 4));
	CUDA(cudaStreamCreate(&s));
	CUDA(cudaMalloc((void **)&buf, 1024));
	r = ncclCommInitRank(&c, n, id, me);
	if (!strcmp(how, "refused") || !strcmp(how, "usage")) {
		CHECK(r == (*how == 'u' ? ncclInvalidUsage : ncclSystemError), "%d", r);
		return 0;
	}
	NCCL(r);
	r = ncclSuccess;
	for (int i = 0; r == ncclSuccess && i < 20; i++)
		r = ncclAllReduce(buf, buf, 256, ncclFloat, ncclSum, c, s);
	if (!strcmp(how, "broken")) {
		CHECK(r == ncclUnhandledCudaError, "%d", r);
		CHECK(strstr(ncclGetLastError(c), "cuStreamBatchMemOp"), "%s", ncclGetLastError(c));
		NCCL(ncclCommGetAsyncError(c, &async));
		CHECK(async == ncclUnhandledCudaError, "%d", async);
		NCCL(ncclCommAbort(c));
		CUDA(cudaStreamSynchronize(s));
		return 0;
	}
	NCCL(r);
	CUDA(cudaStreamSynchronize(s));
	NCCL(ncclCommDestroy(c));
	CHECK(!strcmp(how, "host") == (n_host_functions > 0), "%u host functions",
	      n_host_functions);
	return 0;
}
