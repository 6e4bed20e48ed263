/* Less usual ways to make and end communicators, and what easily goes wrong behind them. odd.h has
 * the command line.
 *
 * Parts: broken-group, no-color, names, child, refused, end-beside-work, end-beside-replay,
 * two-ends (with ops that take long), failing-end (with one real rank); with NBOX_NCCL
 * waiting-nccl: first-sum. */
#include <stdatomic.h>
#include <sys/wait.h>

#include "odd.h"

/* A group with a call that was wrong makes no communicator and waits for nobody: the
 * others may have seen the error before they got there. */
static void broken_group(void)
{
	ncclComm_t comm = comm_new("before"), first = comm, second = comm;

	if (me == real[0]) {
		NCCL(ncclGroupStart());
		NCCL(ncclCommInitRank(&first, n, id_of("first"), me));
		NCCL_FAILS(ncclCommInitRank(&second, n, id_of("second"), n), ncclInvalidArgument);
		NCCL_FAILS(ncclGroupEnd(), ncclInvalidArgument);
		CHECK(!first && !second, "a broken group gave a communicator");
	}
	check_works(comm);
	NCCL(ncclCommDestroy(comm));
}

/* A split without color gives its NULL at once, also in a group that goes on in the
 * background. */
static void no_color(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER, plain = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm, child = NULL, *none = malloc(sizeof(*none));
	ncclResult_t r;

	config.blocking = 0;
	r = NCCL_IS_QUIET(ncclCommInitRankConfig(&comm, n, id_of("no color"), me, &config));
	CHECK(r == ncclSuccess || r == ncclInProgress, "init says %d", (int)r);
	wait_until_ready(comm);
	NCCL(ncclGroupStart());
	r = NCCL_IS_QUIET(ncclCommSplit(comm, 0, me, &child, &config));
	CHECK(r == ncclSuccess || r == ncclInProgress, "split says %d", (int)r);
	*none = comm;
	r = NCCL_IS_QUIET(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, me, none, &config));
	CHECK(r == ncclSuccess || r == ncclInProgress, "split says %d", (int)r);
	r = NCCL_IS_QUIET(ncclGroupEnd());
	CHECK(r == ncclSuccess || r == ncclInProgress, "the group says %d", (int)r);
	CHECK(!*none, "a split without color gave a communicator");
	free(none);
	wait_until_ready(child);
	check_works(child);
	NCCL(ncclCommDestroy(child));
	/* a config of its own does not inherit: blocking unless it says otherwise */
	NCCL(ncclCommSplit(comm, 0, me, &child, &plain));
	check_works(child);
	NCCL(ncclCommDestroy(child));
	NCCL(ncclCommDestroy(comm));
}

/* The first sum of a single real member makes its real communicator, which may wait for
 * everything that is in streams (NBOX_NCCL is one that does): gates must go on opening. */
static void first_sum(void)
{
	ncclComm_t comm = comm_new("first"), other = comm_new("other");
	cudaStream_t second;

	CUDA(cudaStreamCreate(&second));
	put(buf[0], 1);
	NCCL(ncclBroadcast(buf[0], buf[0], COUNT, ncclFloat, me, comm, stream));
	for (int i = 0; i < 3; i++)
		NCCL(ncclBroadcast(buf[1], buf[1], COUNT, ncclFloat, me, other, second));
	NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclSum, comm, stream));
	check("the first sum", buf[0], (float)n);
	CUDA(cudaStreamSynchronize(second));
	CUDA(cudaStreamDestroy(second));
	NCCL(ncclCommDestroy(other));
	NCCL(ncclCommDestroy(comm));
}

/* The strings of a config belong to the job, which may free them once the call has returned. */
static void names(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	char *net = strdup("some net"), *self = strdup("some comm");
	ncclComm_t comm;

	config.netName = net;
	config.commName = self;
	NCCL(ncclCommInitRankConfig(&comm, n, id_of("names"), me, &config));
	memset(net, '#', strlen(net));
	memset(self, '#', strlen(self));
	free(net);
	free(self);
	check_works(comm);
	NCCL(ncclCommDestroy(comm));
}

static atomic_bool is_over;

/* Calls on and on what takes locks. */
static void *busy(void *none)
{
	ncclConfig_t wrong = {0};
	ncclComm_t comm;

	while (!atomic_load(&is_over))
		NCCL_FAILS(ncclCommInitRankConfig(&comm, n, id_of("never"), me, &wrong),
			   ncclInvalidArgument);
	return none;
}

