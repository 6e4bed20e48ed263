/* Point-to-point traffic as in pipeline-parallel training, and worse: neighbours exchange while
 * others idle; groups at one end meet single calls at the other; rings; an uneven all-to-all-v;
 * all-reduces in between; and all of it beside traffic on a second communicator and stream. It
 * checks every number that came from a rank of its own node (--check all: from any rank).
 *
 * usage: pipeline [--check all|node|none] [--rounds N] [--elements N] */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbox-perf/rendezvous.h"

#define CUDA(call) must((call) == cudaSuccess, #call)
#define NCCL(call) must_nccl((call), #call)

struct area { /* of device memory, used from its start in each step */
	int32_t *mem;
	size_t used;
};

/* A receive whose numbers are to be checked. */
struct expected {
	size_t at, count;
	int src, tag;
};

static struct job {
	int rank, n, per_node, rounds;
	size_t elements;
	const char *checks; /* "all", "node", "none" */
	ncclComm_t comm, side;
	cudaStream_t stream, side_stream;
	struct area send, recv;
	size_t capacity;
	struct expected *expected;
	size_t n_expected;
	int32_t *host, *host_send; /* the second is of send's size */
	float *sums;
} job;

static void must(bool is_ok, const char *what)
{
	if (is_ok)
		return;
	fprintf(stderr, "pipeline: rank %d: %s failed\n", job.rank, what);
	exit(1);
}

static void must_nccl(ncclResult_t result, const char *what)
{
	if (result == ncclSuccess)
		return;
	fprintf(stderr, "pipeline: rank %d: %s: %s (%s)\n", job.rank, what,
		ncclGetErrorString(result), ncclGetLastError(job.comm));
	exit(1);
}

static int32_t value(int src, int dst, int tag, size_t i)
{
	return (int32_t)((uint32_t)src * 2654435761u ^ (uint32_t)dst * 40503u ^
			 (uint32_t)tag * 97u ^ (uint32_t)i);
}

static size_t take(struct area *a, size_t count)
{
	size_t at = a->used;

	must(at + count <= job.capacity, "room for a step");
	a->used += count;
	return at;
}

/* The copy must not wait for receives before it: NCCL connects at the first call for a peer, waits
 * there for the peer's own call, and a rank that waits for its stream makes none. */
static void send_to(int dst, size_t count, int tag)
{
	size_t at = take(&job.send, count);

	for (size_t i = 0; i < count; i++)
		job.host_send[at + i] = value(job.rank, dst, tag, i);
	CUDA(cudaMemcpyAsync(job.send.mem + at, job.host_send + at, count * sizeof(int32_t),
			     cudaMemcpyHostToDevice, job.stream));
	NCCL(ncclSend(job.send.mem + at, count, ncclInt32, dst, job.comm, job.stream));
}

static void recv_from(int src, size_t count, int tag)
{
	size_t at = take(&job.recv, count);

	job.expected[job.n_expected++] = (struct expected){at, count, src, tag};
	NCCL(ncclRecv(job.recv.mem + at, count, ncclInt32, src, job.comm, job.stream));
}

static bool is_checked(int src)
{
	if (strcmp(job.checks, "node") == 0)
		return src / job.per_node == job.rank / job.per_node;
	return strcmp(job.checks, "all") == 0;
}

