/* What libnbox itself costs a job's thread, in CPU time of calls. This file brings a CUDA runtime
 * that does nothing but run host functions on a thread of its own, as gates need;
 * NBOX_NCCL=fake-nccl.so is an NCCL that does nothing. `./scripts/bench shim` starts it under
 * `nbox run`, one process a real rank.
 *
 * alltoall: a group of a send to and a receive from each rank. allreduce: one call.
 *
 * The times are of the calling thread and of the progress thread, a call of the group or of the
 * collective: medians of the rounds, and the mean.
 *
 * usage: bench-shim RANKS ROUNDS [--json FILE] */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/real/nccl-api.h"

#define EXPORT __attribute__((visibility("default")))
#define QUEUE 4096
#define ROUNDS_MAX 10000
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* --- a CUDA runtime --------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct {
		void (*fn)(void *);
		void *arg;
	} items[QUEUE];
	unsigned int head, tail;
	pthread_t thread;
	unsigned long n_copies;
} q = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void *queue_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&q.lock);
	for (;;) {
		if (q.head == q.tail) {
			pthread_cond_wait(&q.cond, &q.lock);
			continue;
		}
		void (*fn)(void *) = q.items[q.head % QUEUE].fn;
		void *what = q.items[q.head % QUEUE].arg;

		pthread_mutex_unlock(&q.lock);
		fn(what);
		pthread_mutex_lock(&q.lock);
		q.head++;
		pthread_cond_broadcast(&q.cond);
	}
	return NULL;
}

static void queue_wait(void)
{
	pthread_mutex_lock(&q.lock);
	while (q.head != q.tail)
		pthread_cond_wait(&q.cond, &q.lock);
	pthread_mutex_unlock(&q.lock);
}

EXPORT int cudaLaunchHostFunc(void *s, void (*fn)(void *), void *arg)
{
	(void)s;
	pthread_mutex_lock(&q.lock);
	q.items[q.tail % QUEUE].fn = fn;
	q.items[q.tail++ % QUEUE].arg = arg;
	pthread_cond_broadcast(&q.cond);
	pthread_mutex_unlock(&q.lock);
	return 0;
}

EXPORT int cudaMemcpyAsync(void *dst, const void *src, size_t n, int kind, void *s)
{
	(void)dst, (void)src, (void)n, (void)kind, (void)s;
	q.n_copies++;
	return 0;
}

EXPORT int cudaGetDevice(int *ret)
{
	*ret = 0;
	return 0;
}

EXPORT int cudaStreamIsCapturing(void *s, int *ret)
{
	(void)s;
	*ret = 0;
	return 0;
}

EXPORT int cudaMalloc(void **ret, size_t n)
{
	*ret = malloc(n);
	return *ret ? 0 : 2;
}

EXPORT int cudaFree(void *p)
{
	free(p);
	return 0;
}

EXPORT int cudaEventCreateWithFlags(void **ret, unsigned int flags)
{
	(void)flags;
	*ret = &q;
	return 0;
}

#define NOTHING(name)         \
	EXPORT int name(void) \
	{                     \
		return 0;     \
	}
NOTHING(cudaSetDevice)
NOTHING(cudaStreamCreateWithFlags)
NOTHING(cudaStreamGetFlags)
NOTHING(cudaMemsetAsync)
NOTHING(cudaHostAlloc)
NOTHING(cudaFreeHost)
NOTHING(cudaEventDestroy)
NOTHING(cudaEventRecord)
NOTHING(cudaStreamWaitEvent)

/* --- the calls ------------------------------------------------------------------------ */

