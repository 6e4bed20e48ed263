/* How communicators begin and end, in good order and in bad order.
 *
 * Usage: test-life NAME */
#include "harness.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int sum_is(ncclComm_t comm, cudaStream_t s, int mine, int want)
{
	int x = mine, y = -1;

	NCCL(ncclAllReduce(&x, &y, 1, ncclInt, ncclSum, comm, s));
	CUDA(cudaStreamSynchronize(s));
	if (y != want)
		fprintf(stderr, "sum is %d, not %d\n", y, want);
	return y != want;
}

/* --- good order
 * -------------------------------------------------------------------------------------- */

static int split(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0), half, back, none = comm, again;
	int i, n, rank, sum = 0;
	cudaStream_t s;

	CUDA(cudaStreamCreate(&s));
	for (i = r->rank & 1; i < r->n; i += 2)
		sum += i;
	NCCL(ncclCommSplit(comm, r->rank & 1, r->rank, &half, NULL));
	CHECK(!sum_is(half, s, r->rank, sum));
	/* the order is the key's */
	NCCL(ncclCommSplit(comm, -5, -r->rank, &back, NULL)); /* PyTorch 2.4 has such colors */
	NCCL(ncclCommUserRank(back, &rank));
	NCCL(ncclCommCount(back, &n));
	CHECK(rank == r->n - 1 - r->rank && n == r->n);
	CHECK(!sum_is(back, s, 1, r->n));
	/* without a color: takes part, gets nothing */
	NCCL(ncclCommSplit(comm, r->rank ? 1 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
	CHECK(!none == !r->rank);
	if (none)
		CHECK(!sum_is(none, s, 1, r->n - 1));
	NCCL(ncclCommDestroy(comm)); /* children do not need the parent */
	NCCL(ncclCommSplit(half, 0, 0, &again, NULL));
	CHECK(!sum_is(again, s, r->rank, sum));
	CHECK(!sum_is(half, s, r->rank, sum));
	NCCL(ncclCommDestroy(again));
	NCCL(ncclCommDestroy(half));
	NCCL(ncclCommDestroy(back));
	NCCL(ncclCommDestroy(none));
	return 0;
}

static int shrink(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0), rest = NULL;
	int excluded[2] = {1, r->n - 1}, i, sum = 0, rank;
	cudaStream_t s;

	CUDA(cudaStreamCreate(&s));
	CHECK(!sum_is(comm, s, 1, r->n));
	if (r->rank == 1 || r->rank == r->n - 1) {
		CHECK(ncclCommShrink(comm, excluded, 2, &rest, NULL, 0) == ncclInvalidArgument);
		wait_flag(r, 0, r->n - 2);
		NCCL(ncclCommDestroy(comm));
		return 0;
	}
	for (i = 0; i < r->n; i++)
		sum += i == 1 || i == r->n - 1 ? 0 : i;
	NCCL(ncclCommShrink(comm, excluded, 2, &rest, NULL, NCCL_SHRINK_DEFAULT));
	NCCL(ncclCommUserRank(rest, &rank));
	CHECK(rank == (r->rank ? r->rank - 1 : 0));
	CHECK(!sum_is(rest, s, r->rank, sum));
	r->shared->flag[0]++;
	NCCL(ncclCommDestroy(comm));
	CHECK(!sum_is(rest, s, r->rank, sum));
	NCCL(ncclCommDestroy(rest));
	return 0;
}