/* The end of a step: all that was received is looked at. */
static void finish(const char *step)
{
	CUDA(cudaStreamSynchronize(job.stream));
	for (size_t k = 0; k < job.n_expected; k++) {
		const struct expected *e = &job.expected[k];

		if (!is_checked(e->src))
			continue;
		CUDA(cudaMemcpy(job.host, job.recv.mem + e->at, e->count * sizeof(int32_t),
				cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < e->count; i++) {
			if (job.host[i] == value(e->src, job.rank, e->tag, i))
				continue;
			fprintf(stderr,
				"pipeline: rank %d: %s: element %zu of %zu from rank %d is wrong\n",
				job.rank, step, i, e->count, e->src);
			exit(1);
		}
	}
	job.n_expected = 0;
	job.send.used = job.recv.used = 0;
}

/* --- steps ----------------------------------------------------------------------- */

/* The first and the last rank, and two in the middle; the others do nothing. */
static void some_meet(void)
{
	if (job.rank == 0)
		send_to(job.n - 1, job.elements, 1);
	if (job.rank == job.n - 1)
		recv_from(0, job.elements, 1);
	if (job.rank == 1 || job.rank == 2) {
		NCCL(ncclGroupStart());
		send_to(3 - job.rank, job.elements, 2);
		recv_from(3 - job.rank, job.elements, 2);
		NCCL(ncclGroupEnd());
	}
	finish("some meet");
}

/* Rank 1 in one group, its neighbours in single calls that depend on each other. Of several calls
 * for one peer NCCL begins the second when the first, and what it goes with, is through: rank 2 may
 * not wait for the second before it sends. */
static void group_meets_singles(void)
{
	if (job.rank == 1) {
		NCCL(ncclGroupStart());
		recv_from(2, job.elements / 2, 5);
		send_to(2, 100, 3);
		send_to(2, job.elements, 4);
		send_to(0, 17, 6);
		NCCL(ncclGroupEnd());
	} else if (job.rank == 2) {
		recv_from(1, 100, 3);
		send_to(1, job.elements / 2, 5);
		recv_from(1, job.elements, 4);
		send_to(0, 33, 7);
	} else if (job.rank == 0) {
		recv_from(2, 33, 7);
		recv_from(1, 17, 6);
	}
	finish("a group meets single calls");
}

static void ring(int round)
{
	size_t count = job.elements / 3 + 1 + (size_t)round;

	NCCL(ncclGroupStart());
	send_to((job.rank + 1) % job.n, count, 8);
	recv_from((job.rank + job.n - 1) % job.n, count, 8);
	NCCL(ncclGroupEnd());
	finish("ring");
}

/* Uneven, with empty calls, calls to oneself, and two calls for the nearest. */
static size_t share(int src, int dst)
{
	return (size_t)((src + 2 * dst) % 5) * (job.elements / 8);
}

static void all_to_all_v(void)
{
	NCCL(ncclGroupStart());
	for (int k = 0; k < job.n; k++) {
		int to = (job.rank + k) % job.n, from = (job.rank + job.n - k) % job.n;

		send_to(to, share(job.rank, to), 9);
		recv_from(from, share(from, job.rank), 9);
		if (k > 2)
			continue;
		send_to(to, 5, 10);
		recv_from(from, 5, 10);
	}
	NCCL(ncclGroupEnd());
	finish("all-to-all-v");
}

static void all_reduce(ncclComm_t comm, cudaStream_t stream, size_t at)
{
	NCCL(ncclAllReduce(job.sums + at, job.sums + at + 1, 1, ncclFloat, ncclSum, comm, stream));
}

static void check_sum(size_t at)
{
	float sum = 0;

	CUDA(cudaMemcpy(&sum, job.sums + at + 1, sizeof(sum), cudaMemcpyDeviceToHost));
	must(sum == (float)job.n, "the sum of ones over all ranks");
}

static void run(void)
{
	for (int round = 0; round < job.rounds; round++) {
		all_reduce(job.side, job.side_stream, 2); /* all of a round beside it */
		some_meet();
		group_meets_singles();
		all_reduce(job.comm, job.stream, 0);
		ring(round);
		check_sum(0);
		all_to_all_v();
		CUDA(cudaStreamSynchronize(job.side_stream));
		check_sum(2);
	}
}

/* --- begin and end ------------------------------------------------------------------ */

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text && *text ? atoi(text) : otherwise;
}

static void begin(void)
{
	static const float ones[4] = {1, 0, 1, 0};
	ncclUniqueId id;
	int n_devices = 0;

	job.rank = number("RANK", 0);
	job.n = number("WORLD_SIZE", 1);
	job.per_node = number("LOCAL_WORLD_SIZE", job.n);
	must(job.n >= 4, "a world of at least 4 ranks");
	CUDA(cudaGetDeviceCount(&n_devices));
	CUDA(cudaSetDevice(number("LOCAL_RANK", 0) % n_devices));
	must(rendezvous(job.rank, NULL, &id) == 0, "rendezvous");
	NCCL(ncclCommInitRank(&job.comm, job.n, id, job.rank));
	NCCL(ncclCommSplit(job.comm, 0, job.rank, &job.side, NULL));
	CUDA(cudaStreamCreate(&job.stream));
	CUDA(cudaStreamCreate(&job.side_stream));
	job.capacity = ((size_t)job.n + 4) * (job.elements + 64);
	CUDA(cudaMalloc((void **)&job.send.mem, job.capacity * sizeof(int32_t)));
	CUDA(cudaMalloc((void **)&job.recv.mem, job.capacity * sizeof(int32_t)));
	CUDA(cudaMalloc((void **)&job.sums, sizeof(ones)));
	CUDA(cudaMemcpy(job.sums, ones, sizeof(ones), cudaMemcpyHostToDevice));
	job.host = malloc(job.elements * sizeof(int32_t) + 4096);
	job.host_send = malloc(job.capacity * sizeof(int32_t));
	job.expected = malloc(((size_t)job.n + 8) * sizeof(*job.expected));
	must(job.host && job.host_send && job.expected, "malloc");
}

static void end(void)
{
	NCCL(ncclCommDestroy(job.side));
	NCCL(ncclCommDestroy(job.comm));
	CUDA(cudaStreamDestroy(job.stream));
	CUDA(cudaStreamDestroy(job.side_stream));
	CUDA(cudaFree(job.send.mem));
	CUDA(cudaFree(job.recv.mem));
	CUDA(cudaFree(job.sums));
	free(job.host);
	free(job.host_send);
	free(job.expected);
}

int main(int argc, char **argv)
{
	job.checks = "node";
	job.rounds = 4;
	job.elements = 3000;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--check") == 0 && i + 1 < argc)
			job.checks = argv[++i];
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			job.rounds = atoi(argv[++i]);
		else if (strcmp(argv[i], "--elements") == 0 && i + 1 < argc)
			job.elements = (size_t)atoll(argv[++i]);
		else
			must(false, argv[i]);
	}
	begin();
	run();
	end();
	printf("pipeline: rank %d of %d: %d rounds\n", job.rank, job.n, job.rounds);
	return 0;
}
