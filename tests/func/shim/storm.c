/* What a job may do to its streams and events at any time: from many threads at once, in great
 * numbers, while others look on, and with an end before their work is over. Nothing crashes, waits
 * for good or is kept.
 *
 *   storm WORLD REAL PART...      RANK says who we are */
#include <malloc.h>
#include <sys/wait.h>

#include "job.h"

#define THREADS 16
#define ROUNDS 100
#define MANY 10000
#define MOST_BYTES 400000 /* fewer than 80 for each one */

static ncclComm_t comm;
static cudaStream_t comms, shared;

static cudaStream_t stream(void)
{
	cudaStream_t s;

	CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	return s;
}

static cudaEvent_t event(void)
{
	cudaEvent_t ev;

	CUDA(cudaEventCreateWithFlags(&ev, cudaEventDisableTiming));
	return ev;
}

static void op(void)
{
	static float *buf;

	if (!buf)
		CUDA(cudaMalloc((void **)&buf, sizeof(*buf)));
	NCCL(ncclAllReduce(buf, buf, 1, ncclFloat, ncclSum, comm, comms));
}

static void work(void *us)
{
	usleep(*(useconds_t *)us);
}

static void compute(cudaStream_t s)
{
	static useconds_t us = 100;

	CUDA(cudaLaunchHostFunc(s, work, &us));
}

/* @to waits for what is on @from now, by an event that is gone at once. */
static void follow(cudaStream_t to, cudaStream_t from)
{
	cudaEvent_t ev = event();

	CUDA(cudaEventRecord(ev, from));
	CUDA(cudaStreamWaitEvent(to, ev, 0));
	CUDA(cudaEventDestroy(ev));
}

/* A stream is gone while the place in it that an op waits for is not reached yet. */
static void destroy_under_way(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		cudaStream_t m = stream();

		compute(m);
		follow(comms, m);
		op();
		follow(m, comms);
		compute(m);
		CUDA(cudaStreamDestroy(m));
	}
	CUDA(cudaStreamSynchronize(comms));
}

/* Under nbox's eyes; the runtime may take a while to free its own. */
static void check_kept(size_t before)
{
	size_t after;

	for (int i = 0; i < 60000; i++) {
		after = mallinfo2().uordblks;
		if (after < before + MOST_BYTES)
			return;
		usleep(1000);
	}
	DIE("%zu bytes before, %zu after", before, after);
}

static void many(void)
{
	size_t before = mallinfo2().uordblks;
	cudaStream_t m = stream();

	for (int i = 0; i < MANY; i++) {
		follow(comms, m);
		compute(m);
		if (i % 100)
			continue;
		op(); /* what is under way at once has its memory for good */
		CUDA(cudaStreamSynchronize(comms));
	}
	CUDA(cudaStreamSynchronize(comms));
	for (int i = 0; i < MANY; i++) {
		cudaStream_t s = stream();

		follow(s, m);
		CUDA(cudaStreamDestroy(s));
	}
	CUDA(cudaDeviceSynchronize());
	check_kept(before);
}

/* A place's event ends while other threads wait behind that place. */
static void *run_thread(void *arg)
{
	int number = *(int *)arg;
	cudaStream_t s = stream();

	for (int i = 0; i < ROUNDS; i++) {
		cudaEvent_t ev = event();

		follow(s, shared);
		compute(s);
		CUDA(cudaEventRecord(ev, shared));
		follow(shared, s);
		if (number == 0)
			op();
		if (number % 2)
			follow(shared, comms);
		else
			follow(comms, s);
		while (cudaEventQuery(ev) == cudaErrorNotReady) {
			cudaGetLastError();
			usleep(50);
		}
		CUDA(cudaEventDestroy(ev));
		CUDA(cudaGetLastError()); /* none of nbox's */
		if (i % 10 == 0) {
			CUDA(cudaStreamSynchronize(s));
			CUDA(cudaStreamDestroy(s));
			s = stream();
		}
	}
	CUDA(cudaStreamDestroy(s));
	return NULL;
}

static void threads(void)
{
	pthread_t threads[THREADS];
	int numbers[THREADS];

	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK(!pthread_create(&threads[i], NULL, run_thread, &numbers[i]), "thread");
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CUDA(cudaDeviceSynchronize());
}

/* While threads of the parent hold what they hold. */
static void *fork_children(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			alarm(60);
			cudaEventDestroy((cudaEvent_t)arg);
			_exit(0);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child");
	}
	return NULL;
}

static void forks(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, fork_children, NULL), "thread");
	threads();
	pthread_join(thread, NULL);
}

static void other_device(void)
{
	cudaStream_t m;

	CUDA(cudaSetDevice(1));
	m = stream();
	CUDA(cudaSetDevice(0));
	for (int i = 0; i < ROUNDS; i++) {
		follow(comms, m);
		op();
		follow(m, comms);
	}
	CUDA(cudaStreamSynchronize(m));
	CUDA(cudaStreamDestroy(m));
}

static void reset(void)
{
	op();
	follow(shared, comms);
	CUDA(cudaDeviceReset());
	follow(comms, shared);
	op();
	CUDA(cudaStreamSynchronize(comms));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {{"destroy", destroy_under_way}, {"many", many},
		     {"threads", threads},           {"forks", forks},
		     {"other-device", other_device}, {"reset", reset}};

	if (argc < 4)
		return 2;
	job_start(argv);
	NCCL(ncclCommInitRank(&comm, n, id_of("storm"), me));
	comms = stream();
	shared = stream();
	op();
	for (int i = 3; i < argc; i++)
		for (size_t j = 0; j < sizeof(parts) / sizeof(*parts); j++)
			if (!strcmp(argv[i], parts[j].name))
				parts[j].run();
	CUDA(cudaStreamSynchronize(comms));
	NCCL(ncclCommDestroy(comm));
	return 0;
}