/* One parent, shrunk to different members one after the other, and to the same ones twice. */
static int shrink_in_turns(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0), rest;
	cudaStream_t s;

	CUDA(cudaStreamCreate(&s));
	for (int i = 0; i < 2 * r->n; i++) {
		int out = (i / 2 + r->n - 1) % r->n;

		if (out == r->rank)
			continue;
		NCCL(ncclCommShrink(comm, &out, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
		CHECK(!sum_is(rest, s, 1, r->n - 1));
		NCCL(ncclCommDestroy(rest));
	}
	NCCL(ncclCommDestroy(comm));
	return 0;
}

static int until_ready(ncclComm_t comm)
{
	ncclResult_t state;
	double until = now_s() + 60;

	do {
		NCCL(ncclCommGetAsyncError(comm, &state));
	} while (state == ncclInProgress && now_s() < until);
	CHECK(state == ncclSuccess);
	return 0;
}

static int nonblocking(struct rank *r)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL, half = NULL;
	ncclResult_t e;
	cudaStream_t s;
	int n;

	config.blocking = 0;
	CUDA(cudaStreamCreate(&s));
	if (!r->rank) {
		NCCL(ncclGetUniqueId(&r->shared->ids[0]));
		r->shared->flag[0] = 1;
	}
	wait_flag(r, 0, 1);
	e = ncclCommInitRankConfig(&comm, r->n, r->shared->ids[0], r->rank, &config);
	CHECK((e == ncclInProgress || !e) && comm);
	if (!r->rank) { /* the others cannot be done */
		CHECK(ncclCommCount(comm, &n) == ncclInvalidArgument);
		usleep(30000);
		NCCL(ncclCommGetAsyncError(comm, &e));
		CHECK(e == ncclInProgress);
		r->shared->flag[1] = 1;
	} else if (r->rank == 1) {
		/* nothing */
	}
	CHECK(!until_ready(comm));
	CHECK(!sum_is(comm, s, 1, r->n));
	e = ncclCommSplit(comm, r->rank & 1, 0, &half, NULL);
	CHECK(e == ncclInProgress || !e);
	while (!half)
		usleep(100);
	CHECK(!until_ready(half));
	CHECK(!sum_is(half, s, 1, (r->n + 1 - (r->rank & 1)) / 2));
	e = ncclCommFinalize(comm);
	CHECK(e == ncclInProgress || !e);
	CHECK(!until_ready(comm));
	NCCL(ncclCommDestroy(comm));
	NCCL(ncclCommDestroy(half));
	return 0;
}

/* rank 0 must see InProgress while somebody is missing */
static int nonblocking_late(struct rank *r)
{
	if (r->rank) {
		while (!r->shared->flag[0])
			usleep(100);
		if (r->rank == r->n - 1)
			wait_flag(r, 1, 1);
	}
	return nonblocking(r);
}

static int scalable(struct rank *r)
{
	ncclUniqueId *ids = r->shared->ids;
	ncclComm_t comm, other;
	cudaStream_t s;

	CUDA(cudaStreamCreate(&s));
	if (r->rank < 2) {
		NCCL(ncclGetUniqueId(&ids[r->rank]));
		r->shared->id_ready[r->rank] = 1;
	}
	while (!r->shared->id_ready[0] || !r->shared->id_ready[1])
		usleep(100);
	NCCL(ncclCommInitRankScalable(&comm, r->n, r->rank, 2, ids, NULL));
	CHECK(!sum_is(comm, s, 1, r->n));
	/* two at once, in a group */
	if (!r->rank) {
		NCCL(ncclGetUniqueId(&ids[2]));
		NCCL(ncclGetUniqueId(&ids[3]));
		r->shared->id_ready[2] = 1;
	}
	while (!r->shared->id_ready[2])
		usleep(100);
	NCCL(ncclCommDestroy(comm));
	NCCL(ncclGroupStart());
	NCCL(ncclCommInitRank(&comm, r->n, ids[2], r->rank));
	NCCL(ncclCommInitRank(&other, r->n, ids[3], r->rank));
	NCCL(ncclGroupEnd());
	CHECK(!sum_is(comm, s, 1, r->n) && !sum_is(other, s, 2, 2 * r->n));
	NCCL(ncclCommDestroy(comm));
	NCCL(ncclCommDestroy(other));
	return 0;
}

/* NCCL_COMM_ID, several communicators one after the other */
static int common_id(struct rank *r)
{
	ncclUniqueId id;
	ncclComm_t comm;
	cudaStream_t s;
	int k;

	CUDA(cudaStreamCreate(&s));
	setenv("NCCL_COMM_ID", r->arg, 1);
	for (k = 0; k < 3; k++) {
		NCCL(ncclGetUniqueId(&id));
		NCCL(ncclCommInitRank(&comm, r->n, id, r->rank));
		CHECK(!sum_is(comm, s, 1, r->n));
		NCCL(ncclCommDestroy(comm));
	}
	return 0;
}

