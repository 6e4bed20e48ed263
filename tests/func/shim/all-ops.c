/* A job that knows nothing of nbox: every collective on a world of which only some
 * ranks have a process, with values that can be checked under policy `mirror`: rank v's input is
 * that of its template (template_of() in job.h).
 *
 *   all-ops WORLD REAL,REAL,... [part ...]      RANK says who we are */
#include <math.h>

#include "job.h"

static ncclComm_t comm;
static cudaStream_t stream, other;

/* Small whole numbers: sums over 512 ranks stay exact in fp32. */
static double input(int rank, long i)
{
	return (template_of(rank) + 1) % 61 + i % 7 + 1;
}

static double sum(long i)
{
	double s = 0;

	for (int v = 0; v < n; v++)
		s += input(v, i);
	return s;
}

static float *device_new(size_t count)
{
	void *p;

	CUDA(cudaMalloc(&p, (count ? count : 1) * sizeof(float)));
	return p;
}

static void put(float *to, long count, int rank)
{
	float *host = malloc((size_t)(count + 1) * sizeof(float));

	for (long i = 0; i < count; i++)
		host[i] = (float)input(rank, i);
	CUDA(cudaMemcpy(to, host, (size_t)count * sizeof(float), cudaMemcpyHostToDevice));
	free(host);
}

static float *get(const float *from, long count)
{
	float *host = malloc((size_t)(count + 1) * sizeof(float));

	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(host, from, (size_t)count * sizeof(float), cudaMemcpyDeviceToHost));
	return host;
}

static void check_sum(const float *dev, long count, double factor, const char *what)
{
	float *host = get(dev, count);

	for (long i = 0; i < count; i++)
		CHECK(fabs(host[i] - factor * sum(i)) <= 1e-6 * factor * sum(i),
		      "%s: element %ld is %g, not %g", what, i, host[i], factor * sum(i));
	free(host);
}

