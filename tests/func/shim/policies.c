/* policies WORLD REAL,REAL: several data policies in one job. The world is tp=2, the rest
 * dp, and nboxd has
 *   --data-for allgather=identity --data-for dp=fill --data-for dp/broadcast=mirror
 *   --data-for reduce=fill --data-for tp/alltoall=none
 * A dp communicator has one real member: what it does with itself are copies, but for
 * scaled sums. */
#include "job.h"

static cudaStream_t s;
static float *in, *out, host[64];

static void put(float *dev, float value)
{
	for (int i = 0; i < 64; i++)
		host[i] = value;
	CUDA(cudaMemcpy(dev, host, sizeof(host), cudaMemcpyHostToDevice));
}

static void expect(const char *what, int i, float want)
{
	CUDA(cudaStreamSynchronize(s));
	CUDA(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
	CHECK(host[i] == want, "%s: element %d is %g, not %g", what, i, host[i], want);
}

static void world(ncclComm_t c)
{
	ncclRedOp_t twice;
	float two = 2;

	put(in, 1);
	put(out, -1);
	NCCL(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, c, s));
	expect("all-reduce", 0, (float)n);
	NCCL(ncclAllGather(in, out, 1, ncclFloat, c, s));
	expect("all-gather, real slot", real[0], 1);
	expect("all-gather, virtual slot", n - 1, -1);
	put(out, -1);
	NCCL(ncclReduce(in, out, 1, ncclFloat, ncclSum, real[0], c, s));
	expect("reduce", 0, me == real[0] ? (float)k : -1);
	NCCL(ncclRedOpCreatePreMulSum(&twice, &two, ncclFloat, ncclScalarHostImmediate, c));
	NCCL(ncclReduce(in, out, 1, ncclFloat, twice, real[0], c, s));
	expect("reduce of doubles", 0, me == real[0] ? (float)(2 * k) : -1);
	NCCL(ncclAllReduce(in, out, 1, ncclFloat, twice, c, s));
	expect("all-reduce of doubles", 0, (float)(2 * n));
	NCCL(ncclRedOpDestroy(twice, c));
}

/* We are its only real member. */
static void dp(ncclComm_t c)
{
	ncclRedOp_t twice;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	float two = 2;
	int size, rank;

	NCCL(ncclCommCount(c, &size));
	NCCL(ncclCommUserRank(c, &rank));
	CHECK(size == n / 2, "%d ranks", size);
	put(in, 3);
	put(out, -1);
	NCCL(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, c, s));
	expect("dp all-reduce", 0, 3);
	put(out, 5);
	NCCL(ncclBroadcast(in, out, 1, ncclFloat, rank ? 0 : 1, c, s)); /* virtual root, mirror */
	expect("dp broadcast", 0, 5);
	NCCL(ncclBroadcast(in, out, 1, ncclFloat, rank, c, s));
	expect("dp broadcast of ours", 0, 3);
	put(out, -1);
	NCCL(ncclAllGather(in, out, 1, ncclFloat, c, s)); /* dp=fill is more exact */
	expect("dp all-gather, real slot", rank, 3);
	CHECK(host[rank ? 0 : 1] > 0 && host[rank ? 0 : 1] < 1e-3f, "filled: %g",
	      host[rank ? 0 : 1]);
	NCCL(ncclReduceScatter(in, out, 1, ncclFloat, ncclMax, c, s));
	expect("dp reduce-scatter", 0, 3);
	put(out, -1);
	NCCL(ncclGroupStart());
	NCCL(ncclRecv(out, 1, ncclFloat, rank, c, s));
	NCCL(ncclSend(in, 1, ncclFloat, rank, c, s));
	NCCL(ncclGroupEnd());
	expect("dp to itself", 0, 3);
	/* the first thing that needs a real communicator, in a capture */
	CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	NCCL(ncclRedOpCreatePreMulSum(&twice, &two, ncclFloat, ncclScalarHostImmediate, c));
	NCCL(ncclAllReduce(in, out, 1, ncclFloat, twice, c, s));
	CUDA(cudaStreamEndCapture(s, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		put(out, -1);
		CUDA(cudaGraphLaunch(exec, s));
		expect("dp all-reduce of doubles, replayed", 0, 6);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	NCCL(ncclRedOpDestroy(twice, c));
}

static void tp(ncclComm_t c)
{
	put(in, 1);
	put(out, -1);
	NCCL(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, c, s));
	expect("tp all-reduce", 0, 2);
	put(out, -1);
	NCCL(ncclAlltoAll(in, out, 1, ncclFloat, c, s));
	expect("tp all-to-all", 0, -1);
}

int main(int argc, char **argv)
{
	ncclUniqueId id = {.internal = "policies"};
	ncclComm_t c, dp_comm, tp_comm;

	(void)argc;
	job_start(argv);
	CUDA(cudaStreamCreate(&s));
	CUDA(cudaMalloc((void **)&in, sizeof(host)));
	CUDA(cudaMalloc((void **)&out, sizeof(host)));
	NCCL(ncclCommInitRank(&c, n, id, me));
	NCCL(ncclCommSplit(c, me % 2, me, &dp_comm, NULL));
	NCCL(ncclCommInitRank(&tp_comm, 2, id_of("tp"), me));
	world(c);
	dp(dp_comm);
	tp(tp_comm);
	NCCL(ncclCommDestroy(tp_comm));
	NCCL(ncclCommDestroy(dp_comm));
	NCCL(ncclCommDestroy(c));
	return 0;
}