/* Ranks 0..n/2-1 and the rest say that they are on two hosts. */
static int two_hosts(struct rank *r)
{
	static float x[100000];
	ncclComm_t comm;
	cudaStream_t s;
	int k;

	setenv("NCCL_HOSTID", r->rank < r->n / 2 ? "a" : "b", 1);
	setenv("NCCL_ALGO", "tree", 1);
	comm = make_comm(r, 0);
	CUDA(cudaStreamCreate(&s));
	for (k = 0; k < 100000; k++)
		x[k] = (float)r->rank;
	NCCL(ncclAllReduce(x, x, 100000, ncclFloat, ncclSum, comm, s));
	CUDA(cudaStreamSynchronize(s));
	for (k = 0; k < 100000; k++)
		CHECK(x[k] == (float)(r->n * (r->n - 1) / 2));
	NCCL(ncclCommDestroy(comm));
	return 0;
}

/* --- bad days
 * ------------------------------------------------------------------------------------------ */

/* Rank 0 waits for a peer that never comes, and gives up. */
static int abort_op(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0);
	ncclResult_t state;
	cudaStream_t s;
	int x = 1, y;

	CUDA(cudaStreamCreate(&s));
	CHECK(!sum_is(comm, s, 1, r->n));
	r->shared->flag[r->rank] = 1; /* an abort takes what others have not finished, too */
	for (int i = 0; i < r->n; i++)
		wait_flag(r, i, 1);
	if (r->rank) {
		wait_flag(r, r->n, 1);
		CHECK(!ncclCommGetAsyncError(comm, &state));
		NCCL(ncclCommAbort(comm));
		return 0;
	}
	NCCL(ncclAllReduce(&x, &y, 1, ncclInt, ncclSum, comm, s));
	NCCL(ncclAllReduce(&x, &y, 1, ncclInt, ncclSum, comm, s));
	usleep(50000);
	CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
	NCCL(ncclCommAbort(comm));
	CUDA(cudaStreamSynchronize(s));
	r->shared->flag[r->n] = 1;
	return 0;
}

/* ... or waits for others to check in. */
static int abort_init(struct rank *r)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm;
	ncclUniqueId id;
	ncclResult_t e;

	config.blocking = 0;
	NCCL(ncclGetUniqueId(&id));
	e = ncclCommInitRankConfig(&comm, r->n + 1, id, r->rank, &config);
	CHECK(e == ncclInProgress);
	usleep(20000);
	NCCL(ncclCommAbort(comm));
	return 0;
}

/* Rank 1 dies in the middle of an op; every other rank knows within a second. */
static int killed(struct rank *r)
{
	static float x[1 << 20];
	ncclComm_t comm = make_comm(r, 0);
	cudaStream_t s;
	double start;

	CUDA(cudaStreamCreate(&s));
	CHECK(!sum_is(comm, s, 1, r->n));
	if (r->rank == 1) {
		r->shared->flag[0] = 1;
		wait_flag(r, 1, r->n - 1);
		kill(getpid(), SIGKILL);
	}
	NCCL(ncclAllReduce(x, x, 1 << 20, ncclFloat, ncclSum, comm, s));
	r->shared->flag[1]++;
	wait_flag(r, 1, r->n - 1);
	start = now_s();
	CHECK(wait_async(comm, ncclRemoteError, 60000));
	if (now_s() - start > 1)
		fprintf(stderr, "rank %d: it took %.1f s to know\n", r->rank, now_s() - start);
	CHECK(strstr(ncclGetLastError(comm), "rank"));
	CUDA(cudaStreamSynchronize(s)); /* the op was let go */
	CHECK(ncclAllReduce(x, x, 1, ncclFloat, ncclSum, comm, s) == ncclRemoteError);
	NCCL(ncclCommAbort(comm));
	return 0;
}

