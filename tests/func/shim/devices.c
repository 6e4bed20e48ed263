/* One process drives a device for each real rank, as JAX does: from one thread, in groups,
 * without selecting the device of each call; and with a thread each.
 *
 *   devices WORLD REAL,REAL,... [revoke]      RANK says who we are: the first real rank does it all
 */
#include <unistd.h>

#include "job.h"

#define COUNT 100

static ncclComm_t comms[MAX_REAL], children[MAX_REAL];
static cudaStream_t streams[MAX_REAL];
static float *bufs[MAX_REAL];

static void put(int i, float value)
{
	float values[COUNT];

	for (int j = 0; j < COUNT; j++)
		values[j] = value;
	CUDA(cudaMemcpyAsync(bufs[i], values, sizeof(values), cudaMemcpyHostToDevice, streams[i]));
	CUDA(cudaStreamSynchronize(streams[i]));
}

static void check(const char *what, int i, float want)
{
	float values[COUNT];

	CUDA(cudaMemcpyAsync(values, bufs[i], sizeof(values), cudaMemcpyDeviceToHost, streams[i]));
	CUDA(cudaStreamSynchronize(streams[i]));
	for (int j = 0; j < COUNT; j++)
		CHECK(values[j] == want, "%s: device %d, element %d is %g, not %g", what, i, j,
		      (double)values[j], (double)want);
}

static void check_device(int want)
{
	int device;

	CUDA(cudaGetDevice(&device));
	CHECK(device == want, "device %d is selected, not %d", device, want);
}

static void sum_all(const char *what, ncclComm_t *all)
{
	int size;

	NCCL(ncclCommCount(all[0], &size));
	for (int i = 0; i < k; i++)
		put(i, 1);
	CUDA(cudaSetDevice(k - 1));
	NCCL(ncclGroupStart());
	for (int i = 0; i < k; i++)
		NCCL(ncclAllReduce(bufs[i], bufs[i], COUNT, ncclFloat, ncclSum, all[i],
				   streams[i]));
	NCCL(ncclGroupEnd());
	check_device(k - 1);
	for (int i = 0; i < k; i++)
		check(what, i, (float)size);
}

/* A reduction with a scalar on the device: its memory is on the communicator's device, also while
 * another one is current. */
static void reduction_from_elsewhere(void)
{
	size_t before, after, total;
	ncclRedOp_t op;

	CUDA(cudaSetDevice(k - 1));
	CUDA(cudaMemGetInfo(&before, &total));
	NCCL(ncclRedOpCreatePreMulSum(&op, bufs[0], ncclFloat, ncclScalarDevice, comms[0]));
	CUDA(cudaMemGetInfo(&after, &total));
	CHECK(after == before, "it takes %zu bytes of another device", before - after);
	check_device(k - 1);
	NCCL(ncclRedOpDestroy(op, comms[0]));
}

static void one_thread(void)
{
	ncclUniqueId id;
	int value;

	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclGroupStart());
	for (int i = 0; i < k; i++) {
		CUDA(cudaSetDevice(i));
		NCCL(ncclCommInitRank(&comms[i], n, id, real[i]));
	}
	NCCL(ncclGroupEnd());
	check_device(k - 1);
	for (int i = 0; i < k; i++) {
		NCCL(ncclCommUserRank(comms[i], &value));
		CHECK(value == real[i], "rank %d, not %d", value, real[i]);
		NCCL(ncclCommCuDevice(comms[i], &value));
		CHECK(value == i, "device %d, not %d", value, i);
	}
	sum_all("a sum", comms);
	reduction_from_elsewhere();

	/* round the real ranks */
	for (int i = 0; i < k; i++)
		put(i, (float)i);
	NCCL(ncclGroupStart());
	for (int i = 0; i < k; i++) {
		NCCL(ncclSend(bufs[i], COUNT / 2, ncclFloat, real[(i + 1) % k], comms[i],
			      streams[i]));
		NCCL(ncclRecv(bufs[i] + COUNT / 2, COUNT / 2, ncclFloat, real[(i + k - 1) % k],
			      comms[i], streams[i]));
	}
	NCCL(ncclGroupEnd());
	for (int i = 0; i < k; i++) {
		float last;

		CUDA(cudaMemcpyAsync(&last, bufs[i] + COUNT - 1, sizeof(last),
				     cudaMemcpyDeviceToHost, streams[i]));
		CUDA(cudaStreamSynchronize(streams[i]));
		CHECK(last == (float)((i + k - 1) % k), "device %d got %g", i, (double)last);
	}

	NCCL(ncclGroupStart());
	for (int i = 0; i < k; i++)
		NCCL(ncclCommSplit(comms[i], 0, real[i], &children[i], NULL));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < k; i++) {
		NCCL(ncclCommCuDevice(children[i], &value));
		CHECK(value == i, "a child is on device %d, not %d", value, i);
	}
	sum_all("a sum of children", children);
	NCCL(ncclGroupStart());
	for (int i = 0; i < k; i++)
		NCCL(ncclCommDestroy(children[i]));
	NCCL(ncclGroupEnd());
	sum_all("a sum after", comms);
	for (int i = 0; i < k; i++)
		NCCL(ncclCommDestroy(comms[i]));
}

