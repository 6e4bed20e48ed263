/* A job whose cluster dies under it. It says "ready" once its communicator works, then all-reduces
 * until something is wrong. It says "told" and ends with 0 when NCCL's functions have told it of
 * that in the expected way. Before it ends it waits until the other ranks are told, too
 * (run-world.c): else they could be told of its own end instead.
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
	char end;
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
		/* as watchdogs do: an op among the real ranks ends only when somebody aborts it */
		while (argc <= 3 && r == ncclSuccess && state == ncclSuccess &&
		       cudaStreamQuery(stream) == cudaErrorNotReady) {
			ncclCommGetAsyncError(comm, &state);
			usleep(200);
		}
		if (r == ncclSuccess && state == ncclSuccess && cudaStreamSynchronize(stream))
			return 4;
		if (state == ncclSuccess)
			ncclCommGetAsyncError(comm, &state);
	}
	if (state != (ncclResult_t)atoi(argv[2])) {
		fprintf(stderr, "rank %s: result %d, state %d: %s\n", getenv("RANK"), (int)r,
			(int)state, ncclGetLastError(comm));
		return 5;
	}
	puts("told");
	fflush(stdout);
	alarm(60);
	if (read(0, &end, 1) != 0)
		return 6;
	ncclCommAbort(comm);
	return cudaStreamSynchronize(stream) ? 7 : 0;
}