/* The same, and the survivors go on without it. */
static int killed_shrink(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0), rest;
	int dead = 1;
	cudaStream_t s;

	CUDA(cudaStreamCreate(&s));
	CHECK(!sum_is(comm, s, 1, r->n));
	/* bytes of the op that a killed rank has not delivered yet may be lost with it */
	r->shared->flag[r->rank] = 1;
	for (int k = 0; r->rank == 1 && k < r->n; k++)
		wait_flag(r, k, 1);
	if (r->rank == 1)
		kill(getpid(), SIGKILL);
	CHECK(wait_async(comm, ncclRemoteError, 60000));
	CHECK(ncclCommShrink(comm, &dead, 1, &rest, NULL, 0) == ncclRemoteError);
	NCCL(ncclCommShrink(comm, &dead, 1, &rest, NULL, NCCL_SHRINK_ABORT));
	NCCL(ncclCommAbort(comm));
	CHECK(!sum_is(rest, s, 1, r->n - 1));
	NCCL(ncclCommDestroy(rest));
	return 0;
}

/* A rank that ends without ncclCommDestroy harms nobody who needs no more of it. */
static int leaves(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0);
	cudaStream_t s;

	CUDA(cudaStreamCreate(&s));
	CHECK(!sum_is(comm, s, 1, r->n));
	r->shared->flag[r->rank] = 1;
	for (int i = 0; i < r->n; i++)
		wait_flag(r, i, 1);
	if (r->rank == 1)
		return 0;
	for (int i = 0; i < 300; i++) {
		ncclResult_t async;

		NCCL(ncclCommGetAsyncError(comm, &async));
		CHECK(async == ncclSuccess);
		usleep(1000);
	}
	NCCL(ncclCommDestroy(comm));
	return 0;
}

static void everybody(struct rank *r, int flag)
{
	r->shared->flag[flag]++;
	wait_flag(r, flag, r->n);
}

/* Rank 2 leaves, in good order or not. What it sent before arrives; an op that waits for nothing
 * but its bytes, where it never sent any, does not wait for ever. Rank 0 is not its neighbour:
 * nothing connects the two. */
static int left(struct rank *r)
{
	cudaStream_t s;

	CUDA(cudaStreamCreate(&s));
	for (int k = 0; k < 4; k++) { /* a receive, a broadcast; abort, destroy */
		ncclComm_t comm = make_comm(r, k);
		ncclResult_t e;
		int x = 5, y = 0;

		if (r->rank == 2 && k & 1)
			NCCL(ncclSend(&x, 1, ncclInt, 0, comm, s));
		CUDA(cudaStreamSynchronize(s));
		everybody(r, 2 * k);
		if (r->rank == 2) {
			NCCL(k & 1 ? ncclCommDestroy(comm) : ncclCommAbort(comm));
			everybody(r, 2 * k + 1);
			continue;
		}
		everybody(r, 2 * k + 1);
		if (k < 2)
			usleep(30000); /* its connections are gone by now, too: either is right */
		if (r->rank == 0 && k & 1) {
			NCCL(ncclRecv(&y, 1, ncclInt, 2, comm, s));
			CUDA(cudaStreamSynchronize(s));
			CHECK(y == 5);
		}
		if (r->rank == 0)
			r->shared->flag[20 + k] = 1;
		wait_flag(r, 20 + k, 1); /* who fails tells the others */
		e = k < 2 ? ncclRecv(&y, 1, ncclInt, 2, comm, s)
			  : ncclBroadcast(&x, &y, 1, ncclInt, 2, comm, s);
		CHECK(!e || e == ncclRemoteError);
		CHECK(wait_async(comm, ncclRemoteError, 60000));
		CUDA(cudaStreamSynchronize(s));
		NCCL(ncclCommAbort(comm));
	}
	return 0;
}

/* A forked child that ends what it inherited, as destructors do, does not hang, and harms nobody.
 */
