/* A job whose cluster dies under it. It says "ready" once its communicator works, then all-reduces
 * until something is wrong. It says "told" and ends with 0 when NCCL's functions have told it of
 * that in the expected way. Before it ends it waits until the other ranks are told, too
 * (run-world.c): else they could be told of its own end instead.
 *
 *   bad-day WORLD RESULT [slow|puts]     the ncclResult_t that is expected; slow: the very first op
 *                                        will not end; puts: each puts to the next rank, and waits
 *                                        for what the one before puts */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Half of the window into the peer's other half. */
static ncclResult_t put(ncclComm_t comm, int n, int rank, void *a, ncclWindow_t *window,
			cudaStream_t stream)
{
	ncclWaitSignalDesc_t from = {.opCnt = 1, .peer = (rank + n - 1) % n};
	ncclResult_t r = ncclSuccess;

	if (!*window)
		r = ncclCommWindowRegister(comm, a, 4000, window, NCCL_WIN_COLL_SYMMETRIC);
	if (r == ncclSuccess)
		r = ncclPutSignal(a, 500, ncclFloat, (rank + 1) % n, *window, 2000, 0, 0, 0, comm,
				  stream);
	return r == ncclSuccess ? ncclWaitSignal(1, &from, comm, stream) : r;
}

int main(int argc, char **argv)
{
	bool is_slow = argc > 3 && !strcmp(argv[3], "slow"), puts_it = argc > 3 && !is_slow;
	ncclWindow_t window = NULL;
	int n, rank;
	ncclUniqueId id;
	ncclComm_t comm;
	ncclResult_t r = ncclSuccess, state = ncclSuccess;
	cudaStream_t stream;
	char end;
	void *a;

	if (argc < 3)
		return 2;
	n = atoi(argv[1]);
	rank = atoi(getenv("RANK"));
	memset(&id, 0, sizeof(id));
	if (cudaStreamCreate(&stream) || cudaMalloc(&a, 4000) ||
	    ncclCommInitRank(&comm, n, id, rank))
		return 3;
	for (long i = 0; r == ncclSuccess && state == ncclSuccess; i++) {
		r = puts_it ? put(comm, n, rank, a, &window, stream)
			    : ncclAllReduce(a, a, 1000, ncclFloat, ncclMax, comm, stream);
		if (i == (is_slow ? 0 : 2)) {
			puts("ready");
			fflush(stdout);
		}
		/* as watchdogs do: an op among the real ranks ends only when somebody aborts it */
		while (!is_slow && r == ncclSuccess && state == ncclSuccess &&
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
