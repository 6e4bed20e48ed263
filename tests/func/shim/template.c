/* template WORLD REAL,REAL TEMPLATE: virtual rank 2 takes its data and its time from one and the
 * same real rank, its template. World 8, 4 GPUs a node, real ranks 1 and 6: that is rank 6, whose
 * local index is 2 as well; in the second of four stages, of which the first and the last are real,
 * rank 1. nboxd has --what-if slow:rank=2,compute=2: an op starts as much later as rank 2's
 * template has computed since the last one. */
#include "job.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"

#define COMPUTES_NS (500 * NS_PER_MS)
#define TRIES 20 /* on a busy machine any op may be late */

static ncclComm_t comm;
static cudaStream_t stream;
static float *in, *out;
static atomic_bool is_called; /* the op behind the computation */

/* Longer than the host has taken to call the op: else the host would be what the op waited for. */
static void compute(void *unused)
{
	(void)unused;
	while (!atomic_load(&is_called))
		usleep(1000);
	clock_sleep_until_ns(clock_now_ns() + COMPUTES_NS);
}

/* One all-gather; the stream of the real rank @who computes before it. Return: how long both took
 * this rank. */
static uint64_t all_gather_after_work_of(int who)
{
	uint64_t since_ns = clock_now_ns();

	atomic_store(&is_called, false);
	if (me == who)
		CUDA(cudaLaunchHostFunc(stream, compute, NULL));
	NCCL(ncclAllGather(in, out, 1, ncclFloat, comm, stream));
	atomic_store(&is_called, true);
	CUDA(cudaStreamSynchronize(stream));
	return clock_now_ns() - since_ns;
}

/* What the real rank @who passes as @word, at all of them. */
static float said_by(int who, float word)
{
	float all[8];

	CUDA(cudaMemcpy(in, &word, sizeof(word), cudaMemcpyHostToDevice));
	all_gather_after_work_of(-1);
	CUDA(cudaMemcpy(all, out, sizeof(all), cudaMemcpyDeviceToHost));
	return all[who];
}

/* Ops after work of the template are late each time. */
static void check_waits_for(int who)
{
	uint64_t took_ns = all_gather_after_work_of(who);

	CHECK(me != who || took_ns >= 2 * COMPUTES_NS, "the op did not wait for rank 2: %llu ns",
	      (unsigned long long)took_ns);
}

/* Those after work of another rank are not, but where the machine is busy. */
static void check_does_not_wait_for(int other)
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t took_ns = all_gather_after_work_of(other);

		if (said_by(other, took_ns < 3 * COMPUTES_NS / 2) != 0)
			return;
	}
	DIE("the op waited for rank 2 after work of rank %d, each time", other);
}

int main(int argc, char **argv)
{
	ncclUniqueId id = id_of("template");
	int who;

	CHECK(argc == 4, "%d arguments", argc);
	job_start(argv);
	NCCL(ncclCommInitRank(&comm, n, id, me));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc((void **)&in, sizeof(*in)));
	CUDA(cudaMalloc((void **)&out, 8 * sizeof(*out)));
	who = (int)said_by(2, (float)me);
	CHECK(who == atoi(argv[3]), "virtual rank 2 has the data of rank %d", who);
	for (int i = 0; i < k; i++) {
		if (real[i] == who)
			check_waits_for(who);
		else
			check_does_not_wait_for(real[i]);
	}
	NCCL(ncclCommDestroy(comm));
	return 0;
}
