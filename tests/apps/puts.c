/* One-sided traffic: a barrier of signals, a ring of puts, an all-to-all of puts, a ping-pong whose
 * one end waits before it puts; each in every round. It counts the numbers that it finds in its
 * window: right ones, those of the same step by another rank (what comes from a virtual one), and
 * ends with 1 at any other. Of the all-to-all it looks at what ranks of its own node have put.
 *
 * With --collective it computes, and calls ncclAlltoAll, instead.
 *
 * usage: puts [--rounds N] [--elements N] [--no-check] [--collective MS] */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nbox-perf/rendezvous.h"

#define CUDA(call) must((call) == cudaSuccess, #call)
#define NCCL(call) must_nccl((call), #call)
#define RANK_STRIDE 1000003

static struct job {
	int rank, n, per_node, rounds, compute_ms;
	size_t elements; /* of one put */
	bool is_checked;
	ncclComm_t comm;
	cudaStream_t stream;
	int32_t *send, *window; /* n x elements each */
	ncclWindow_t send_handle, handle;
	int32_t *host;
	ncclWaitSignalDesc_t *all;
	uint64_t right, others;
} job;

static void must(bool is_ok, const char *what)
{
	if (is_ok)
		return;
	fprintf(stderr, "puts: rank %d: %s failed\n", job.rank, what);
	exit(1);
}

static void must_nccl(ncclResult_t result, const char *what)
{
	if (result == ncclSuccess)
		return;
	fprintf(stderr, "puts: rank %d: %s: %s (%s)\n", job.rank, what, ncclGetErrorString(result),
		ncclGetLastError(job.comm));
	exit(1);
}

/* Behind this nobody reads what was put before, or puts something yet. */
static void barrier(void)
{
	CUDA(cudaStreamSynchronize(job.stream));
	NCCL(ncclGroupStart());
	for (int r = 0; r < job.n; r++)
		NCCL(ncclSignal(r, 0, 0, 0, job.comm, job.stream));
	NCCL(ncclGroupEnd());
	NCCL(ncclWaitSignal(job.n, job.all, job.comm, job.stream));
}

/* Numbers that tell who put them, and in which step. */
static void fill(int step)
{
	for (size_t i = 0; i < (size_t)job.n * job.elements; i++)
		job.host[i] = job.rank * RANK_STRIDE + step;
	CUDA(cudaMemcpyAsync(job.send, job.host, (size_t)job.n * job.elements * sizeof(*job.host),
			     cudaMemcpyHostToDevice, job.stream));
	CUDA(cudaStreamSynchronize(job.stream));
}

/* What @src has put at @slot of the window. */
static void look(int src, int slot, int step)
{
	if (!job.is_checked)
		return;
	CUDA(cudaMemcpyAsync(job.host, job.window + (size_t)slot * job.elements,
			     job.elements * sizeof(*job.host), cudaMemcpyDeviceToHost, job.stream));
	CUDA(cudaStreamSynchronize(job.stream));
	for (size_t i = 0; i < job.elements; i++) {
		if (job.host[i] == src * RANK_STRIDE + step) {
			job.right++;
		} else if (job.host[i] % RANK_STRIDE == step && job.host[i] / RANK_STRIDE < job.n) {
			job.others++;
		} else {
			fprintf(stderr, "puts: rank %d: step %d: %d from rank %d\n", job.rank, step,
				job.host[i], src);
			exit(1);
		}
	}
}

static void put(int to, int slot)
{
	NCCL(ncclPutSignal(job.send + (size_t)to * job.elements, job.elements, ncclInt32, to,
			   job.handle, (size_t)slot * job.elements * sizeof(int32_t), 0, 0, 0,
			   job.comm, job.stream));
}

static void wait_for(int from)
{
	ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = from};

	NCCL(ncclWaitSignal(1, &one, job.comm, job.stream));
}

static void ring(int step)
{
	int from = (job.rank + job.n - 1) % job.n;

	fill(step);
	barrier();
	put((job.rank + 1) % job.n, 0);
	wait_for(from);
	look(from, 0, step);
}