static void all_reduce(long count)
{
	float *a = device_new((size_t)count), *b = device_new((size_t)count), *host;
	ncclRedOp_t op;
	float two = 2, *dev_two = device_new(1);
	double *d = malloc((size_t)count * sizeof(double)), want;
	void *dd;

	put(a, count, me);
	NCCL(ncclAllReduce(a, b, (size_t)count, ncclFloat, ncclSum, comm, stream));
	check_sum(b, count, 1, "sum");
	NCCL(ncclAllReduce(a, b, (size_t)count, ncclFloat, ncclAvg, comm, stream));
	check_sum(b, count, 1.0 / n, "avg");
	NCCL(ncclAllReduce(a, b, (size_t)count, ncclFloat, ncclMax, comm, stream));
	host = get(b, count);
	want = 0;
	for (int v = 0; v < n; v++)
		want = fmax(want, input(v, 0));
	CHECK(count == 0 || host[0] == want, "max %g not %g", host[0], want);
	free(host);
	NCCL(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, comm));
	NCCL(ncclAllReduce(a, b, (size_t)count, ncclFloat, op, comm, stream));
	check_sum(b, count, 2, "2 x sum");
	NCCL(ncclRedOpDestroy(op, comm));
	CUDA(cudaMemcpy(dev_two, &two, sizeof(two), cudaMemcpyHostToDevice));
	NCCL(ncclRedOpCreatePreMulSum(&op, dev_two, ncclFloat, ncclScalarDevice, comm));
	NCCL(ncclAllReduce(a, b, (size_t)count, ncclFloat, op, comm, stream));
	check_sum(b, count, 2, "2 x sum, scalar on the device");
	NCCL(ncclRedOpDestroy(op, comm));
	NCCL(ncclAllReduce(a, a, (size_t)count, ncclFloat, ncclSum, comm, stream));
	check_sum(a, count, 1, "in place");

	for (long i = 0; i < count; i++)
		d[i] = i % 2 ? 1 : me == real[0] ? 2 : 1;
	CUDA(cudaMalloc(&dd, (size_t)count * sizeof(double) + 1));
	CUDA(cudaMemcpy(dd, d, (size_t)count * sizeof(double), cudaMemcpyHostToDevice));
	NCCL(ncclAllReduce(dd, dd, (size_t)count, ncclDouble, ncclProd, comm, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(d, dd, (size_t)count * sizeof(double), cudaMemcpyDeviceToHost));
	want = 1;
	for (int v = 0; v < n; v++)
		want *= template_of(v) == real[0] ? 2 : 1;
	for (long i = 0; i < count; i++)
		CHECK(d[i] == (i % 2 ? 1 : want), "product %ld is %g not %g", i, d[i], want);
	free(d);
	CUDA(cudaFree(dd));
	CUDA(cudaFree(dev_two));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

/* Slot v of a gathered buffer: the template's chunk. */
static void check_slots(const float *dev, long count, int chunked, const char *what)
{
	float *host = get(dev, count * n);

	for (int v = 0; v < n; v++)
		for (long i = 0; i < count; i++)
			CHECK(host[v * count + i] == (float)input(v, chunked ? me * count + i : i),
			      "%s: slot %d element %ld is %g, not %g", what, v, i,
			      host[v * count + i], input(v, chunked ? me * count + i : i));
	free(host);
}

static void gathers(long count)
{
	size_t c = (size_t)count, all = c * (size_t)n;
	float *a = device_new(all), *b = device_new(all), *host;
	int roots[3] = {real[0], real[k - 1], 0};

	put(a, count, me);
	NCCL(ncclAllGather(a, b, c, ncclFloat, comm, stream));
	check_slots(b, count, 0, "all-gather");
	put(b + (size_t)me * c, count, me);
	NCCL(ncclAllGather(b + (size_t)me * c, b, c, ncclFloat, comm, stream));
	check_slots(b, count, 0, "all-gather in place");

	put(a, (long)all, me);
	NCCL(ncclReduceScatter(a, b, c, ncclFloat, ncclSum, comm, stream));
	host = get(b, count);
	for (long i = 0; i < count; i++)
		CHECK(host[i] == (float)sum(me * count + i), "reduce-scatter: %ld is %g", i,
		      host[i]);
	free(host);
	NCCL(ncclReduceScatter(a, a + (size_t)me * c, c, ncclFloat, ncclSum, comm, stream));
	host = get(a + (size_t)me * c, count);
	for (long i = 0; i < count; i++)
		CHECK(host[i] == (float)sum(me * count + i), "in place: %ld is %g", i, host[i]);
	free(host);

	put(a, (long)all, me);
	CUDA(cudaMemset(b, 0, all * sizeof(float)));
	NCCL(ncclAlltoAll(a, b, c, ncclFloat, comm, stream));
	check_slots(b, count, 1, "all-to-all");

	while (roots[2] < n && is_real(roots[2]))
		roots[2]++; /* a virtual one, if there is one */
	for (int i = 0; i < 3; i++) {
		int root = roots[i];

		if (root == n)
			continue;
		put(a, count, me);
		put(b, count, me);
		NCCL(ncclBroadcast(a, b, c, ncclFloat, root, comm, stream));
		host = get(b, count);
		for (long j = 0; j < count; j++)
			CHECK(host[j] == (float)input(root, j), "broadcast from %d: %g", root,
			      host[j]);
		free(host);
		put(b, count, me);
		NCCL(ncclBcast(b, c, ncclFloat, root, comm, stream));
		NCCL(ncclReduce(a, b, c, ncclFloat, ncclSum, root, comm, stream));
		if (me == root)
			check_sum(b, count, 1, "reduce");
		CUDA(cudaMemset(b, 0, all * sizeof(float)));
		NCCL(ncclGather(a, b, c, ncclFloat, root, comm, stream));
		if (me == root)
			check_slots(b, count, 0, "gather");
		put(a, (long)all, me);
		put(b, count, me);
		NCCL(ncclScatter(a, b, c, ncclFloat, root, comm, stream));
		host = get(b, count);
		for (long j = 0; j < count; j++)
			CHECK(host[j] == (float)(is_real(root) ? input(root, me * count + j)
							       : input(me, j)),
			      "scatter from %d: %g", root, host[j]);
		free(host);
	}
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

/* The all-to-all of frameworks: a send and a receive for each rank, ourselves and empty
 * ones included. */
static void send_recv(long count)
{
	size_t c = (size_t)count, all = c * (size_t)n;
	float *a = device_new(all), *b = device_new(all), *host;
	int right = (me + 1) % n, left = (me + n - 1) % n;

	put(a, (long)all, me);
	CUDA(cudaMemset(b, 0, all * sizeof(float)));
	NCCL(ncclGroupStart());
	NCCL(ncclGroupStart());
	for (int v = 0; v < n; v++) {
		NCCL(ncclSend(a + (size_t)v * c, c, ncclFloat, v, comm, stream));
		NCCL(ncclRecv(b + (size_t)v * c, c, ncclFloat, v, comm, stream));
		NCCL(ncclSend(a, 0, ncclFloat, v, comm, stream));
		NCCL(ncclRecv(b, 0, ncclFloat, v, comm, stream));
	}
	NCCL(ncclGroupEnd());
	NCCL(ncclGroupEnd());
	check_slots(b, count, 1, "send/recv");

	/* A ring: with one real rank what comes from the left is what went right. */
	put(a, count, me);
	CUDA(cudaMemset(b, 0, c * sizeof(float)));
	NCCL(ncclGroupStart());
	NCCL(ncclSend(a, c, ncclFloat, right, comm, stream));
	NCCL(ncclRecv(b, c, ncclFloat, left, comm, stream));
	NCCL(ncclGroupEnd());
	host = get(b, count);
	if (is_real(left) || k == 1)
		for (long i = 0; i < count; i++)
			CHECK(host[i] == (float)input(left, i), "ring: %g", host[i]);
	free(host);
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

/* Several collectives of two communicators and two streams in one group; then one
 * communicator on changing streams. */
static void groups(long count)
{
	size_t c = (size_t)count;
	float *a = device_new(c), *b = device_new(c), *d = device_new(c), *e = device_new(c);
	ncclComm_t half, none, same;
	int size, rank;

	NCCL(ncclCommSplit(comm, 0, me, &same, NULL));
	NCCL(ncclCommCount(same, &size));
	NCCL(ncclCommUserRank(same, &rank));
	CHECK(size == n && rank == me, "split by one color: %d of %d", rank, size);
	NCCL(ncclCommSplit(comm, template_of(me) % 2, me, &half, NULL));
	NCCL(ncclCommCount(half, &size));
	CHECK(size >= 1 && size <= n, "split in two: %d", size);
	NCCL(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, me, &none, NULL));
	CHECK(none == NULL, "a split without color gave a communicator");
	put(a, count, me);
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(a, b, c, ncclFloat, ncclSum, comm, stream));
	NCCL(ncclAllReduce(a, d, c, ncclFloat, ncclAvg, comm, other));
	NCCL(ncclAllReduce(a, e, c, ncclFloat, ncclSum, same, other));
	NCCL(ncclGroupEnd());
	CUDA(cudaStreamSynchronize(other));
	check_sum(b, count, 1, "in a group");
	check_sum(d, count, 1.0 / n, "in a group, other stream");
	check_sum(e, count, 1, "in a group, other communicator");
	put(a, count, me);
	for (int i = 0; i < 10; i++) { /* max of equal values: idempotent but ordered */
		NCCL(ncclAllReduce(i ? b : a, b, c, ncclFloat, i ? ncclMax : ncclSum, comm,
				   i % 2 ? other : stream));
	}
	CUDA(cudaStreamSynchronize(other));
	check_sum(b, count, 1, "changing streams");
	NCCL(ncclCommDestroy(half));
	NCCL(ncclCommFinalize(same));
	NCCL(ncclCommDestroy(same));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaFree(d));
	CUDA(cudaFree(e));
}

