/* Communicators: all the ways to one, several at once, and their ends.
 *
 *   life WORLD REAL,REAL,... part ...       RANK says who we are
 *
 * Parts: group, common-id (NCCL_COMM_ID is set), scalable, split, nonblocking, by-variable
 * (NCCL_COMM_BLOCKING=0), shrink, shrink-in-turns, threads, fork; revoke, where the lowest real
 * rank revokes a communicator and the others are told; ends, where the lowest real rank aborts
 * communicators that the others destroy; half-made, where one after the other aborts some that are
 * being made. */
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

/* At a child's exit() the leak checker would report what the parent's threads hold. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#ifdef __SANITIZE_ADDRESS__
#define HAS_LEAK_CHECK 1
#else
#define HAS_LEAK_CHECK __has_feature(address_sanitizer)
#endif
#define N_THREADS 4
#define COUNT 100

extern char **environ;

/* Sums ones on @comm: its size, under policy mirror. Nothing in here waits for other
 * streams, as cudaFree() and cudaMemcpy() would: threads of two ranks that wait for each
 * other's streams would wait for ever. */
static void check_works(ncclComm_t comm, cudaStream_t stream)
{
	float ones[COUNT], sum[COUNT];
	static __thread void *a;
	int size;

	NCCL(ncclCommCount(comm, &size));
	for (int i = 0; i < COUNT; i++)
		ones[i] = 1;
	if (!a)
		CUDA(cudaMalloc(&a, sizeof(ones)));
	CUDA(cudaMemcpyAsync(a, ones, sizeof(ones), cudaMemcpyHostToDevice, stream));
	NCCL(ncclAllReduce(a, a, COUNT, ncclFloat, ncclSum, comm, stream));
	CUDA(cudaMemcpyAsync(sum, a, sizeof(sum), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++)
		CHECK(sum[i] == (float)size, "element %d is %g in a communicator of %d", i,
		      (double)sum[i], size);
}

static ncclComm_t comm_new(const char *name)
{
	ncclComm_t comm;

	CUDA(cudaSetDevice(0)); /* a new thread has none, and payload in a GPU's memory needs one */
	NCCL(ncclCommInitRank(&comm, n, id_of(name), me));
	return comm;
}

static void check_size(ncclComm_t comm, int size, int rank)
{
	int count = -1, user = -1;

	NCCL(ncclCommCount(comm, &count));
	NCCL(ncclCommUserRank(comm, &user));
	CHECK(count == size && user == rank, "rank %d of %d, not %d of %d", user, count, rank,
	      size);
}

/* A split with keys that fall as ranks grow turns the order round, where all are real: a
 * virtual rank's key grows with its rank. */
static void check_order(ncclComm_t comm)
{
	int size;

	NCCL(ncclCommCount(comm, &size));
	CHECK(size == n, "%d ranks", size);
	if (k == n)
		check_size(comm, n, n - 1 - me);
}

/* --- ways to a communicator ------------------------------------------------------------- */

static void group_of_inits(cudaStream_t stream)
{
	static const char *const names[] = {"one", "two", "three"};
	ncclComm_t comms[3], children[3];

	NCCL(ncclGroupStart());
	for (int i = 0; i < 3; i++)
		NCCL(ncclCommInitRank(&comms[i], n, id_of(names[i]), me));
	NCCL(ncclGroupEnd());
	for (int i = 2; i >= 0; i--) {
		check_size(comms[i], n, me);
		check_works(comms[i], stream);
	}
	NCCL(ncclGroupStart());
	for (int i = 0; i < 3; i++)
		NCCL(ncclCommSplit(comms[i], 0, n - me, &children[i], NULL));
	NCCL(ncclGroupEnd());
	for (int i = 0; i < 3; i++) {
		check_order(children[i]);
		check_works(children[i], stream);
		NCCL(ncclCommDestroy(children[i]));
		NCCL(ncclCommDestroy(comms[i]));
	}
}

/* With NCCL_COMM_ID all communicators have one id, and the order of the ranks' calls tells them
 * apart. Several at once work too, which NCCL itself would refuse. The address need not be one of
 * this machine. */
static void common_id(cudaStream_t stream)
{
	ncclComm_t first, second, many[3], child, half;
	ncclUniqueId id, again;

	putenv((char *)(uintptr_t) "NCCL_COMM_ID=203.0.113.7:4711"); /* a literal, which nobody may
									write to */
	NCCL(ncclGetUniqueId(&id));
	NCCL(ncclGetUniqueId(&again));
	CHECK(!memcmp(&id, &again, sizeof(id)), "two ids");
	for (int i = 0; i < 3; i++) { /* one after the other */
		NCCL(ncclCommInitRank(&first, n, id, me));
		check_works(first, stream);
		NCCL(ncclCommDestroy(first));
	}
	NCCL(ncclCommInitRank(&first, n, id, me));
	if (me == real[0])
		usleep(50000); /* the others are ahead */
	NCCL(ncclCommInitRank(&second, n, id, me));
	NCCL(ncclGroupStart());
	for (int i = 0; i < 3; i++)
		NCCL(ncclCommInitRank(&many[i], n, id, me));
	NCCL(ncclGroupEnd());
	for (int i = 2; i >= 0; i--)
		check_works(many[i], stream);
	check_works(second, stream);
	check_works(first, stream);
	/* each colour is made by other processes, at the same time */
	NCCL(ncclCommSplit(first, me % 2, me, &child, NULL));
	check_works(child, stream);
	/* of another size */
	if (n % 2 == 0 && k == n) {
		NCCL(ncclCommInitRank(&half, n / 2, id, me % (n / 2)));
		check_works(half, stream);
		NCCL(ncclCommDestroy(half));
	}
	CHECK(getenv("NCCL_COMM_ID"), "NCCL_COMM_ID is not there any more");
	NCCL(ncclCommDestroy(child));
	for (int i = 0; i < 3; i++)
		NCCL(ncclCommDestroy(many[i]));
	NCCL(ncclCommDestroy(second));
	NCCL(ncclCommDestroy(first));
}

static void scalable(cudaStream_t stream)
{
	ncclUniqueId ids[3] = {id_of("first"), id_of("second"), id_of("third")};
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm;

	NCCL(ncclCommInitRankScalable(&comm, n, me, 3, ids, &config));
	check_size(comm, n, me);
	check_works(comm, stream);
	NCCL(ncclCommDestroy(comm));
	NCCL_FAILS(ncclCommInitRankScalable(&comm, n, me, 0, ids, &config), ncclInvalidArgument);
}

/* How many ranks the real rank @r stands for. */
static int share(int r)
{
	int count = 0;

	for (int v = 0; v < n; v++)
		count += template_of(v) == r;
	return count;
}

static void split(cudaStream_t stream)
{
	ncclComm_t comm = comm_new("split"), child = comm, backwards;
	int size;

	NCCL(ncclCommSplit(comm, me == real[0] ? NCCL_SPLIT_NOCOLOR : -7, me, &child, NULL));
	if (me == real[0]) {
		CHECK(!child, "a split without color gave a communicator");
	} else {
		NCCL(ncclCommCount(child, &size));
		CHECK(size == n - share(real[0]), "%d ranks have a color", size);
		check_works(child, stream);
	}
	NCCL(ncclCommSplit(comm, 1, -me, &backwards, NULL));
	check_order(backwards);
	check_works(backwards, stream);
	check_works(comm, stream);
	NCCL(ncclCommDestroy(backwards));
	NCCL(ncclCommDestroy(comm));
	if (child) { /* outlives its parent */
		check_works(child, stream);
		NCCL(ncclCommDestroy(child));
	}
}

/* NCCL_COMM_BLOCKING=0: all communicators of the job's are non-blocking, whatever they ask for. */
static void by_variable(cudaStream_t stream)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL, child = NULL;
	ncclResult_t r;

	config.blocking = 1;
	r = NCCL_IS_QUIET(ncclCommInitRank(&comm, n, id_of("by variable"), me));
	CHECK(r == ncclInProgress, "init says %d", (int)r);
	wait_until_ready(comm);
	check_works(comm, stream);
	r = NCCL_IS_QUIET(ncclCommSplit(comm, 0, me, &child, &config));
	CHECK(r == ncclInProgress, "split says %d", (int)r);
	wait_until_ready(child);
	check_works(child, stream);
	NCCL(ncclCommDestroy(child));
	NCCL(ncclCommDestroy(comm));
}

