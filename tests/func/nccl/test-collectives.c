/* Every collective against an obvious reference: 1 to 8 ranks as processes, over shared memory
 * and TCP, ring and tree, odd sizes, in place and out of place.
 *
 * Usage: test-collectives [ranks...] */
#include "harness.h"

#include <string.h>

enum { SIZES = 5 };
static const size_t sizes[SIZES] = {1, 7, 1000, 32771, 120001};

/* Small whole numbers: every sum is exact in float. */
static float value(int rank, size_t i)
{
	return (float)((rank * 31 + (int)(i % 1009) * 7) % 64 - 20);
}

struct env {
	struct rank *r;
	ncclComm_t comm;
	cudaStream_t stream;
	float *send, *recv;
	size_t n; /* elements of one rank's block */
	int root;
	bool in_place;
};

static void fill(float *buf, int rank, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf[i] = value(rank, i);
}

static void junk(float *buf, size_t n)
{
	memset(buf, 0x7f, n * sizeof(*buf));
}

static int differs(const struct env *e, const char *what, size_t i, float got, float want)
{
	fprintf(stderr, "%s: rank %d of %d, n %zu, root %d%s: element %zu is %g, not %g\n", what,
		e->r->rank, e->r->n, e->n, e->root, e->in_place ? ", in place" : "", i, (double)got,
		(double)want);
	return 1;
}

static float reduced(const struct env *e, ncclRedOp_t op, size_t i)
{
	float x = value(0, i);
	int k;

	for (k = 1; k < e->r->n; k++) {
		float y = value(k, i);

		x = op == ncclMax ? (x > y ? x : y) : op == ncclMin ? (x < y ? x : y) : x + y;
	}
	return x;
}

static int allreduce(struct env *e, ncclRedOp_t op)
{
	float *out = e->in_place ? e->send : e->recv;
	size_t i;

	fill(e->send, e->r->rank, e->n);
	junk(e->recv, e->n);
	NCCL(ncclAllReduce(e->send, out, e->n, ncclFloat, op, e->comm, e->stream));
	CUDA(cudaStreamSynchronize(e->stream));
	for (i = 0; i < e->n; i++) {
		if (out[i] != reduced(e, op, i))
			return differs(e, "AllReduce", i, out[i], reduced(e, op, i));
	}
	return 0;
}

static int reduce(struct env *e)
{
	bool is_root = e->r->rank == e->root;
	float *out = e->in_place ? e->send : is_root ? e->recv : NULL;
	size_t i;

	fill(e->send, e->r->rank, e->n);
	NCCL(ncclReduce(e->send, out, e->n, ncclFloat, ncclSum, e->root, e->comm, e->stream));
	CUDA(cudaStreamSynchronize(e->stream));
	for (i = 0; i < e->n && is_root; i++) {
		if (out[i] != reduced(e, ncclSum, i))
			return differs(e, "Reduce", i, out[i], reduced(e, ncclSum, i));
	}
	return 0;
}

static int broadcast(struct env *e)
{
	bool is_root = e->r->rank == e->root;
	float *out = e->in_place ? e->send : e->recv;
	size_t i;

	junk(e->recv, e->n);
	junk(e->send, e->n);
	if (is_root)
		fill(e->send, e->root, e->n);
	if (e->in_place)
		NCCL(ncclBcast(e->send, e->n, ncclFloat, e->root, e->comm, e->stream));
	else
		NCCL(ncclBroadcast(is_root ? e->send : NULL, e->recv, e->n, ncclFloat, e->root,
				   e->comm, e->stream));
	CUDA(cudaStreamSynchronize(e->stream));
	for (i = 0; i < e->n; i++) {
		if (out[i] != value(e->root, i))
			return differs(e, "Broadcast", i, out[i], value(e->root, i));
	}
	return 0;
}

static int allgather(struct env *e)
{
	float *mine = e->in_place ? e->recv + (size_t)e->r->rank * e->n : e->send;
	size_t i;

	junk(e->recv, e->n * (size_t)e->r->n);
	fill(mine, e->r->rank, e->n);
	NCCL(ncclAllGather(mine, e->recv, e->n, ncclFloat, e->comm, e->stream));
	CUDA(cudaStreamSynchronize(e->stream));
	for (i = 0; i < e->n * (size_t)e->r->n; i++) {
		float want = value((int)(i / e->n), i % e->n);

		if (e->recv[i] != want)
			return differs(e, "AllGather", i, e->recv[i], want);
	}
	return 0;
}