/* A forked child gives its copy of a communicator back, as the destructors of a framework do. That
 * does not concern the parent, and the child waits for nobody, whatever the parent's threads did
 * when it forked. */
static void child(void)
{
	ncclComm_t comm = comm_new("child");
	pthread_t threads[2];
	int status;
	pid_t pid;

	check_works(comm);
	atomic_store(&is_over, 0);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, busy, NULL), "thread");
	for (int i = 0; i < 100; i++) {
		pid = fork();
		if (!pid) {
			alarm(80);
			NCCL(i % 2 ? ncclCommDestroy(comm) : ncclCommAbort(comm));
			_exit(0);
		}
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
		      "the child: status 0x%x", (unsigned int)status);
	}
	atomic_store(&is_over, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	check_works(comm);
	NCCL(ncclCommDestroy(comm));
}

static _Atomic pid_t destroyer;

static void *destroy(void *comm)
{
	atomic_store(&destroyer, gettid());
	NCCL(ncclCommDestroy(comm));
	return NULL;
}

/* Waits until thread @tid has slept for so long that it waits for no lock. */
static void wait_until_asleep(pid_t tid)
{
	char path[64], line[512] = "";
	int n_asleep = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	while (n_asleep < 20) {
		FILE *f = fopen(path, "r");
		char *after = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;

		CHECK(after, "no thread %d", (int)tid);
		fclose(f);
		n_asleep = after[2] == 'S' ? n_asleep + 1 : 0;
		usleep(5000);
	}
}

/* Return: a thread that waits in ncclCommDestroy. */
static pthread_t start_destroy(ncclComm_t comm)
{
	pthread_t thread;

	atomic_store(&destroyer, 0);
	CHECK(!pthread_create(&thread, NULL, destroy, comm), "thread");
	while (!atomic_load(&destroyer))
		usleep(1000);
	wait_until_asleep(atomic_load(&destroyer));
	return thread;
}

/* One thread waits in ncclCommDestroy for an op that does not end; another one aborts. */
static void two_ends(void)
{
	ncclComm_t comm = comm_new("two ends");
	pthread_t thread;

	NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclSum, comm, stream));
	thread = start_destroy(comm);
	NCCL(ncclCommAbort(comm));
	pthread_join(thread, NULL);
	CUDA(cudaStreamSynchronize(stream));
}

static void wait_for_flag(void *flag)
{
	while (!atomic_load((_Atomic int *)flag))
		usleep(1000);
}

/* A communicator with memory of the device ends while the device has other work. That work may need
 * another rank, which is in the same call: so the end must not wait for it. */
static void end_beside_work(void)
{
	ncclComm_t comm = comm_new("end beside work");
	_Atomic int is_set = 0;
	cudaStream_t other;

	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclProd, comm, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaLaunchHostFunc(other, wait_for_flag, &is_set));
	NCCL(ncclCommDestroy(comm));
	atomic_store(&is_set, 1);
	CUDA(cudaStreamSynchronize(other));
	CUDA(cudaStreamDestroy(other));
}

/* A graph is launched behind other work, and its communicator ends. Its ops run later, beside those
 * of the next communicator. */
static void end_beside_replay(void)
{
	enum { N_OPS = 100, LARGE = 1 << 16 };
	ncclComm_t comm = comm_new("end beside replay"), next;
	float want[2] = {1, 1}, values[2], *from[2], *to[2];
	_Atomic int is_set = 0;
	cudaGraphExec_t exec;
	cudaStream_t streams[2];
	cudaGraph_t graph;

	if (k > 1) /* the real library's communicator would have to live as long as the graph */
		return;
	for (int i = 0; i < 2; i++) {
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
		CUDA(cudaMalloc((void **)&from[i], LARGE * sizeof(float)));
		CUDA(cudaMalloc((void **)&to[i], LARGE * sizeof(float)));
		values[0] = (float)(i + 2);
		for (int j = 0; j < LARGE; j++)
			CUDA(cudaMemcpy(from[i] + j, values, sizeof(float),
					cudaMemcpyHostToDevice));
		for (int j = 0; j < n; j++)
			want[i] *= values[0];
	}
	CUDA(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < N_OPS; i++)
		NCCL(ncclAllReduce(from[0], to[0], LARGE, ncclFloat, ncclProd, comm, streams[0]));
	CUDA(cudaStreamEndCapture(streams[0], &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaLaunchHostFunc(streams[0], wait_for_flag, &is_set));
	CUDA(cudaGraphLaunch(exec, streams[0]));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	NCCL(ncclCommDestroy(comm));
	next = comm_new("beside a replay");
	atomic_store(&is_set, 1);
	for (int i = 0; i < N_OPS; i++)
		NCCL(ncclAllReduce(from[1], to[1], LARGE, ncclFloat, ncclProd, next, streams[1]));
	for (int i = 0; i < 2; i++)
		CUDA(cudaStreamSynchronize(streams[i]));
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < LARGE; j += LARGE - 1) {
			CUDA(cudaMemcpy(values, to[i] + j, sizeof(float), cudaMemcpyDeviceToHost));
			CHECK(values[0] == want[i], "element %d of the %s is %g, not %g", j,
			      i ? "next" : "replay", (double)values[0], (double)want[i]);
		}
		CUDA(cudaFree(from[i]));
		CUDA(cudaFree(to[i]));
		CUDA(cudaStreamDestroy(streams[i]));
	}
	NCCL(ncclCommDestroy(next));
}