static void nonblocking(cudaStream_t stream)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL, child = NULL, none = comm, more[2];
	ncclResult_t r;

	config.blocking = 0;
	r = NCCL_IS_QUIET(ncclCommInitRankConfig(&comm, n, id_of("nonblocking"), me, &config));
	CHECK(r == ncclSuccess || r == ncclInProgress, "init says %d", (int)r);
	wait_until_ready(comm);
	check_size(comm, n, me);
	r = NCCL_IS_QUIET(ncclCommSplit(comm, 0, me, &child, NULL)); /* as its parent */
	CHECK(r == ncclSuccess || r == ncclInProgress, "split says %d", (int)r);
	CHECK(child, "no handle at once");
	wait_until_ready(child);
	check_size(child, n, me);
	check_works(child, stream);
	NCCL(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, me, &none, NULL));
	CHECK(!none, "a split without color gave a communicator");

	NCCL(ncclGroupStart());
	for (int i = 0; i < 2; i++) {
		r = NCCL_IS_QUIET(
			ncclCommInitRankConfig(&more[i], n, id_of(i ? "b" : "a"), me, &config));
		CHECK(r == ncclSuccess || r == ncclInProgress, "init says %d", (int)r);
	}
	r = NCCL_IS_QUIET(ncclGroupEnd());
	CHECK(r == ncclSuccess || r == ncclInProgress, "the group says %d", (int)r);
	for (int i = 0; i < 2; i++) {
		wait_until_ready(more[i]);
		check_works(more[i], stream);
		r = NCCL_IS_QUIET(ncclCommFinalize(more[i]));
		CHECK(r == ncclSuccess || r == ncclInProgress, "finalize says %d", (int)r);
		wait_until_ready(more[i]);
		NCCL_FAILS(ncclCommFinalize(more[i]), ncclInvalidArgument);
		NCCL(ncclCommDestroy(more[i]));
	}
	check_works(comm, stream);
	NCCL(ncclCommDestroy(child));
	NCCL(ncclCommDestroy(comm));
}

