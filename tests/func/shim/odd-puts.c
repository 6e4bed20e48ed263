/* One-sided calls as jobs make them less often, and wrong ones. odd.h has the command line.
 *
 * Parts: grouped, streams, captured, threads, nonblocking, refused, unwaited, empty, many, flood,
 * abort (the last one: it ends the job). */
#include <limits.h>
#include <stdint.h>
#include <sys/resource.h>

#include "odd.h"

#define ROUNDS 10
#define BYTES (COUNT * sizeof(float))

struct board {
	ncclComm_t comm;
	cudaStream_t stream;
	float *from, *window, *other; /* n x COUNT elements each */
	ncclWindow_t from_handle, handle, other_handle;
	int first; /* of its values */
};

static void board_fill(struct board *b)
{
	size_t bytes = (size_t)n * BYTES;

	CUDA(cudaStreamCreate(&b->stream));
	NCCL(ncclMemAlloc((void **)&b->from, bytes));
	NCCL(ncclMemAlloc((void **)&b->window, bytes));
	NCCL(ncclMemAlloc((void **)&b->other, bytes));
	/* in a group there is no window before its end */
	b->from_handle = b->handle = (ncclWindow_t)b;
	NCCL(ncclGroupStart());
	NCCL(ncclCommWindowRegister(b->comm, b->from, bytes, &b->from_handle,
				    NCCL_WIN_COLL_SYMMETRIC));
	NCCL(ncclCommWindowRegister(b->comm, b->window, bytes, &b->handle,
				    NCCL_WIN_COLL_SYMMETRIC));
	CHECK(!b->from_handle && !b->handle, "a handle in the group");
	NCCL(ncclGroupEnd());
	CHECK(b->from_handle && b->handle && b->from_handle != b->handle, "no handle behind it");
	NCCL(ncclCommWindowRegister(b->comm, b->other, bytes, &b->other_handle,
				    NCCL_WIN_COLL_SYMMETRIC));
}

static struct board board_new(const char *name)
{
	struct board b = {.comm = comm_new(name)};

	board_fill(&b);
	return b;
}

static void board_free(struct board *b)
{
	NCCL(ncclCommWindowDeregister(b->comm, b->from_handle));
	NCCL(ncclCommWindowDeregister(b->comm, b->handle)); /* the other one goes with @comm */
	NCCL(ncclCommDestroy(b->comm));
	NCCL(ncclMemFree(b->from));
	NCCL(ncclMemFree(b->window));
	NCCL(ncclMemFree(b->other));
	CUDA(cudaStreamDestroy(b->stream));
}

static int next(void)
{
	return (me + 1) % n;
}

static int previous(void)
{
	return (me + n - 1) % n;
}

static void wait_for(const struct board *b, int peer, int n_signals, cudaStream_t s)
{
	ncclWaitSignalDesc_t one = {.opCnt = n_signals, .peer = peer};

	NCCL(ncclWaitSignal(1, &one, b->comm, s));
}

/* To the same place of @window everywhere. */
static void put_into(const struct board *b, ncclWindow_t window, int peer, size_t count,
		     cudaStream_t s)
{
	NCCL(ncclPutSignal(b->from, count, ncclFloat, peer, window, 0, 0, 0, 0, b->comm, s));
}

static void put_next(const struct board *b, cudaStream_t s)
{
	put_into(b, b->handle, next(), COUNT, s);
}

/* Nobody reads any more what was put before. */
static void meet(const struct board *b, cudaStream_t s)
{
	ncclWaitSignalDesc_t *all = calloc((size_t)n, sizeof(*all));

	CHECK(all, "memory");
	NCCL(ncclGroupStart());
	for (int r = 0; r < n; r++) {
		NCCL(ncclSignal(r, 0, 0, 0, b->comm, s));
		all[r] = (ncclWaitSignalDesc_t){.opCnt = 1, .peer = r};
	}
	NCCL(ncclGroupEnd());
	NCCL(ncclWaitSignal(n, all, b->comm, s));
	free(all);
}

static void set_values(const struct board *b, int round)
{
	float values[COUNT];

	for (int i = 0; i < COUNT; i++)
		values[i] = (float)(b->first + me * ROUNDS + round);
	CUDA(cudaMemcpyAsync(b->from, values, BYTES, cudaMemcpyHostToDevice, b->stream));
	CUDA(cudaStreamSynchronize(b->stream));
}

