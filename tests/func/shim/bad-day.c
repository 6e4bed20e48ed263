/* A job whose cluster dies under it: says "ready" once its communicator works, then
 * all-reduces until something is wrong, and ends with 0 when it was told so as NCCL
 * would tell it.
 *
 *   bad-day WORLD RESULT [slow]     the ncclResult_t that is expected; slow: the very
 *                                   first op will not end */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	ncclUniqueId id;
	ncclComm_t comm;
	ncclResult_t r = ncclSuccess, state = ncclSuccess;
	cudaStream_t stream;
	void *a;

	if (argc < 3)
		return 2;
	memset(&id, 0, sizeof(id));
	if (cudaStreamCreate(&stream) || cudaMalloc(&a, 4000) ||
	    ncclCommInitRank(&comm, atoi(argv[1]), id, atoi(getenv("RANK"))))
		return 3;
	for (long i = 0; r == ncclSuccess && state == ncclSuccess; i++) {
		r = ncclAllReduce(a, a, 1000, ncclFloat, ncclMax, comm, stream);
		if (i == (argc > 3 ? 0 : 2)) {
			puts("ready");
			fflush(stdout);
		}
		if (r == ncclSuccess && cudaStreamSynchronize(stream))
			return 4;
		ncclCommGetAsyncError(comm, &state);
	}
	if (state != (ncclResult_t)atoi(argv[2])) {
		fprintf(stderr, "rank %s: result %d, state %d: %s\n", getenv("RANK"), (int)r,
			(int)state, ncclGetLastError(comm));
		return 5;
	}
	ncclCommAbort(comm);
	return 0;
}