/* One thread works through its devices one after the other: with non-blocking communicators no call
 * waits for what the next one has yet to enqueue. */
static void one_after_the_other(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t r;

	config.blocking = 0;
	for (int i = 0; i < k; i++) {
		CUDA(cudaSetDevice(i));
		put(i, 1);
		r = NCCL_IS_QUIET(ncclCommInitRankConfig(&comms[i], n, id_of("one after the other"),
							 real[i], &config));
		CHECK(r == ncclSuccess || r == ncclInProgress, "init says %d", (int)r);
	}
	for (int i = 0; i < k; i++)
		wait_until_ready(comms[i]);
	for (int i = 0; i < k; i++) {
		CUDA(cudaSetDevice(i));
		NCCL(ncclAllReduce(bufs[i], bufs[i], COUNT, ncclFloat, ncclSum, comms[i],
				   streams[i]));
		r = NCCL_IS_QUIET(ncclCommFinalize(comms[i]));
		CHECK(r == ncclInProgress || r == ncclSuccess, "finalize says %d", (int)r);
		NCCL_FAILS(ncclAllReduce(bufs[i], bufs[i], COUNT, ncclFloat, ncclSum, comms[i],
					 streams[i]),
			   ncclInvalidArgument);
	}
	for (int i = 0; i < k; i++) {
		wait_until_ready(comms[i]);
		check("a finalized sum", i, (float)n);
		NCCL(ncclCommDestroy(comms[i]));
	}
}

/* One rank of the process revokes its communicator. Where there is no real communicator (policy
 * none), only nboxd can tell the process's other ranks. */
static void one_revokes(void)
{
	ncclResult_t state;

	NCCL(ncclGroupStart());
	for (int i = 0; i < k; i++) {
		CUDA(cudaSetDevice(i));
		NCCL(ncclCommInitRank(&comms[i], n, id_of("revoke"), real[i]));
	}
	NCCL(ncclGroupEnd());
	NCCL(ncclCommRevoke(comms[0], 0));
	for (int i = 1; i < k; i++)
		do {
			usleep(1000);
			NCCL(ncclCommGetAsyncError(comms[i], &state));
		} while (state == ncclSuccess);
	for (int i = 0; i < k; i++)
		NCCL(ncclCommAbort(comms[i]));
}

static void *run_thread(void *arg)
{
	int i = *(int *)arg;

	CUDA(cudaSetDevice(i));
	NCCL(ncclCommInitRank(&comms[i], n, id_of("threads"), real[i]));
	for (int j = 0; j < 20; j++) {
		put(i, 1);
		NCCL(ncclAllReduce(bufs[i], bufs[i], COUNT, ncclFloat, ncclSum, comms[i],
				   streams[i]));
		check("a thread's sum", i, (float)n);
	}
	check_device(i);
	NCCL(ncclCommDestroy(comms[i]));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_REAL];
	int numbers[MAX_REAL];

	if (argc < 3)
		return 2;
	job_start(argv);
	if (me != real[0])
		return 0;
	for (int i = 0; i < k; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaStreamCreate(&streams[i]));
		CUDA(cudaMalloc((void **)&bufs[i], COUNT * sizeof(float)));
	}
	if (argc > 3) {
		one_revokes();
		return 0;
	}
	one_thread();
	one_after_the_other();
	for (int i = 0; i < k; i++) {
		numbers[i] = i;
		CHECK(!pthread_create(&threads[i], NULL, run_thread, &numbers[i]), "thread %d", i);
	}
	for (int i = 0; i < k; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < k; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaFree(bufs[i]));
		CUDA(cudaStreamDestroy(streams[i]));
	}
	return 0;
}