/* What the previous rank has put, or where that is virtual this one. */
static void check_values(const struct board *b, const float *window, int round)
{
	int who = is_real(previous()) ? previous() : me;
	float values[COUNT];

	CUDA(cudaMemcpyAsync(values, window, BYTES, cudaMemcpyDeviceToHost, b->stream));
	CUDA(cudaStreamSynchronize(b->stream));
	for (int i = 0; i < COUNT; i++)
		CHECK(values[i] == (float)(b->first + who * ROUNDS + round),
		      "round %d: element %d is %g", round, i, (double)values[i]);
}

static void play(const struct board *b)
{
	for (int i = 0; i < ROUNDS; i++) {
		set_values(b, i);
		meet(b, b->stream);
		put_next(b, b->stream);
		wait_for(b, previous(), 1, b->stream);
		check_values(b, b->window, i);
	}
}

/* Puts and waits in one group. A put waits for nobody, also beside a wait: here its peer waits for
 * it behind a collective. */
static void grouped(void)
{
	struct board b = board_new("grouped");

	for (int i = 0; i < ROUNDS; i++) {
		set_values(&b, i);
		meet(&b, b.stream);
		NCCL(ncclGroupStart());
		put_next(&b, b.stream);
		wait_for(&b, previous(), 1, b.stream);
		NCCL(ncclGroupEnd());
		check_values(&b, b.window, i);
	}
	meet(&b, b.stream);
	if (k > 1 && me == real[0]) {
		NCCL(ncclGroupStart());
		NCCL(ncclSignal(real[1], 0, 0, 0, b.comm, b.stream));
		wait_for(&b, real[1], 1, b.stream);
		NCCL(ncclGroupEnd());
	} else if (k > 1 && me == real[1]) {
		NCCL(ncclSignal(real[0], 0, 0, 0, b.comm, b.stream));
	}
	NCCL(ncclAllReduce(b.from, b.from, COUNT, ncclFloat, ncclSum, b.comm, b.stream));
	if (k > 1 && me == real[1])
		wait_for(&b, real[0], 1, b.stream);
	CUDA(cudaStreamSynchronize(b.stream));
	board_free(&b);
}

static void streams(void)
{
	struct board b = board_new("streams");
	cudaStream_t two[2];

	CUDA(cudaStreamCreate(&two[0]));
	CUDA(cudaStreamCreate(&two[1]));
	for (int i = 0; i < ROUNDS; i++) {
		set_values(&b, i);
		meet(&b, two[i % 2]);
		NCCL(ncclGroupStart());
		put_next(&b, two[0]);
		NCCL(ncclSignal(next(), 0, 0, 0, b.comm, two[1]));
		NCCL(ncclGroupEnd());
		wait_for(&b, previous(), 1, two[1 - i % 2]);
		wait_for(&b, previous(), 1, b.stream);
		check_values(&b, b.window, i);
	}
	CUDA(cudaStreamDestroy(two[0]));
	CUDA(cudaStreamDestroy(two[1]));
	board_free(&b);
}

/* A graph with signals, waits and a put, and the same calls between its replays. */
static void captured(void)
{
	struct board b = board_new("captured");
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CUDA(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal));
	meet(&b, b.stream);
	put_next(&b, b.stream);
	wait_for(&b, previous(), 1, b.stream);
	CUDA(cudaStreamEndCapture(b.stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < ROUNDS; i++) {
		set_values(&b, i);
		CUDA(cudaGraphLaunch(exec, b.stream));
		check_values(&b, b.window, i);
		meet(&b, b.stream);
	}
	CUDA(cudaStreamSynchronize(b.stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	board_free(&b);
}

static void *play_in_thread(void *b)
{
	play(b);
	return NULL;
}

static void threads(void)
{
	struct board boards[3];
	pthread_t thread[3];

	for (int i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "thread %d", i);
		boards[i] = board_new(name);
		boards[i].first = 10000 * i;
	}
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, play_in_thread, &boards[i]) == 0, "thread");
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 3; i++)
		board_free(&boards[i]);
}