static int fork_child(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0);
	int status = -1, x = 1, y;
	cudaStream_t s;
	pid_t pid;

	CUDA(cudaStreamCreate(&s));
	CHECK(!sum_is(comm, s, 1, r->n));
	pid = fork();
	if (!pid) {
		CHECK(ncclAllReduce(&x, &y, 1, ncclInt, ncclSum, comm, s) == ncclSystemError);
		CHECK(strstr(ncclGetLastError(NULL), "forked child"));
		_exit(ncclCommAbort(comm) != ncclSystemError ||
		      ncclCommDestroy(comm) != ncclSystemError);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!sum_is(comm, s, 1, r->n));
	NCCL(ncclCommDestroy(comm));
	return 0;
}

static int n_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* An init that is aborted, perhaps before it has checked in, leaves no root of its id behind. */
static int abandoned_init(struct rank *r)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	double until = now_s() + 60;
	ncclComm_t comm;
	ncclUniqueId id;
	int before = 0;

	config.blocking = 0;
	for (int i = 0; i < 100; i++) {
		NCCL(ncclGetUniqueId(&id));
		CHECK(ncclCommInitRankConfig(&comm, r->n + 1, id, r->rank, &config) ==
		      ncclInProgress);
		NCCL(ncclCommAbort(comm));
		if (i == 0)
			before = n_threads();
	}
	while (n_threads() > before && now_s() < until)
		usleep(1000);
	CHECK(n_threads() <= before);
	return 0;
}

/* Ranks that do not agree on what they call. */
static int mismatch(struct rank *r)
{
	static float x[5000], y[20000];
	ncclComm_t comm;
	cudaStream_t s;
	int k;

	CUDA(cudaStreamCreate(&s));
	for (k = 0; k < 4; k++) {
		comm = make_comm(r, k);
		if (k == 0) /* another count */
			NCCL(ncclAllReduce(x, y, r->rank ? 5000 : 4999, ncclFloat, ncclSum, comm,
					   s));
		else if (k == 1 && r->rank) /* another collective */
			NCCL(ncclAllReduce(x, y, 1000, ncclFloat, ncclSum, comm, s));
		else if (k == 1)
			NCCL(ncclAllGather(x, y, 1000, ncclFloat, comm, s));
		else if (k == 2) /* another operator */
			NCCL(ncclAllReduce(x, y, 1000, ncclFloat, r->rank ? ncclMax : ncclMin, comm,
					   s));
		else if (r->rank == 0) /* another size of a message */
			NCCL(ncclSend(x, 100, ncclFloat, 1, comm, s));
		else if (r->rank == 1)
			NCCL(ncclRecv(x, 101, ncclFloat, 0, comm, s));
		if (k < 3 || r->rank == 1) {
			CHECK(wait_async(comm, ncclInvalidUsage, 60000));
			CHECK(strstr(ncclGetLastError(comm), "mismatched"));
		}
		CUDA(cudaStreamSynchronize(s));
		r->shared->flag[k]++;
		wait_flag(r, k, r->n);
		NCCL(ncclCommAbort(comm));
	}
	return 0;
}

