/* A tensor moves from the devices of one mesh to those of another, as a framework without plans for
 * that moves it: each receiver has a piece of its tile from one replica of each source tile, by
 * plain sends and receives, all in one group. Ranks from 0 on are the source mesh, those behind it
 * the destination. An all-reduce of all ends each step. The values are not looked at.
 *
 * usage: resharder TENSOR DTYPE SRC DST [--steps N] [--one-by-one] [--beside N]
 *   such as: resharder 64x64x2048 f32 RS0R@2x4 S0RR@2x4
 * --one-by-one: without the group
 * --beside: at the same time, an all-reduce of N floats by another communicator of all */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/spec.h"
#include "nbox-perf/rendezvous.h"

#define CUDA(call) must((call) == cudaSuccess, #call)
#define NCCL(call) must((call) == ncclSuccess, #call)

static struct {
	struct mesh_tensor tensor;
	struct mesh_spec src, dst;
	uint32_t n_src, n_dst;
	int rank, n, steps;
	bool one_by_one;
	size_t n_beside;
	ncclComm_t comm, other_comm;
	cudaStream_t stream, other_stream;
	char *mem; /* device memory, of a whole tensor */
	float *sum, *beside;
} job;

static void must(bool is_ok, const char *what)
{
	if (is_ok)
		return;
	fprintf(stderr, "resharder: rank %d: %s failed\n", job.rank, what);
	exit(1);
}

static uint64_t common_bytes(uint32_t from, uint32_t to)
{
	struct mesh_box a, b;
	uint64_t bytes = job.tensor.element_bytes;

	mesh_tile_box(&job.src, &job.tensor, mesh_tile_of(&job.src, from), &a);
	mesh_tile_box(&job.dst, &job.tensor, mesh_tile_of(&job.dst, to), &b);
	for (uint32_t i = 0; i < job.tensor.n_dims; i++) {
		uint64_t lo = a.lo[i] > b.lo[i] ? a.lo[i] : b.lo[i];
		uint64_t hi = a.hi[i] < b.hi[i] ? a.hi[i] : b.hi[i];

		bytes *= hi > lo ? hi - lo : 0;
	}
	return bytes;
}

/* Of the replicas of @from's tile, whether it is the one for receiver @to. */
static bool is_for(uint32_t from, uint32_t to)
{
	uint32_t n = 0, before = 0;

	for (uint32_t i = 0; i < job.n_src; i++) {
		bool is_replica = mesh_tile_of(&job.src, i) == mesh_tile_of(&job.src, from);

		before += is_replica && i < from;
		n += is_replica;
	}
	return to % n == before;
}

static void step(void)
{
	char *at = job.mem;

	if (job.n_beside)
		NCCL(ncclAllReduce(job.beside, job.beside, job.n_beside, ncclFloat, ncclSum,
				   job.other_comm, job.other_stream));
	if (!job.one_by_one)
		NCCL(ncclGroupStart());
	for (uint32_t from = 0; from < job.n_src; from++)
		for (uint32_t to = 0; to < job.n_dst; to++) {
			uint64_t bytes = common_bytes(from, to);
			int peer = (int)(job.n_src + to);

			if (!bytes || !is_for(from, to))
				continue;
			if (job.rank == (int)from)
				NCCL(ncclSend(job.mem, bytes, ncclInt8, peer, job.comm,
					      job.stream));
			if (job.rank == peer)
				NCCL(ncclRecv(at, bytes, ncclInt8, (int)from, job.comm,
					      job.stream));
			at += job.rank == peer ? bytes : 0;
		}
	if (!job.one_by_one)
		NCCL(ncclGroupEnd());
	NCCL(ncclAllReduce(job.sum, job.sum, 1, ncclFloat, ncclSum, job.comm, job.stream));
	CUDA(cudaStreamSynchronize(job.other_stream));
	CUDA(cudaStreamSynchronize(job.stream));
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text && *text ? atoi(text) : otherwise;
}

static void take(int argc, char **argv)
{
	struct err err = {"usage: resharder TENSOR DTYPE SRC DST [--steps N] [--one-by-one] "
			  "[--beside N]"};
	int bytes = 0;

	job.steps = 3;
	if (argc < 5 || mesh_dims_parse(argv[1], &job.tensor, &err) < 0 ||
	    (bytes = mesh_dtype_bytes(argv[2], &err)) < 0 ||
	    mesh_spec_parse(argv[3], &job.src, &err) < 0 ||
	    mesh_spec_parse(argv[4], &job.dst, &err) < 0)
		must(false, err.text);
	job.tensor.element_bytes = (uint32_t)bytes;
	for (int i = 5; i < argc; i++) {
		if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc)
			job.steps = atoi(argv[++i]);
		else if (strcmp(argv[i], "--one-by-one") == 0)
			job.one_by_one = true;
		else if (strcmp(argv[i], "--beside") == 0 && i + 1 < argc)
			job.n_beside = (size_t)atol(argv[++i]);
		else
			must(false, argv[i]);
	}
	job.n_src = job.src.hosts * job.src.devices;
	job.n_dst = job.dst.hosts * job.dst.devices;
}

int main(int argc, char **argv)
{
	ncclUniqueId id;
	int n_devices = 0;

	job.rank = number("RANK", 0);
	job.n = number("WORLD_SIZE", 1);
	take(argc, argv);
	must((uint32_t)job.n == job.n_src + job.n_dst, "a world as large as both meshes");
	CUDA(cudaGetDeviceCount(&n_devices));
	CUDA(cudaSetDevice(number("LOCAL_RANK", 0) % n_devices));
	must(rendezvous(job.rank, NULL, &id) == 0, "rendezvous");
	NCCL(ncclCommInitRank(&job.comm, job.n, id, job.rank));
	if (job.n_beside)
		NCCL(ncclCommSplit(job.comm, 0, job.rank, &job.other_comm, NULL));
	CUDA(cudaStreamCreate(&job.stream));
	CUDA(cudaStreamCreate(&job.other_stream));
	CUDA(cudaMalloc((void **)&job.mem, mesh_bytes(&job.tensor)));
	CUDA(cudaMalloc((void **)&job.sum, sizeof(*job.sum)));
	CUDA(cudaMemset(job.sum, 0, sizeof(*job.sum)));
	CUDA(cudaMalloc((void **)&job.beside, (job.n_beside + 1) * sizeof(*job.beside)));
	CUDA(cudaMemset(job.beside, 0, job.n_beside * sizeof(*job.beside)));
	for (int i = 0; i < job.steps; i++)
		step();
	if (job.n_beside)
		NCCL(ncclCommDestroy(job.other_comm));
	NCCL(ncclCommDestroy(job.comm));
	CUDA(cudaStreamDestroy(job.other_stream));
	CUDA(cudaStreamDestroy(job.stream));
	CUDA(cudaFree(job.beside));
	CUDA(cudaFree(job.mem));
	CUDA(cudaFree(job.sum));
	return 0;
}