static void shrink(cudaStream_t stream)
{
	ncclComm_t comm = comm_new("shrink"), child = NULL, third = NULL;
	ncclComm_t barrier = comm_new("shrink barrier");
	int last[1] = {n - 1}, two[2] = {0, n - 2}, self[1] = {me};

	if (me != n - 1) {
		NCCL(ncclCommShrink(comm, last, 1, &child, NULL, NCCL_SHRINK_DEFAULT));
		check_size(child, n - 1, me);
		check_works(child, stream);
	}
	check_works(barrier, stream); /* an abort takes what others have not finished, too */
	NCCL(ncclCommDestroy(barrier));
	/* again, of the child, from the front: ranks move up; the parent's work is dropped */
	if (me != n - 1 && me != 0 && me != n - 2 && n > 3) {
		NCCL(ncclCommShrink(child, two, 2, &third, NULL, NCCL_SHRINK_ABORT));
		check_size(third, n - 3, me - 1);
		check_works(third, stream);
		NCCL(ncclCommDestroy(third));
		NCCL(ncclCommAbort(child));
	} else if (child) {
		NCCL(ncclCommAbort(child));
	}
	NCCL_FAILS(ncclCommShrink(comm, self, 1, &child, NULL, 0), ncclInvalidArgument);
	NCCL_FAILS(ncclCommShrink(comm, NULL, 0, &child, NULL, 0), ncclInvalidArgument);
	if (k == 1)
		check_works(comm, stream);
	NCCL(ncclCommAbort(comm));
}

/* One parent, shrunk to different members one after the other, so that some have made more shrinks
 * than others, and to the same ones several times. */
static void shrink_in_turns(cudaStream_t stream)
{
	ncclComm_t comm = comm_new("in turns"), child;

	for (int i = 0; i < 2 * k; i++) {
		int out = i % 2 ? n - 1 : real[i / 2];

		if (out == me)
			continue;
		NCCL(ncclCommShrink(comm, &out, 1, &child, NULL, NCCL_SHRINK_DEFAULT));
		check_size(child, n - 1, me - (out < me));
		check_works(child, stream);
		NCCL(ncclCommDestroy(child));
	}
	NCCL(ncclCommDestroy(comm));
}

/* --- several threads --------------------------------------------------------------------- */

static void *run_thread(void *arg)
{
	cudaStream_t stream;
	ncclComm_t comm, child;
	char name[16];

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	snprintf(name, sizeof(name), "thread %d", *(int *)arg);
	comm = comm_new(name);
	for (int i = 0; i < 30; i++) {
		check_works(comm, stream);
		if (i % 10)
			continue;
		NCCL(ncclCommSplit(comm, 0, me, &child, NULL));
		check_works(child, stream);
		NCCL(ncclCommDestroy(child));
	}
	/* the sentence is the thread's own */
	NCCL_FAILS(ncclAllReduce(arg, arg, 1, (ncclDataType_t)(90 + *(int *)arg), ncclSum, comm,
				 stream),
		   ncclInvalidArgument);
	snprintf(name, sizeof(name), "%d", 90 + *(int *)arg);
	CHECK(strstr(ncclGetLastError(NULL), name), "thread %d: %s", *(int *)arg,
	      ncclGetLastError(NULL));
	NCCL(ncclCommDestroy(comm));
	CUDA(cudaStreamDestroy(stream));
	return NULL;
}