static void capture(long count)
{
	size_t c = (size_t)count;
	float *a = device_new(c), *b = device_new(c);
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	put(a, count, me);
	NCCL(ncclAllReduce(a, b, c, ncclFloat, ncclSum, comm, stream)); /* warm */
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	NCCL(ncclAllReduce(a, b, c, ncclFloat, ncclSum, comm, stream));
	NCCL(ncclAllReduce(b, b, c, ncclFloat, ncclMax, comm, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 100; i++) {
		CUDA(cudaMemsetAsync(b, 0, c * sizeof(float), stream));
		CUDA(cudaGraphLaunch(exec, stream));
		if (i % 25 == 0)
			check_sum(b, count, 1, "replay");
	}
	check_sum(b, count, 1, "last replay");
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

static void nonblocking(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId id;
	ncclComm_t c = NULL;
	ncclResult_t r, state;
	float *a = device_new(8);

	memset(&id, 0, sizeof(id));
	memcpy(id.internal, "second", 6);
	config.blocking = 0;
	r = ncclCommInitRankConfig(&c, n, id, me, &config);
	CHECK(r == ncclSuccess || r == ncclInProgress, "init says %d", (int)r);
	do
		NCCL(ncclCommGetAsyncError(c, &state));
	while (state == ncclInProgress);
	CHECK(state == ncclSuccess, "state %d", (int)state);
	put(a, 8, me);
	NCCL(ncclAllReduce(a, a, 8, ncclFloat, ncclSum, c, stream));
	check_sum(a, 8, 1, "non-blocking");
	NCCL(ncclCommDestroy(c));
	CUDA(cudaFree(a));
}

static void errors(void)
{
	float *a = device_new(8);
	int value;

	CHECK(ncclAllReduce(a, a, 8, (ncclDataType_t)99, ncclSum, comm, stream) ==
		      ncclInvalidArgument,
	      "type");
	CHECK(ncclAllReduce(a, a, 8, ncclFloat, (ncclRedOp_t)77, comm, stream) ==
		      ncclInvalidArgument,
	      "op");
	CHECK(ncclBroadcast(a, a, 8, ncclFloat, n, comm, stream) == ncclInvalidArgument, "root");
	CHECK(ncclSend(a, 8, ncclFloat, -1, comm, stream) == ncclInvalidArgument, "peer");
	CHECK(ncclAllReduce(NULL, a, 8, ncclFloat, ncclSum, comm, stream) == ncclInvalidArgument,
	      "NULL");
	CHECK(ncclGroupEnd() == ncclInvalidUsage, "end without start");
	CHECK(*ncclGetLastError(comm), "no sentence");
	NCCL(ncclGroupStart());
	CHECK(ncclSend(a, 8, ncclFloat, n, comm, stream) == ncclInvalidArgument, "peer");
	CHECK(ncclGroupEnd() == ncclInvalidArgument, "the group does not know");
	NCCL(ncclCommCuDevice(comm, &value));
	CUDA(cudaFree(a));
}

static int wanted(int argc, char **argv, const char *part)
{
	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], part))
			return 1;
	return argc == 3;
}

