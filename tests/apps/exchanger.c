/* An all-to-all that is not even, as a framework makes it of its own counts: a group of sends and
 * receives, without those that have no bytes; then back, as gradients go; then an all-reduce. Each
 * rank takes its own counts from a file of all, a line for each source, plain numbers. The values
 * are not looked at.
 *
 * usage: exchanger FILE [TIMES]
 *   TIMES: so many times the bytes of FILE (default 1) */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "nbox-perf/rendezvous.h"

#define CUDA(call) must((call) == cudaSuccess, #call)
#define NCCL(call) must((call) == ncclSuccess, #call)

static struct {
	int rank, n;
	size_t *bytes, most; /* by source, then destination */
	ncclComm_t comm;
	cudaStream_t stream;
	char *mem;
	float *sum;
} job;

static void must(bool is_ok, const char *what)
{
	if (is_ok)
		return;
	fprintf(stderr, "exchanger: rank %d: %s failed\n", job.rank, what);
	exit(1);
}

static size_t bytes_of(int from, int to, bool is_back)
{
	return is_back ? job.bytes[to * job.n + from] : job.bytes[from * job.n + to];
}

static void exchange(bool is_back)
{
	NCCL(ncclGroupStart());
	for (int peer = 0; peer < job.n; peer++) {
		size_t sent = bytes_of(job.rank, peer, is_back);
		size_t received = bytes_of(peer, job.rank, is_back);

		if (sent)
			NCCL(ncclSend(job.mem, sent, ncclInt8, peer, job.comm, job.stream));
		if (received)
			NCCL(ncclRecv(job.mem + job.most, received, ncclInt8, peer, job.comm,
				      job.stream));
	}
	NCCL(ncclGroupEnd());
}

static void take(const char *file, size_t times)
{
	FILE *f = fopen(file, "re");

	must(f != NULL, file);
	job.bytes = calloc((size_t)job.n * (size_t)job.n, sizeof(*job.bytes));
	must(job.bytes != NULL, "memory");
	for (int i = 0; i < job.n * job.n; i++) {
		must(fscanf(f, "%zu", &job.bytes[i]) == 1, "a number for each pair");
		job.bytes[i] *= times;
		job.most = job.bytes[i] > job.most ? job.bytes[i] : job.most;
	}
	fclose(f);
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text && *text ? atoi(text) : otherwise;
}

int main(int argc, char **argv)
{
	ncclUniqueId id;
	int n_devices = 0;

	job.rank = number("RANK", 0);
	job.n = number("WORLD_SIZE", 1);
	must(argc > 1, "usage: exchanger FILE [TIMES]");
	take(argv[1], argc > 2 ? (size_t)atoi(argv[2]) : 1);
	CUDA(cudaGetDeviceCount(&n_devices));
	CUDA(cudaSetDevice(number("LOCAL_RANK", 0) % n_devices));
	must(rendezvous(job.rank, NULL, &id) == 0, "rendezvous");
	NCCL(ncclCommInitRank(&job.comm, job.n, id, job.rank));
	CUDA(cudaStreamCreate(&job.stream));
	CUDA(cudaMalloc((void **)&job.mem, 2 * job.most));
	CUDA(cudaMalloc((void **)&job.sum, sizeof(*job.sum)));
	CUDA(cudaMemset(job.sum, 0, sizeof(*job.sum)));
	for (int i = 0; i < 3; i++) {
		exchange(false);
		exchange(true);
		NCCL(ncclAllReduce(job.sum, job.sum, 1, ncclFloat, ncclSum, job.comm, job.stream));
		CUDA(cudaStreamSynchronize(job.stream));
	}
	NCCL(ncclCommDestroy(job.comm));
	CUDA(cudaStreamDestroy(job.stream));
	CUDA(cudaFree(job.mem));
	CUDA(cudaFree(job.sum));
	free(job.bytes);
	return 0;
}