static void threads(void)
{
	pthread_t ids[N_THREADS];
	int numbers[N_THREADS];

	for (int i = 0; i < N_THREADS; i++) {
		numbers[i] = i;
		CHECK(!pthread_create(&ids[i], NULL, run_thread, &numbers[i]), "thread %d", i);
	}
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(ids[i], NULL);
}

/* --- children ------------------------------------------------------------------------------ */

static void reap(pid_t pid, const char *how)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
	      "the child that %s: status 0x%x", how, (unsigned int)status);
}

/* As data loaders do it: nboxd must not take a child's end for the worker's, and a child must not
 * get in the way of the parent. */
static void forks(cudaStream_t stream)
{
	char program[] = "/proc/self/exe", nothing[] = "nothing";
	char *argv[] = {program, nothing, NULL};
	ncclComm_t comm = comm_new("forks"), other;
	int value;
	pid_t pid;

	check_works(comm, stream);
	pid = fork();
	if (!pid) {
		NCCL_FAILS(ncclAllReduce(argv, argv, 1, ncclFloat, ncclSum, comm, stream),
			   ncclSystemError);
		NCCL_FAILS(ncclCommSplit(comm, 0, 0, &other, NULL), ncclSystemError);
		CHECK(ncclCommCount(comm, &value) == ncclSuccess && value == n, "%d", value);
		_exit(0);
	}
	reap(pid, "tries NCCL");
	check_works(comm, stream);
	pid = fork();
	if (!pid && HAS_LEAK_CHECK)
		_exit(0);
	if (!pid)
		exit(0); /* destructors run */
	reap(pid, "exits");
	check_works(comm, stream);
	pid = fork();
	if (!pid) {
		execv(program, argv);
		_exit(1);
	}
	reap(pid, "execs");
	check_works(comm, stream);
	CHECK(!posix_spawn(&pid, program, NULL, NULL, argv, environ), "posix_spawn");
	reap(pid, "is spawned");
	check_works(comm, stream);
	/* one that is alive while the parent works, and is killed */
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	check_works(comm, stream);
	kill(pid, SIGKILL);
	waitpid(pid, &value, 0);
	check_works(comm, stream);
	NCCL(ncclCommDestroy(comm));
}

/* --- revoke --------------------------------------------------------------------------------- */

static void revocation(cudaStream_t stream)
{
	ncclComm_t comm = comm_new("doomed"), barrier = comm_new("barrier"), child, after;
	ncclResult_t state = ncclSuccess;
	int last[1] = {n - 1};
	void *a;

	check_works(comm, stream);
	check_works(barrier, stream); /* nobody is in an op of the other any more */
	CUDA(cudaMalloc(&a, 4));
	NCCL_FAILS(ncclCommRevoke(comm, 1), ncclInvalidArgument);
	if (me == real[0]) {
		NCCL(ncclCommRevoke(comm, 0));
		NCCL_FAILS(ncclCommRevoke(comm, 0), ncclInvalidArgument);
		NCCL_FAILS(ncclAllReduce(a, a, 1, ncclFloat, ncclSum, comm, stream),
			   ncclInvalidUsage);
	} else {
		/* the real NCCL may be the first to notice */
		while (!strstr(ncclGetLastError(comm), "revoked"))
			usleep(1000);
		NCCL(ncclCommGetAsyncError(comm, &state));
		CHECK(state != ncclSuccess, "no error");
		NCCL_FAILS(ncclAllReduce(a, a, 1, ncclFloat, ncclSum, comm, stream), state);
	}
	NCCL_FAILS(ncclCommSplit(comm, 0, 0, &child, NULL),
		   me == real[0] ? ncclInvalidUsage : state);
	/* what a job does next: goes on without the rank that is gone */
	if (me != n - 1) {
		NCCL(ncclCommShrink(comm, last, 1, &child, NULL, NCCL_SHRINK_ABORT));
		check_size(child, n - 1, me);
		check_works(child, stream);
		NCCL(ncclCommDestroy(child));
	}
	NCCL(ncclCommAbort(comm));
	NCCL(ncclCommDestroy(barrier));
	after = comm_new("after");
	check_works(after, stream);
	NCCL(ncclCommDestroy(after));
	CUDA(cudaFree(a));
}

/* --- a rank that leaves in good order while the others split ------------------------------ */