int main(int argc, char **argv)
{
	ncclUniqueId id;
	int value;

	if (argc < 3)
		return 2;
	job_start(argv);
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamCreate(&other));
	NCCL(ncclGetUniqueId(&id));
	memset(&id, 0, sizeof(id));
	memcpy(id.internal, "first", 5);
	NCCL(ncclCommInitRank(&comm, n, id, me));
	NCCL(ncclCommCount(comm, &value));
	CHECK(value == n, "count %d", value);
	NCCL(ncclCommUserRank(comm, &value));
	CHECK(value == me, "rank %d", value);
	if (wanted(argc, argv, "allreduce")) {
		all_reduce(1000);
		all_reduce(0);
		all_reduce(1);
	}
	if (wanted(argc, argv, "gathers"))
		gathers(n > 100 ? 3 : 300);
	if (wanted(argc, argv, "sendrecv"))
		send_recv(n > 100 ? 3 : 300);
	if (wanted(argc, argv, "groups"))
		groups(500);
	if (wanted(argc, argv, "capture"))
		capture(200);
	if (wanted(argc, argv, "nonblocking"))
		nonblocking();
	if (wanted(argc, argv, "errors"))
		errors();
	CUDA(cudaStreamSynchronize(stream));
	NCCL(ncclCommFinalize(comm));
	NCCL(ncclCommDestroy(comm));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaStreamDestroy(other));
	return 0;
}
