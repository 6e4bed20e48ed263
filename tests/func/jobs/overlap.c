/* Ops that are in the network at the same time, after one of 4 bytes on each communicator:
 *
 *   overlap group     a group of eight all-reduces of 1 MiB, on one communicator
 *   overlap comms     two all-reduces of 1 MiB, each on its own communicator and stream
 *   overlap gather    an uneven all-gather: a group of broadcasts, rank r's of r + 1 times 64 KiB
 *   overlap root      a broadcast and an all-reduce of 1 MiB, each on its own communicator and
 * stream overlap sends     two sends of 1 MiB to the next rank, each on its own communicator and
 * stream
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "nbox-perf/rendezvous.h"

#define CHECK(call)                                                         \
	do {                                                                \
		int rc_ = (int)(call);                                      \
		if (rc_) {                                                  \
			fprintf(stderr, "overlap: " #call ": %d %s\n", rc_, \
				ncclGetLastError(NULL));                    \
			exit(1);                                            \
		}                                                           \
	} while (0)

#define FLOATS ((size_t)1 << 18) /* 1 MiB */
#define BLOCK (FLOATS / 16)      /* 64 KiB */

static struct {
	int rank, world;
	ncclComm_t comms[2];
	cudaStream_t streams[2];
	float *sent[2], *got[2];
} g;

static void all_reduce(int i, size_t count)
{
	CHECK(ncclAllReduce(g.sent[i], g.got[i], count, ncclFloat, ncclSum, g.comms[i],
			    g.streams[i]));
}

static void group(void)
{
	for (int i = 0; i < 8; i++)
		all_reduce(0, FLOATS);
}

static void comms(void)
{
	all_reduce(0, FLOATS);
	all_reduce(1, FLOATS);
}

static void gather(void)
{
	for (int r = 0; r < g.world; r++)
		CHECK(ncclBroadcast(g.sent[0], g.got[0], BLOCK * (size_t)(r + 1), ncclFloat, r,
				    g.comms[0], g.streams[0]));
}

static void root(void)
{
	CHECK(ncclBroadcast(g.sent[0], g.got[0], FLOATS, ncclFloat, 0, g.comms[0], g.streams[0]));
	all_reduce(1, FLOATS);
}

static void sends(void)
{
	int next = (g.rank + 1) % g.world, before = (g.rank + g.world - 1) % g.world;

	for (int i = 0; i < 2; i++) {
		CHECK(ncclSend(g.sent[i], FLOATS, ncclFloat, next, g.comms[i], g.streams[i]));
		CHECK(ncclRecv(g.got[i], FLOATS, ncclFloat, before, g.comms[i], g.streams[i]));
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"group", group},
		     {"comms", comms},
		     {"gather", gather},
		     {"root", root},
		     {"sends", sends}};
	const char *rank = getenv("RANK"), *world = getenv("WORLD_SIZE");
	ncclUniqueId id;

	if (argc != 2 || !rank || !world)
		return 2;
	g.rank = atoi(rank);
	g.world = atoi(world);
	CHECK(rendezvous(g.rank, NULL, &id));
	CHECK(ncclCommInitRank(&g.comms[0], g.world, id, g.rank));
	rendezvous_end();
	CHECK(ncclCommSplit(g.comms[0], 0, g.rank, &g.comms[1], NULL));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaStreamCreateWithFlags(&g.streams[i], cudaStreamNonBlocking));
		CHECK(cudaMalloc((void **)&g.sent[i], FLOATS * sizeof(float)));
		CHECK(cudaMalloc((void **)&g.got[i], FLOATS * sizeof(float)));
		all_reduce(i, 1);
	}
	CHECK(cudaDeviceSynchronize());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		CHECK(ncclGroupStart());
		cases[i].run();
		CHECK(ncclGroupEnd());
	}
	CHECK(cudaDeviceSynchronize());
	for (int i = 1; i >= 0; i--)
		CHECK(ncclCommDestroy(g.comms[i]));
	return 0;
}