static void leaver(cudaStream_t stream)
{
	ncclComm_t comm = comm_new("left"), child;

	check_works(comm, stream);
	if (me == real[0]) {
		usleep(200000); /* the others wait in the split by now, or come later: both must end
				 */
		NCCL(ncclCommDestroy(comm));
		return;
	}
	CHECK(ncclCommSplit(comm, 0, me, &child, NULL) != ncclSuccess, "split without rank %d",
	      real[0]);
	NCCL(ncclCommAbort(comm));
}

/* --- ends that do not agree ---------------------------------------------------------------- */

/* One rank aborts while the others destroy, with an op under way in which it takes no part: nobody
 * waits for it. */
static void ends(cudaStream_t stream)
{
	ncclComm_t barrier = comm_new("ends barrier");
	void *a;

	CUDA(cudaMalloc(&a, 4));
	for (int i = 0; i < 20; i++) {
		char name[16];
		ncclComm_t comm;

		snprintf(name, sizeof(name), "ends %d", i);
		comm = comm_new(name);
		check_works(comm, stream);
		check_works(barrier, stream);
		if (me == real[0]) {
			usleep((useconds_t)(i * 500));
			NCCL(ncclCommAbort(comm));
			continue;
		}
		/* it may be told before it calls */
		NCCL_IS_QUIET(ncclAllReduce(a, a, 1, ncclFloat, ncclSum, comm, stream));
		NCCL_IS_QUIET(ncclCommDestroy(comm));
		CUDA(cudaStreamSynchronize(stream));
	}
	check_works(barrier, stream);
	NCCL(ncclCommDestroy(barrier));
	CUDA(cudaFree(a));
}

/* One rank aborts a communicator while it is made. The others are told, whether they are there
 * already, come at the same time, or come later. */
static void half_made(cudaStream_t stream)
{
	ncclComm_t barrier = comm_new("half-made barrier");
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	void *a;

	CUDA(cudaMalloc(&a, 4));
	config.blocking = 0;
	for (int i = 0; i < 9; i++) {
		int is_aborter = me == real[i / 3 % k];
		ncclResult_t r, state = ncclInProgress;
		char name[16];
		ncclComm_t comm;

		snprintf(name, sizeof(name), "half-made %d", i);
		check_works(barrier, stream);
		usleep(i % 3 == 2 || is_aborter == (i % 3 == 0) ? 0 : 100000);
		if (is_aborter) {
			r = NCCL_IS_QUIET(
				ncclCommInitRankConfig(&comm, n, id_of(name), me, &config));
			CHECK(r == ncclSuccess || r == ncclInProgress, "init says %d", (int)r);
			NCCL(ncclCommAbort(comm));
			continue;
		}
		r = NCCL_IS_QUIET(ncclCommInitRank(&comm, n, id_of(name), me));
		if (r != ncclSuccess) {
			CHECK(!comm, "an init that failed gave a communicator");
			continue;
		}
		/* it was made before it was aborted: as late as in an op */
		NCCL_IS_QUIET(ncclAllReduce(a, a, 1, ncclFloat, ncclSum, comm, stream));
		while (state == ncclSuccess || state == ncclInProgress) {
			usleep(1000);
			NCCL(ncclCommGetAsyncError(comm, &state));
		}
		NCCL_IS_QUIET(ncclCommAbort(comm));
		CUDA(cudaStreamSynchronize(stream));
	}
	check_works(barrier, stream);
	NCCL(ncclCommDestroy(barrier));
	CUDA(cudaFree(a));
}

int main(int argc, char **argv)
{
	cudaStream_t stream;

	if (argc < 3)
		return 0; /* somebody's child */
	job_start(argv);
	CUDA(cudaStreamCreate(&stream));
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "group"))
			group_of_inits(stream);
		else if (!strcmp(argv[i], "scalable"))
			scalable(stream);
		else if (!strcmp(argv[i], "split"))
			split(stream);
		else if (!strcmp(argv[i], "nonblocking"))
			nonblocking(stream);
		else if (!strcmp(argv[i], "by-variable"))
			by_variable(stream);
		else if (!strcmp(argv[i], "shrink"))
			shrink(stream);
		else if (!strcmp(argv[i], "shrink-in-turns"))
			shrink_in_turns(stream);
		else if (!strcmp(argv[i], "threads"))
			threads();
		else if (!strcmp(argv[i], "fork"))
			forks(stream);
		else if (!strcmp(argv[i], "revoke"))
			revocation(stream);
		else if (!strcmp(argv[i], "common-id"))
			common_id(stream);
		else if (!strcmp(argv[i], "ends"))
			ends(stream);
		else if (!strcmp(argv[i], "half-made"))
			half_made(stream);
		else if (!strcmp(argv[i], "leave"))
			leaver(stream);
		else
			return 2;
	}
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
