/* Less usual calls of collectives, groups, reductions and graphs, and what easily goes wrong behind
 * them. odd.h has the command line.
 *
 * Parts: context (where libcuda.so.1 is that of tests/driver), streams, grouped-streams, scratch,
 * empty, long-group, uneven, opposite (policy none), never-early (with ops of 20 ms), simulate,
 * redops, captured-redop, replay. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>

#include "odd.h"

/* Where the device of a communicator is selected already, the shim must not select it again: that
 * would replace a context of the job's own by the device's primary one. */
static void context(void)
{
	_Atomic int *selections = dlsym(RTLD_DEFAULT, "as_driver_selections");
	ncclComm_t comm;
	int before;

	CHECK(selections, "the driver does not count");
	CUDA(cudaSetDevice(0));
	before = atomic_load(selections);
	comm = comm_new("context");
	for (int i = 0; i < 3; i++)
		check_works(comm);
	NCCL(ncclCommDestroy(comm));
	CHECK(atomic_load(selections) == before, "the context was selected %d times",
	      atomic_load(selections) - before);
}

static void set_late(void *flag)
{
	usleep(100000);
	atomic_store((_Atomic int *)flag, 1);
}

/* Calls on one communicator keep their order, whatever streams they are on. */
static void streams(void)
{
	ncclComm_t comm = comm_new("streams");
	_Atomic int is_set = 0;
	cudaStream_t other;

	check_works(comm);
	CUDA(cudaStreamCreate(&other));
	for (int i = 0; i < 2; i++) { /* from @stream to @other, and back */
		cudaStream_t first = i ? other : stream, second = i ? stream : other;

		atomic_store(&is_set, 0);
		CUDA(cudaLaunchHostFunc(first, set_late, &is_set));
		NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclMax, comm, first));
		NCCL(ncclAllReduce(buf[1], buf[1], COUNT, ncclFloat, ncclMax, comm, second));
		CUDA(cudaStreamSynchronize(second));
		CHECK(atomic_load(&is_set),
		      "the second call did not wait for the first one's stream");
		CUDA(cudaStreamSynchronize(first));
	}
	CUDA(cudaStreamDestroy(other));
	NCCL(ncclCommDestroy(comm));
}

/* Sums in two streams in one group, while the one of @late is late with its ones. */
static void sum_in_two_streams(ncclComm_t comm, cudaStream_t other, int late)
{
	cudaStream_t last = late ? other : stream;
	float ones[COUNT], sum[COUNT];
	_Atomic int is_set = 0;

	for (int i = 0; i < COUNT; i++)
		ones[i] = 1;
	put(buf[!late], 1);
	put(buf[late], 0);
	CUDA(cudaLaunchHostFunc(last, set_late, &is_set));
	CUDA(cudaMemcpyAsync(buf[late], ones, sizeof(ones), cudaMemcpyHostToDevice, last));
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclSum, comm, stream));
	NCCL(ncclAllReduce(buf[1], buf[1], COUNT, ncclFloat, ncclSum, comm, other));
	NCCL(ncclGroupEnd());
	CUDA(cudaMemcpyAsync(sum, buf[1], sizeof(sum), cudaMemcpyDeviceToHost, other));
	CUDA(cudaStreamSynchronize(other));
	for (int i = 0; i < COUNT; i++)
		CHECK(sum[i] == (float)n, "element %d is %g", i, (double)sum[i]);
	check("the first call", buf[0], (float)n);
}

/* Calls of one group on several streams: its work begins when all streams are there, and all of
 * them wait for it. */
static void grouped_streams(void)
{
	ncclComm_t comm = comm_new("grouped streams");
	cudaStream_t other;

	CUDA(cudaStreamCreate(&other));
	sum_in_two_streams(comm, other, 1);
	sum_in_two_streams(comm, other, 0);
	CUDA(cudaStreamDestroy(other));
	NCCL(ncclCommDestroy(comm));
}

/* Calls of one group that need scratch memory get parts of their own: products, and all-gathers of
 * real ranks that are not next to each other. */