static int reducescatter(struct env *e)
{
	size_t off = (size_t)e->r->rank * e->n, i;
	float *out = e->in_place ? e->send + off : e->recv;

	fill(e->send, e->r->rank, e->n * (size_t)e->r->n);
	junk(e->recv, e->n);
	NCCL(ncclReduceScatter(e->send, out, e->n, ncclFloat, ncclSum, e->comm, e->stream));
	CUDA(cudaStreamSynchronize(e->stream));
	for (i = 0; i < e->n; i++) {
		if (out[i] != reduced(e, ncclSum, off + i))
			return differs(e, "ReduceScatter", i, out[i], reduced(e, ncclSum, off + i));
	}
	return 0;
}

static int alltoall(struct env *e)
{
	size_t i;

	fill(e->send, e->r->rank, e->n * (size_t)e->r->n);
	junk(e->recv, e->n * (size_t)e->r->n);
	NCCL(ncclAlltoAll(e->send, e->recv, e->n, ncclFloat, e->comm, e->stream));
	CUDA(cudaStreamSynchronize(e->stream));
	for (i = 0; i < e->n * (size_t)e->r->n; i++) {
		float want = value((int)(i / e->n), (size_t)e->r->rank * e->n + i % e->n);

		if (e->recv[i] != want)
			return differs(e, "AlltoAll", i, e->recv[i], want);
	}
	return 0;
}

static int gather_scatter(struct env *e)
{
	bool is_root = e->r->rank == e->root;
	size_t all = e->n * (size_t)e->r->n, i;

	fill(e->send, e->r->rank, e->n);
	junk(e->recv, all);
	NCCL(ncclGather(e->send, is_root ? e->recv : NULL, e->n, ncclFloat, e->root, e->comm,
			e->stream));
	CUDA(cudaStreamSynchronize(e->stream));
	for (i = 0; i < all && is_root; i++) {
		float want = value((int)(i / e->n), i % e->n);

		if (e->recv[i] != want)
			return differs(e, "Gather", i, e->recv[i], want);
	}
	fill(e->send, e->root, all);
	junk(e->recv, e->n);
	NCCL(ncclScatter(is_root ? e->send : NULL, e->recv, e->n, ncclFloat, e->root, e->comm,
			 e->stream));
	CUDA(cudaStreamSynchronize(e->stream));
	for (i = 0; i < e->n; i++) {
		float want = value(e->root, (size_t)e->r->rank * e->n + i);

		if (e->recv[i] != want)
			return differs(e, "Scatter", i, e->recv[i], want);
	}
	return 0;
}

static int all_ops(struct env *e)
{
	return allreduce(e, ncclSum) || allreduce(e, ncclMax) || allreduce(e, ncclMin) ||
	       reduce(e) || broadcast(e) || allgather(e) || reducescatter(e) || alltoall(e) ||
	       gather_scatter(e);
}

static int rank_main(struct rank *r)
{
	struct env e = {.r = r, .comm = make_comm(r, 0)};
	int s, failed = 0, count, rank, device;
	size_t most = sizes[SIZES - 1] * (size_t)r->n * sizeof(float);

	CUDA(cudaStreamCreate(&e.stream));
	CUDA(cudaMalloc((void **)&e.send, most));
	CUDA(cudaMalloc((void **)&e.recv, most));
	NCCL(ncclCommCount(e.comm, &count));
	NCCL(ncclCommUserRank(e.comm, &rank));
	NCCL(ncclCommCuDevice(e.comm, &device));
	CHECK(count == r->n && rank == r->rank && device == r->rank % 8);
	for (s = 0; s < SIZES && !failed; s++) {
		e.n = sizes[s];
		e.root = (s * 3 + 1) % r->n;
		e.in_place = false;
		failed = all_ops(&e);
		e.in_place = true;
		failed = failed || all_ops(&e);
	}
	NCCL(ncclCommFinalize(e.comm));
	NCCL(ncclCommDestroy(e.comm));
	CUDA(cudaFree(e.send));
	CUDA(cudaFree(e.recv));
	CUDA(cudaStreamDestroy(e.stream));
	return failed;
}

int main(int argc, char **argv)
{
	int i, failed = 0;

	for (i = 1; i < argc; i++)
		failed += run_ranks(atoi(argv[i]), rank_main, NULL, -1, 100);
	return failed ? 1 : 0;
}
