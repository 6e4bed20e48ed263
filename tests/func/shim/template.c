/* template WORLD REAL,REAL: virtual rank 2 takes its data and its time from one and the same real
 * rank, its template. World 8, 4 GPUs a node, real ranks 1 and 6: that is rank 6, whose local index
 * is 2 as well. nboxd has --what-if slow:rank=2,compute=2: an op starts as much later as rank 2's
 * template has computed since the last one. */
#include "job.h"

#include "base/clock.h"

#define COMPUTES_NS (500 * NS_PER_MS)

static ncclComm_t comm;
static cudaStream_t stream;
static float *in, *out;

static void compute(void *unused)
{
	(void)unused;
	clock_sleep_until_ns(clock_now_ns() + COMPUTES_NS);
}

/* One all-gather; the stream of the real rank @who computes before it. Return: how long both took
 * this rank. */
static uint64_t all_gather_after_work_of(int who)
{
	uint64_t since_ns = clock_now_ns();

	if (me == who)
		CUDA(cudaLaunchHostFunc(stream, compute, NULL));
	NCCL(ncclAllGather(in, out, 1, ncclFloat, comm, stream));
	CUDA(cudaStreamSynchronize(stream));
	return clock_now_ns() - since_ns;
}

int main(int argc, char **argv)
{
	ncclUniqueId id = id_of("template");
	float mine, all[8];
	int who;

	(void)argc;
	job_start(argv);
	mine = (float)me;
	NCCL(ncclCommInitRank(&comm, n, id, me));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc((void **)&in, sizeof(mine)));
	CUDA(cudaMalloc((void **)&out, sizeof(all)));
	CUDA(cudaMemcpy(in, &mine, sizeof(mine), cudaMemcpyHostToDevice));
	all_gather_after_work_of(-1);
	CUDA(cudaMemcpy(all, out, sizeof(all), cudaMemcpyDeviceToHost));
	who = (int)all[2];
	CHECK(who == 6, "virtual rank 2 has the data of rank %d", who);
	for (int i = 0; i < k; i++) {
		uint64_t took_ns = all_gather_after_work_of(real[i]);

		if (me != real[i])
			continue;
		if (me == who)
			CHECK(took_ns >= 2 * COMPUTES_NS, "the op did not wait for rank 2: %llu ns",
			      (unsigned long long)took_ns);
		else
			CHECK(took_ns < 2 * COMPUTES_NS, "the op waited for rank 2: %llu ns",
			      (unsigned long long)took_ns);
	}
	NCCL(ncclCommDestroy(comm));
	return 0;
}