static void nonblocking(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct board b = {.comm = NULL};
	ncclResult_t r;

	config.blocking = 0;
	r = ncclCommInitRankConfig(&b.comm, n, id_of("nonblocking"), me, &config);
	CHECK(r == ncclSuccess || r == ncclInProgress, "result %d", (int)r);
	wait_until_ready(b.comm);
	board_fill(&b);
	play(&b);
	board_free(&b);
}

/* A wrong call says so, and changes nothing. */
static void refused(void)
{
	struct board b = board_new("refused"), other = board_new("other");
	ncclWaitSignalDesc_t d = {.opCnt = 1, .peer = me};
	ncclWindow_t handle = b.handle;
	float *plain;

	CUDA(cudaMalloc((void **)&plain, BYTES));
#define PUT(from, count, peer, window, at, signal)                                               \
	NCCL_FAILS(ncclPutSignal(from, count, ncclFloat, peer, window, at, signal, 0, 0, b.comm, \
				 b.stream),                                                      \
		   ncclInvalidArgument)
	PUT(b.from, COUNT, n, b.handle, 0, 0);
	PUT(b.from, COUNT, -1, b.handle, 0, 0);
	PUT(b.from, COUNT, me, NULL, 0, 0);
	PUT(b.from, COUNT, me, other.handle, 0, 0);
	PUT(b.from, COUNT, me, b.handle, (size_t)n * BYTES - 4, 0);
	PUT(b.from, COUNT, me, b.handle, SIZE_MAX - 3, 0);
	PUT(b.from, SIZE_MAX / 4 + 2, me, b.handle, 0, 0);
	PUT(b.from, COUNT, me, b.handle, 0, 1);
	PUT(NULL, COUNT, me, b.handle, 0, 0);
	PUT(plain, COUNT, me, b.handle, 0, 0); /* NCCL puts from symmetric windows only */
	PUT(b.from + 1, (size_t)n * COUNT, me, b.handle, 0, 0);
#undef PUT
	NCCL_FAILS(ncclSignal(n, 0, 0, 0, b.comm, b.stream), ncclInvalidArgument);
	NCCL_FAILS(ncclSignal(me, 0, 1, 0, b.comm, b.stream), ncclInvalidArgument);
	NCCL_FAILS(ncclWaitSignal(0, &d, b.comm, b.stream), ncclInvalidArgument);
	NCCL_FAILS(ncclWaitSignal(1, NULL, b.comm, b.stream), ncclInvalidArgument);
	NCCL_FAILS(ncclWaitSignal(1, &d, b.comm, b.stream), ncclInvalidUsage); /* never given */
	for (int i = 0; i < 4; i++) {
		const int counts[] = {0, -1, INT_MIN, INT_MAX};

		d.opCnt = counts[i];
		NCCL_FAILS(ncclWaitSignal(1, &d, b.comm, b.stream), ncclInvalidArgument);
	}
	NCCL(ncclGroupStart());
	put_next(&b, b.stream);
	NCCL_FAILS(ncclSignal(n, 0, 0, 0, b.comm, b.stream), ncclInvalidArgument);
	NCCL_FAILS(ncclGroupEnd(), ncclInvalidArgument);
	NCCL_FAILS(ncclCommWindowRegister(b.comm, plain, 0, &handle, 0), ncclInvalidArgument);
	NCCL_FAILS(ncclCommWindowRegister(b.comm, NULL, 8, &handle, 0), ncclInvalidArgument);
	NCCL_FAILS(ncclCommWindowDeregister(b.comm, other.handle), ncclInvalidArgument);
	NCCL(ncclCommWindowDeregister(b.comm, NULL));
	NCCL(ncclCommWindowDeregister(b.comm, b.other_handle));
	NCCL_FAILS(ncclCommWindowDeregister(b.comm, b.other_handle), ncclInvalidArgument);
	play(&b);
	CUDA(cudaFree(plain));
	board_free(&b);
	board_free(&other);
}