static void scratch(void)
{
	ncclComm_t comm = comm_new("scratch");
	float *all[2], values[4], two = 1, minus = 1;

	for (int i = 0; i < n; i++) {
		two *= 2;
		minus *= -1;
	}
	put(buf[0], 2);
	put(buf[1], -1);
	put(buf[2], (float)me);
	for (int i = 0; i < 2; i++)
		CUDA(cudaMalloc((void **)&all[i], (size_t)n * sizeof(float)));
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclProd, comm, stream));
	NCCL(ncclAllReduce(buf[1], buf[1], COUNT, ncclFloat, ncclProd, comm, stream));
	NCCL(ncclAllGather(buf[2], all[0], 1, ncclFloat, comm, stream));
	NCCL(ncclAllGather(buf[2], all[1], 1, ncclFloat, comm, stream));
	NCCL(ncclGroupEnd());
	check("two, to the power of the ranks", buf[0], two);
	check("minus one, likewise", buf[1], minus);
	for (int i = 0; i < 2; i++)
		for (int v = 0; v < n; v++) {
			CUDA(cudaMemcpyAsync(values, all[i] + v, sizeof(float),
					     cudaMemcpyDeviceToHost, stream));
			CUDA(cudaStreamSynchronize(stream));
			CHECK(values[0] == (float)template_of(v), "slot %d has %g", v,
			      (double)values[0]);
		}
	for (int i = 0; i < 2; i++)
		CUDA(cudaFree(all[i]));
	NCCL(ncclCommDestroy(comm));
}

/* A collective of nothing is no op: one rank may call it and another one not. Sends and receives of
 * nothing are ops, and have their other end. */
static void empty(void)
{
	ncclComm_t comm = comm_new("empty");

	put(buf[1], 3);
	NCCL(ncclGroupStart());
	for (int i = 0; me == real[0] && i < 2; i++) {
		NCCL(ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, comm, stream));
		NCCL(ncclReduceScatter(NULL, NULL, 0, ncclFloat, ncclSum, comm, stream));
		NCCL(ncclAllGather(NULL, NULL, 0, ncclFloat, comm, stream));
		NCCL(ncclReduce(buf[1], buf[1], 0, ncclFloat, ncclMax, me, comm, stream));
		NCCL(ncclBroadcast(buf[1], buf[1], 0, ncclInt, me, comm, stream));
		NCCL(ncclBcast(buf[1], 0, ncclInt, me, comm, stream));
		NCCL(ncclAlltoAll(buf[1], buf[1], 0, ncclInt, comm, stream));
		NCCL(ncclGather(buf[1], buf[1], 0, ncclInt, me, comm, stream));
		NCCL(ncclScatter(buf[1], buf[1], 0, ncclInt, me, comm, stream));
		if (i) /* inside the group and outside of it */
			break;
		NCCL(ncclGroupEnd());
		NCCL(ncclGroupStart());
	}
	NCCL(ncclGroupEnd());
	NCCL_FAILS(ncclAllReduce(buf[1], buf[1], 0, (ncclDataType_t)99, ncclSum, comm, stream),
		   ncclInvalidArgument);
	NCCL_FAILS(ncclBroadcast(buf[1], buf[1], 0, ncclInt, n, comm, stream), ncclInvalidArgument);
	check_works(comm);
	if (k > 1) {
		NCCL(ncclGroupStart());
		if (me == real[0])
			NCCL(ncclSend(buf[1], 0, ncclFloat, real[1], comm, stream));
		if (me == real[1])
			NCCL(ncclRecv(buf[1], 0, ncclFloat, real[0], comm, stream));
		NCCL(ncclGroupEnd());
		check_works(comm);
	}
	check("of nothing", buf[1], 3);
	NCCL(ncclCommDestroy(comm));
}

/* As many collectives in a group as there is memory for. */
static void long_group(void)
{
	ncclComm_t comm = comm_new("long group");

	put(buf[0], 1);
	put(buf[1], 0);
	for (int g = 0; g < 2; g++) { /* the second time with the first one's records */
		NCCL(ncclGroupStart());
		for (int i = 0; i < 5000; i++)
			NCCL(ncclAllReduce(buf[0], buf[1] + i % COUNT, 1, ncclFloat, ncclSum, comm,
					   stream));
		NCCL(ncclGroupEnd());
		check("a long group", buf[1], (float)n);
		put(buf[1], 0);
	}
	check_works(comm);
	NCCL(ncclCommDestroy(comm));
}

/* An all-gather of parts that differ in size, as PyTorch makes it of a list of tensors: a group of
 * broadcasts, one from each rank. Under policy mirror a part has what its root's template sends in
 * this group when that is of the same size. */