/* One thread waits in ncclCommDestroy for an op that stands behind other work in its stream. The
 * communicator fails: then the thread waits no longer. */
static void failing_end(void)
{
	ncclComm_t comm = comm_new("failing end");
	_Atomic int is_set = 0;
	pthread_t thread;

	CUDA(cudaLaunchHostFunc(stream, wait_for_flag, &is_set));
	NCCL(ncclBroadcast(buf[0], buf[0], COUNT, ncclFloat, me, comm, stream));
	thread = start_destroy(comm);
	NCCL(ncclCommRevoke(comm, 0));
	pthread_join(thread, NULL);
	atomic_store(&is_set, 1);
	CUDA(cudaStreamSynchronize(stream));
}

/* What NCCL refuses before it does anything: the communicator goes on. */
static void refused(void)
{
	static const struct {
		const char *name;
		size_t offset;
		int value;
	} wrong[] = {
		{"blocking", offsetof(ncclConfig_t, blocking), 2},
		{"cgaClusterSize", offsetof(ncclConfig_t, cgaClusterSize), -1},
		{"minCTAs", offsetof(ncclConfig_t, minCTAs), 0},
		{"maxCTAs", offsetof(ncclConfig_t, maxCTAs), -3},
		{"splitShare", offsetof(ncclConfig_t, splitShare), 2},
	};
	ncclComm_t comm = comm_new("refused"), none = comm;
	ncclConfig_t config = {0}, order = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId id = id_of("never");

	NCCL_FAILS(ncclCommInitRankConfig(&none, n, id, me, &config), ncclInvalidArgument);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ncclConfig_t bad = NCCL_CONFIG_INITIALIZER;

		memcpy((char *)&bad + wrong[i].offset, &wrong[i].value, sizeof(int));
		NCCL_FAILS(ncclCommInitRankConfig(&none, n, id, me, &bad), ncclInvalidArgument);
		CHECK(strstr(ncclGetLastError(NULL), wrong[i].name), "%s: %s", wrong[i].name,
		      ncclGetLastError(NULL));
	}
	order.minCTAs = 9;
	order.maxCTAs = 4;
	NCCL_FAILS(ncclCommInitRankConfig(&none, n, id, me, &order), ncclInvalidArgument);
	NCCL_FAILS(ncclCommInitRankScalable(&none, n, me, n + 1, &id, NULL), ncclInvalidArgument);
	CHECK(!none, "a communicator came out of a wrong call");
	/* a send to oneself needs its receive in the same group */
	put(buf[1], 7);
	NCCL_FAILS(ncclSend(buf[1], COUNT, ncclFloat, me, comm, stream), ncclInvalidUsage);
	check_works(comm);
	NCCL_FAILS(ncclRecv(buf[1], COUNT, ncclFloat, me, comm, stream), ncclInvalidUsage);
	NCCL(ncclGroupStart());
	NCCL(ncclRecv(buf[2], COUNT, ncclFloat, me, comm, stream));
	NCCL(ncclSend(buf[1], COUNT, ncclFloat, me, comm, stream));
	NCCL(ncclGroupEnd());
	check("sent to oneself", buf[2], 7);
	check_works(comm);
	NCCL(ncclCommDestroy(comm));
}

int main(int argc, char **argv)
{
	static const struct part parts[] = {
		{"broken-group", broken_group},
		{"no-color", no_color},
		{"first-sum", first_sum},
		{"names", names},
		{"child", child},
		{"two-ends", two_ends},
		{"end-beside-work", end_beside_work},
		{"end-beside-replay", end_beside_replay},
		{"failing-end", failing_end},
		{"refused", refused},
		{NULL, NULL},
	};

	return run_parts(argc, argv, parts);
}