/* Nobody has to wait for what is put: a split, work and the end go on. */
static void unwaited(void)
{
	struct board b = board_new("unwaited");
	ncclComm_t part;

	for (int i = 0; i < ROUNDS; i++) {
		put_next(&b, b.stream);
		NCCL(ncclSignal(next(), 0, 0, 0, b.comm, b.stream));
	}
	NCCL(ncclCommSplit(b.comm, 0, me, &part, NULL));
	check_works(part);
	NCCL(ncclCommDestroy(part));
	NCCL(ncclAllReduce(b.other, b.other, COUNT, ncclFloat, ncclSum, b.comm, b.stream));
	CUDA(cudaStreamSynchronize(b.stream));
	board_free(&b);
}

/* Nothing is put but the signal; to oneself; into another window. */
static void empty(void)
{
	struct board b = board_new("empty");

	set_values(&b, 0);
	put_into(&b, b.handle, next(), 0, b.stream);
	wait_for(&b, previous(), 1, b.stream);
	put_into(&b, b.handle, me, COUNT, b.stream);
	wait_for(&b, me, 1, b.stream);
	put_into(&b, b.other_handle, next(), COUNT, b.stream);
	wait_for(&b, previous(), 1, b.stream);
	check_values(&b, b.other, 0);
	CUDA(cudaMemcpy(b.from, b.window, BYTES, cudaMemcpyDeviceToDevice));
	check("what was put to oneself", b.from, (float)(me * ROUNDS));
	board_free(&b);
}

/* One wait for ten thousand signals. */
static void many(void)
{
	struct board b = board_new("many");

	for (int i = 0; i < 20; i++) {
		NCCL(ncclGroupStart());
		for (int j = 0; j < 500; j++)
			NCCL(ncclSignal(next(), 0, 0, 0, b.comm, b.stream));
		NCCL(ncclGroupEnd());
	}
	wait_for(&b, previous(), 20 * 500, b.stream);
	CUDA(cudaStreamSynchronize(b.stream));
	board_free(&b);
}

/* What is put is not kept in memory until all of it has gone. */
static void flood(void)
{
	struct board b = board_new("flood");
	size_t count = (size_t)4 << 20;
	struct rusage usage;
	ncclWindow_t handle;
	float *window;

	NCCL(ncclMemAlloc((void **)&window, 2 * count * sizeof(float)));
	NCCL(ncclCommWindowRegister(b.comm, window, 2 * count * sizeof(float), &handle,
				    NCCL_WIN_COLL_SYMMETRIC));
	meet(&b, b.stream);
	for (int i = 0; i < 128; i++) /* 16 MiB each */
		NCCL(ncclPutSignal(window, count, ncclFloat, next(), handle, count * sizeof(float),
				   0, 0, 0, b.comm, b.stream));
	wait_for(&b, previous(), 128, b.stream);
	CUDA(cudaStreamSynchronize(b.stream));
	getrusage(RUSAGE_SELF, &usage);
	CHECK(usage.ru_maxrss < 800 << 10, "%ld MiB", usage.ru_maxrss >> 10);
	board_free(&b);
	NCCL(ncclMemFree(window));
}

/* One waits for what never comes until another one aborts. */
static void aborted(void)
{
	struct board b = board_new("abort");
	ncclResult_t state = ncclSuccess;
	char end;

	meet(&b, b.stream);
	CUDA(cudaStreamSynchronize(b.stream));
	if (me == real[0]) {
		wait_for(&b, real[1], 3, b.stream);
		while (state == ncclSuccess) {
			usleep(200);
			NCCL(ncclCommGetAsyncError(b.comm, &state));
		}
		CHECK(state == ncclRemoteError, "state %d", (int)state);
	} else {
		NCCL(ncclSignal(real[0], 0, 0, 0, b.comm, b.stream));
	}
	NCCL(ncclCommAbort(b.comm));
	CUDA(cudaStreamSynchronize(b.stream));
	puts("told");
	fflush(stdout);
	alarm(60);
	CHECK(read(0, &end, 1) == 0, "no end");
}

int main(int argc, char **argv)
{
	static const struct part parts[] = {
		{"grouped", grouped},   {"streams", streams}, {"captured", captured},
		{"threads", threads},   {"refused", refused}, {"nonblocking", nonblocking},
		{"unwaited", unwaited}, {"empty", empty},     {"many", many},
		{"flood", flood},       {"abort", aborted},   {NULL, NULL},
	};

	return run_parts(argc, argv, parts);
}