static void all_to_all(int step)
{
	fill(step);
	barrier();
	NCCL(ncclGroupStart());
	for (int r = 0; r < job.n; r++)
		put(r, job.rank);
	NCCL(ncclGroupEnd());
	NCCL(ncclWaitSignal(job.n, job.all, job.comm, job.stream));
	for (int r = 0; r < job.n; r++)
		if (r / job.per_node == job.rank / job.per_node)
			look(r, r, step);
}

static void ping_pong(int step)
{
	int peer = job.rank ^ 1;

	fill(step);
	barrier();
	if (peer < job.n && job.rank > peer)
		put(peer, 0);
	if (peer < job.n)
		wait_for(peer);
	if (peer < job.n && job.rank < peer)
		put(peer, 0);
	if (peer < job.n)
		look(peer, 0, step);
}

static void CUDART_CB compute(void *arg)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (int i = 0; i < *(const int *)arg; i++)
		nanosleep(&ms, NULL);
}

static void collective(void)
{
	CUDA(cudaLaunchHostFunc(job.stream, compute, &job.compute_ms));
	NCCL(ncclAlltoAll(job.send, job.window, job.elements, ncclInt32, job.comm, job.stream));
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

static void begin(void)
{
	ncclUniqueId id;
	int n_devices = 0;
	size_t bytes;

	job.rank = number("RANK", 0);
	job.n = number("WORLD_SIZE", 1);
	job.per_node = number("LOCAL_WORLD_SIZE", job.n);
	bytes = (size_t)job.n * job.elements * sizeof(int32_t);
	CUDA(cudaGetDeviceCount(&n_devices));
	CUDA(cudaSetDevice(number("LOCAL_RANK", 0) % n_devices));
	must(rendezvous(job.rank, NULL, &id) == 0, "rendezvous");
	NCCL(ncclCommInitRank(&job.comm, job.n, id, job.rank));
	CUDA(cudaStreamCreate(&job.stream));
	NCCL(ncclMemAlloc((void **)&job.send, bytes));
	NCCL(ncclMemAlloc((void **)&job.window, bytes));
	NCCL(ncclCommWindowRegister(job.comm, job.send, bytes, &job.send_handle,
				    NCCL_WIN_COLL_SYMMETRIC));
	NCCL(ncclCommWindowRegister(job.comm, job.window, bytes, &job.handle,
				    NCCL_WIN_COLL_SYMMETRIC));
	job.host = malloc(bytes);
	job.all = calloc((size_t)job.n, sizeof(*job.all));
	must(job.host && job.all, "malloc");
	for (int r = 0; r < job.n; r++)
		job.all[r] = (ncclWaitSignalDesc_t){.opCnt = 1, .peer = r};
}

static void end(void)
{
	barrier();
	CUDA(cudaStreamSynchronize(job.stream));
	NCCL(ncclCommWindowDeregister(job.comm, job.handle));
	NCCL(ncclCommWindowDeregister(job.comm, job.send_handle));
	NCCL(ncclCommDestroy(job.comm));
	NCCL(ncclMemFree(job.send));
	NCCL(ncclMemFree(job.window));
	CUDA(cudaStreamDestroy(job.stream));
	free(job.host);
	free(job.all);
}

int main(int argc, char **argv)
{
	job.rounds = 2;
	job.elements = 1000;
	job.is_checked = true;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--no-check"))
			job.is_checked = false;
		else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
			job.rounds = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--elements") && i + 1 < argc)
			job.elements = (size_t)atoll(argv[++i]);
		else if (!strcmp(argv[i], "--collective") && i + 1 < argc)
			job.compute_ms = atoi(argv[++i]);
		else
			must(false, argv[i]);
	}
	begin();
	for (int i = 0; i < job.rounds; i++) {
		if (job.compute_ms) {
			collective();
			continue;
		}
		ring(3 * i);
		all_to_all(3 * i + 1);
		ping_pong(3 * i + 2);
	}
	end();
	printf("puts: rank %d of %d: %llu right, %llu of other ranks\n", job.rank, job.n,
	       (unsigned long long)job.right, (unsigned long long)job.others);
	return 0;
}