static void uneven(void)
{
	ncclComm_t comm = comm_new("uneven");
	float *all, *values = malloc((size_t)n * 2 * sizeof(*values));

	CUDA(cudaMalloc((void **)&all, (size_t)n * 2 * sizeof(*all)));
	put(buf[0], (float)me + 1);
	CUDA(cudaMemsetAsync(all, 0, (size_t)n * 2 * sizeof(*all), stream));
	NCCL(ncclGroupStart());
	for (int v = 0; v < n; v++) /* odd ranks have two elements */
		NCCL(ncclBroadcast(v == me ? buf[0] : NULL, all + 2 * v, 1 + (size_t)(v & 1),
				   ncclFloat, v, comm, stream));
	NCCL(ncclGroupEnd());
	CUDA(cudaMemcpyAsync(values, all, (size_t)n * 2 * sizeof(*all), cudaMemcpyDeviceToHost,
			     stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int v = 0; v < n; v++) {
		float want = (v & 1) == (template_of(v) & 1) ? (float)template_of(v) + 1 : 0;

		CHECK(values[2 * v] == want, "rank %d's part has %g, not %g", v,
		      (double)values[2 * v], (double)want);
		CHECK(values[2 * v + 1] == (v & 1 ? want : 0), "rank %d's second element is %g", v,
		      (double)values[2 * v + 1]);
	}
	check_works(comm);
	free(values);
	CUDA(cudaFree(all));
	NCCL(ncclCommDestroy(comm));
}

/* Two ranks that have two independent streams get to the ops of two communicators in different
 * orders: an op that waits holds up its own stream and nothing else, whatever the driver does with
 * the host functions of streams. */
static void opposite(void)
{
	ncclComm_t comms[2] = {comm_new("one"), comm_new("the other")};
	cudaStream_t streams[2];

	for (int i = 0; i < 2; i++)
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	for (int round = 0; round < 3; round++) {
		for (int j = 0; j < 2; j++) {
			int i = me == real[0] ? j : 1 - j;

			NCCL(ncclAllReduce(buf[i], buf[i], COUNT, ncclFloat, ncclSum, comms[i],
					   streams[i]));
			NCCL(ncclAllReduce(buf[i], buf[i], COUNT, ncclFloat, ncclProd, comms[i],
					   streams[i]));
			usleep(50000); /* the first op waits by then, as a rule */
		}
		for (int i = 0; i < 2; i++)
			CUDA(cudaStreamSynchronize(streams[i]));
	}
	for (int i = 0; i < 2; i++) {
		NCCL(ncclCommDestroy(comms[i]));
		CUDA(cudaStreamDestroy(streams[i]));
	}
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return 1e3 * (double)ts.tv_sec + 1e-6 * (double)ts.tv_nsec;
}

/* No op is over before its time. */
static void never_early(void)
{
	ncclComm_t comm = comm_new("never early");
	double start, took;

	for (int i = 0; i < 20; i++) {
		start = now_ms();
		NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclSum, comm, stream));
		CUDA(cudaStreamSynchronize(stream));
		took = now_ms() - start;
		CHECK(took >= 20, "an op of 20 ms took %.3f", took);
	}
	NCCL(ncclCommDestroy(comm));
}

/* A refused estimate ends its group all the same, and nothing of the group is done. */
static void simulate(void)
{
	ncclComm_t comm = comm_new("simulate"), other = comm;

	put(buf[0], 1);
	NCCL(ncclGroupStart());
	NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, ncclSum, comm, stream));
	NCCL_FAILS(ncclGroupSimulateEnd(NULL), ncclInvalidUsage);
	NCCL_FAILS(ncclGroupEnd(), ncclInvalidUsage);
	check("after an estimate", buf[0], 1);
	NCCL(ncclGroupStart());
	NCCL(ncclCommInitRank(&other, n, id_of("never"), me));
	NCCL_FAILS(ncclGroupSimulateEnd(NULL), ncclInvalidUsage);
	CHECK(!other, "a communicator came out of an estimate");
	check_works(comm);
	NCCL(ncclCommDestroy(comm));
}

/* A reduction may be destroyed once the call that uses it is made, also inside a group
 * (PyTorch does): the group's end still reduces by it. */
