/* What calls of CUDA cost a job's thread that libnbox looks at, in CPU time of the calling thread,
 * on the host CUDA runtime: `./scripts/bench shim` runs it without libnbox and with it.
 *
 * record: an event. wait: of a stream that computes. stamped: the same of a communication stream,
 * for which a stream of ours stamps the place. query: of an event that has passed. kernel: a
 * launch. graph: the launch of a captured kernel, with libnbox of one and an op.
 *
 * usage: bench-edges ROUNDS [--json FILE] */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/real/nccl-api.h"

#define ROUNDS_MAX 10000
#define CALLS 20 /* that are timed together */

static cudaStream_t compute, comm_stream;
static cudaEvent_t ev, passed;
static cudaGraphExec_t exec;

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void record(void)
{
	cudaEventRecord(ev, compute);
}

static void wait_for_event(void)
{
	cudaStreamWaitEvent(compute, passed, 0);
}

static void stamped(void)
{
	cudaEventRecord(ev, compute);
	cudaStreamWaitEvent(comm_stream, ev, 0);
}

static void query(void)
{
	cudaEventQuery(passed);
}

static void a_kernel(void)
{
}

static void kernel(void)
{
	cudaLaunchKernel((const void *)a_kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0,
			 compute);
}

static void graph(void)
{
	cudaGraphLaunch(exec, compute);
}

static void measure(const char *name, void (*call)(void), int rounds, FILE *json)
{
	static double us[ROUNDS_MAX];
	double start;

	for (int i = 0; i < rounds; i++) {
		start = cpu_us();
		for (int k = 0; k < CALLS; k++)
			call();
		us[i] = (cpu_us() - start) / CALLS;
		cudaDeviceSynchronize();
	}
	qsort(us, (size_t)rounds, sizeof(us[0]), by_value);
	printf("%-10s %8.3f us\n", name, us[rounds / 2]);
	if (json)
		fprintf(json, "%s{\"call\": \"%s\", \"median_us\": %.4f}",
			ftell(json) > 1 ? ", " : "", name, us[rounds / 2]);
}

/* Has a communicator, and an op on @comm_stream and in @exec, where libnbox is there. */
static int join_world(void)
{
	cudaGraph_t captured;
	ncclResult_t (*init)(ncclComm_t *, int, ncclUniqueId, int);
	ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
				   ncclComm_t, cudaStream_t);
	ncclUniqueId id = {.internal = "bench-edges"};
	ncclComm_t comm;
	void *buf;

	init = (__typeof__(init))dlsym(RTLD_DEFAULT, "ncclCommInitRank");
	all_reduce = (__typeof__(all_reduce))dlsym(RTLD_DEFAULT, "ncclAllReduce");
	if (init && all_reduce &&
	    (init(&comm, 8, id, 0) != ncclSuccess || cudaMalloc(&buf, 1024) ||
	     all_reduce(buf, buf, 256, ncclFloat32, ncclSum, comm, comm_stream) != ncclSuccess))
		return 1;
	if (cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal))
		return 1;
	kernel();
	if (init && all_reduce &&
	    all_reduce(buf, buf, 256, ncclFloat32, ncclSum, comm, compute) != ncclSuccess)
		return 1;
	return cudaStreamEndCapture(compute, &captured) ||
	       cudaGraphInstantiate(&exec, captured, 0) || cudaDeviceSynchronize();
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 0;
	FILE *json = argc > 3 && !strcmp(argv[2], "--json") ? fopen(argv[3], "w") : NULL;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench-edges ROUNDS [--json FILE]\n");
		return 2;
	}
	if (cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking) ||
	    cudaStreamCreateWithFlags(&comm_stream, cudaStreamNonBlocking) ||
	    cudaEventCreateWithFlags(&ev, cudaEventDisableTiming) ||
	    cudaEventCreateWithFlags(&passed, cudaEventDisableTiming) ||
	    cudaEventRecord(passed, compute) || cudaDeviceSynchronize() || join_world()) {
		fprintf(stderr, "bench-edges: CUDA or NCCL failed\n");
		return 1;
	}
	if (json)
		fputc('[', json);
	measure("record", record, rounds, json);
	measure("wait", wait_for_event, rounds, json);
	measure("stamped", stamped, rounds, json);
	measure("query", query, rounds, json);
	measure("kernel", kernel, rounds, json);
	measure("graph", graph, rounds, json);
	if (json) {
		fputs("]\n", json);
		fclose(json);
	}
	return 0;
}