static int misuse(struct rank *r)
{
	ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;
	ncclComm_t comm = make_comm(r, 0), other;
	ncclConfig_t config = {0}, few = NCCL_CONFIG_INITIALIZER, order = few, share = few;
	float factor = 2;
	ncclUniqueId id;
	ncclRedOp_t op;
	ncclResult_t e;
	ncclWindow_t win;
	void *p, *handle;
	int v = 0, x = 1, y;

	NCCL(ncclGetVersion(&v));
	CHECK(v == NCCL_VERSION_CODE);
	NCCL(ncclGetUniqueId(&id));
	CHECK(ncclCommInitRank(&other, 2, id, 2) == ncclInvalidArgument);
	CHECK(ncclCommInitRank(&other, 0, id, 0) == ncclInvalidArgument);
	CHECK(ncclCommInitRankConfig(&other, 1, id, 0, &config) == ncclInvalidArgument);
	few.minCTAs = 0;
	CHECK(ncclCommInitRankConfig(&other, 1, id, 0, &few) == ncclInvalidArgument);
	order.minCTAs = 9;
	order.maxCTAs = 4;
	CHECK(ncclCommInitRankConfig(&other, 1, id, 0, &order) == ncclInvalidArgument);
	share.splitShare = 2;
	CHECK(ncclCommInitRankConfig(&other, 1, id, 0, &share) == ncclInvalidArgument);
	CHECK(ncclCommInitRankScalable(&other, 1, 0, 2, &id, NULL) == ncclInvalidArgument);
	NCCL(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarHostImmediate, comm));
	CHECK(ncclAllReduce(&x, &y, 1, ncclInt, op, comm, 0) == ncclInvalidArgument);
	NCCL(ncclRedOpDestroy(op, comm));
	CHECK(ncclCommCount(NULL, &v) == ncclInvalidArgument);
	CHECK(ncclAllReduce(&x, &y, 1, (ncclDataType_t)99, ncclSum, comm, 0) ==
	      ncclInvalidArgument);
	CHECK(ncclAllReduce(&x, &y, 1, ncclInt, (ncclRedOp_t)77, comm, 0) == ncclInvalidArgument);
	CHECK(ncclReduce(&x, &y, 1, ncclInt, ncclSum, r->n, comm, 0) == ncclInvalidArgument);
	CHECK(strstr(ncclGetLastError(NULL), "ncclReduce"));
	NCCL(ncclAllReduce(NULL, NULL, 0, ncclInt, ncclSum, comm, 0));
	NCCL(ncclMemAlloc(&p, 8192));
	NCCL(ncclCommRegister(comm, p, 8192, &handle));
	NCCL(ncclCommDeregister(comm, handle));
	NCCL(ncclCommWindowRegister(comm, p, 8192, &win, NCCL_WIN_COLL_SYMMETRIC));
	NCCL(ncclCommWindowDeregister(comm, win));
	NCCL(ncclMemFree(p));
	NCCL(ncclGroupStart());
	CHECK(ncclGroupSimulateEnd(&sim) == ncclInvalidUsage);
	CHECK(ncclGroupEnd() == ncclInvalidUsage); /* it was closed */
	CHECK(!strcmp(ncclGetErrorString(ncclSuccess), "no error"));
	NCCL(ncclCommRevoke(comm, 0));
	CHECK(ncclAllReduce(&x, &y, 1, ncclInt, ncclSum, comm, 0) != ncclSuccess);
	NCCL(ncclCommGetAsyncError(comm, &e));
	CHECK(e != ncclSuccess);
	NCCL(ncclCommDestroy(comm));
	NCCL(ncclCommDestroy(NULL));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		rank_fn fn;
		int n, killed;
	} cases[] = {
		{"split", split, 5, -1},
		{"shrink", shrink, 5, -1},
		{"nonblocking", nonblocking_late, 4, -1},
		{"scalable", scalable, 4, -1},
		{"common-id", common_id, 3, -1},
		{"two-hosts", two_hosts, 6, -1},
		{"abort", abort_op, 3, -1},
		{"abort-init", abort_init, 1, -1},
		{"leaves", leaves, 3, -1},
		{"left", left, 4, -1},
		{"shrink-in-turns", shrink_in_turns, 4, -1},
		{"fork", fork_child, 2, -1},
		{"abandoned-init", abandoned_init, 1, -1},
		{"killed", killed, 4, 1},
		{"killed-shrink", killed_shrink, 4, 1},
		{"mismatch", mismatch, 2, -1},
		{"misuse", misuse, 1, -1},
	};
	char addr[40];
	int failed = 1;
	size_t k;

	snprintf(addr, sizeof(addr), "127.0.0.1:%d", 20000 + (int)getpid() % 12000);
	for (k = 0; argc == 2 && k < sizeof(cases) / sizeof(*cases); k++) {
		if (!strcmp(argv[1], cases[k].name))
			failed = run_ranks(cases[k].n, cases[k].fn, addr, cases[k].killed, 100);
	}
	return failed ? 1 : 0;
}