static void redops(void)
{
	ncclComm_t comm = comm_new("redops");
	float two = 2, three = 3, five = 5, *at;
	ncclRedOp_t op;

	CUDA(cudaMalloc((void **)&at, sizeof(*at)));
	CUDA(cudaMemcpy(at, &five, sizeof(five), cudaMemcpyHostToDevice));
	for (int i = 0; i < 2; i++) { /* the second time in places that are used again */
		for (int j = 0; j < 3; j++)
			put(buf[j], 1);
		NCCL(ncclGroupStart());
		NCCL(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, comm));
		NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, op, comm, stream));
		NCCL(ncclRedOpDestroy(op, comm));
		NCCL_FAILS(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, op, comm, stream),
			   ncclInvalidArgument);
		NCCL_FAILS(ncclGroupEnd(), ncclInvalidArgument);
		check("in a group that failed", buf[0], 1);

		NCCL(ncclGroupStart());
		NCCL(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, comm));
		NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, op, comm, stream));
		NCCL(ncclRedOpDestroy(op, comm));
		NCCL(ncclRedOpCreatePreMulSum(&op, &three, ncclFloat, ncclScalarHostImmediate,
					      comm));
		NCCL(ncclAllReduce(buf[1], buf[1], COUNT, ncclFloat, op, comm, stream));
		NCCL(ncclRedOpDestroy(op, comm));
		NCCL(ncclRedOpCreatePreMulSum(&op, at, ncclFloat, ncclScalarDevice, comm));
		NCCL(ncclAllReduce(buf[2], buf[2], COUNT, ncclFloat, op, comm, stream));
		NCCL(ncclRedOpDestroy(op, comm));
		NCCL_FAILS(ncclRedOpDestroy(op, comm), ncclInvalidArgument);
		NCCL(ncclGroupEnd());
		check("two", buf[0], 2 * (float)n);
		check("three", buf[1], 3 * (float)n);
		check("five, on the device", buf[2], 5 * (float)n);
	}
	CUDA(cudaFree(at));
	NCCL(ncclCommDestroy(comm));
}

/* The job destroys a reduction after its capture and makes another one in its place. The graph
 * still uses the old scalar. */
static void captured_redop(void)
{
	ncclComm_t comm = comm_new("captured redop");
	float five = 5, three = 3, six = 6, *at;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	ncclRedOp_t op;

	CUDA(cudaMalloc((void **)&at, sizeof(*at)));
	CUDA(cudaMemcpy(at, &five, sizeof(five), cudaMemcpyHostToDevice));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	NCCL(ncclRedOpCreatePreMulSum(&op, at, ncclFloat, ncclScalarDevice, comm));
	NCCL(ncclAllReduce(buf[0], buf[0], COUNT, ncclFloat, op, comm, stream));
	NCCL(ncclRedOpDestroy(op, comm));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		NCCL(ncclRedOpCreatePreMulSum(&op, &three, ncclFloat, ncclScalarHostImmediate,
					      comm));
		put(buf[1], 1);
		NCCL(ncclAllReduce(buf[1], buf[1], COUNT, ncclFloat, op, comm, stream));
		NCCL(ncclRedOpDestroy(op, comm));
		check("three", buf[1], 3 * (float)n);
		CUDA(cudaMemcpy(at, i ? &six : &five, sizeof(five), cudaMemcpyHostToDevice));
		put(buf[0], 1);
		CUDA(cudaGraphLaunch(exec, stream));
		check("a replay", buf[0], (i ? 6 : 5) * (float)n);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(at));
	NCCL(ncclCommDestroy(comm));
}

/* A graph is replayed after its communicator was destroyed: wrong, but nothing hangs. */
static void replay(void)
{
	ncclComm_t comm = comm_new("replay"), other = comm_new("replay other");
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	check_works(comm);
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	NCCL(ncclBroadcast(buf[0], buf[0], COUNT, ncclFloat, real[0], comm, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	check_works(other); /* nobody is in @comm any more */
	NCCL(ncclCommDestroy(comm));
	if (k == 1) { /* the real library keeps no such promise */
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
	}
	check_works(other);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	NCCL(ncclCommDestroy(other));
}

int main(int argc, char **argv)
{
	static const struct part parts[] = {
		{"context", context},
		{"streams", streams},
		{"grouped-streams", grouped_streams},
		{"scratch", scratch},
		{"empty", empty},
		{"long-group", long_group},
		{"uneven", uneven},
		{"opposite", opposite},
		{"never-early", never_early},
		{"simulate", simulate},
		{"redops", redops},
		{"captured-redop", captured_redop},
		{"replay", replay},
		{NULL, NULL},
	};

	return run_parts(argc, argv, parts);
}