static ncclResult_t (*init_rank)(ncclComm_t *, int, ncclUniqueId, int);
static ncclResult_t (*group_start)(void), (*group_end)(void);
static ncclResult_t (*send_to)(const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
static ncclResult_t (*recv_from)(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
static ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
				  ncclComm_t, cudaStream_t);
static const char *(*last_error)(ncclComm_t);

static ncclComm_t comm;
static int n_ranks;
static char *in, *out;
#define COUNT 256

static ncclResult_t alltoall(void)
{
	ncclResult_t r = group_start();

	for (int i = 0; r == ncclSuccess && i < n_ranks; i++) {
		r = send_to(in + (size_t)i * COUNT, COUNT, ncclUint8, i, comm, NULL);
		if (r == ncclSuccess)
			r = recv_from(out + (size_t)i * COUNT, COUNT, ncclUint8, i, comm, NULL);
	}
	return r == ncclSuccess ? group_end() : r;
}

static ncclResult_t allreduce(void)
{
	return all_reduce(in, out, COUNT, ncclFloat32, ncclSum, comm, NULL);
}

/* --- measuring -------------------------------------------------------------------------- */

static double cpu_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *name, ncclResult_t (*call)(void), int calls, int rounds, FILE *json)
{
	static double us[ROUNDS_MAX];
	clockid_t stream;
	double process, own = 0, others, copies;

	pthread_getcpuclockid(q.thread, &stream);
	for (int i = 0; i < 3; i++) {
		if (call() != ncclSuccess) {
			fprintf(stderr, "bench-shim: %s: %s\n", name, last_error(comm));
			exit(1);
		}
		queue_wait();
	}
	others = cpu_us(stream);
	process = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
	copies = (double)q.n_copies;
	double all_own = cpu_us(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < rounds; i++) {
		double start = cpu_us(CLOCK_THREAD_CPUTIME_ID);

		if (call() != ncclSuccess)
			exit(1);
		us[i] = cpu_us(CLOCK_THREAD_CPUTIME_ID) - start;
		own += us[i];
		queue_wait();
	}
	process = cpu_us(CLOCK_PROCESS_CPUTIME_ID) - process;
	others = cpu_us(stream) - others + cpu_us(CLOCK_THREAD_CPUTIME_ID) - all_own;
	copies = ((double)q.n_copies - copies) / rounds;
	qsort(us, (size_t)rounds, sizeof(us[0]), by_value);
	printf("%-10s %6d calls %8.0f copies %10.1f us median %10.1f us mean   progress thread %8.1f us\n",
	       name, calls, copies, us[rounds / 2], own / rounds, (process - others) / rounds);
	if (json)
		fprintf(json,
			"%s{\"op\": \"%s\", \"calls\": %d, \"copies\": %.0f, \"median_us\": %.3f, "
			"\"mean_us\": %.3f, \"progress_us\": %.3f}",
			ftell(json) > 1 ? ", " : "", name, calls, copies, us[rounds / 2],
			own / rounds, (process - others) / rounds);
}

int main(int argc, char **argv)
{
	ncclUniqueId id = {.internal = "bench-shim"};
	int rounds = argc > 2 ? atoi(argv[2]) : 0;
	FILE *json = argc > 4 && !strcmp(argv[3], "--json") ? fopen(argv[4], "w") : NULL;

	n_ranks = argc > 1 ? atoi(argv[1]) : 0;
	if (n_ranks < 1 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench-shim RANKS ROUNDS [--json FILE]\n");
		return 2;
	}
#define FIND(ptr, name) (ptr = (__typeof__(ptr))dlsym(RTLD_DEFAULT, name))
	if (!FIND(init_rank, "ncclCommInitRank") || !FIND(group_start, "ncclGroupStart") ||
	    !FIND(group_end, "ncclGroupEnd") || !FIND(send_to, "ncclSend") ||
	    !FIND(recv_from, "ncclRecv") || !FIND(all_reduce, "ncclAllReduce") ||
	    !FIND(last_error, "ncclGetLastError")) {
		fprintf(stderr,
			"bench-shim: libnbox.so is not preloaded; see ./scripts/bench shim\n");
		return 2;
	}
	in = calloc((size_t)n_ranks, COUNT);
	out = calloc((size_t)n_ranks, COUNT);
	if (!in || !out || pthread_create(&q.thread, NULL, queue_main, NULL))
		return 1;
	if (init_rank(&comm, n_ranks, id, 0) != ncclSuccess) {
		fprintf(stderr, "bench-shim: %s\n", last_error(NULL));
		return 1;
	}
	if (json)
		fputc('[', json);
	measure("alltoall", alltoall, 2 * n_ranks, rounds, json);
	measure("allreduce", allreduce, 1, rounds, json);
	if (json) {
		fputs("]\n", json);
		fclose(json);
	}
	return 0;
}
