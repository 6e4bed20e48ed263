/* Data types and operators, groups, sends and receives, streams, graphs, several
 * communicators, ranks as threads. Usage: test-ops NAME ranks... */
#include "harness.h"

#include <pthread.h>
#include <string.h>

#include "reduce/reduce.h"
#include "reduce/smallfloat.h"

/* --- types and operators ------------------------------------------------------------------------
 */

static size_t encode(ncclDataType_t t, int v, void *at)
{
	float f = (float)v;
	double d = v;
	uint16_t h;
	uint8_t q;
	int64_t i = v;

	switch (t) {
	case ncclFloat32:
		memcpy(at, &f, 4);
		break;
	case ncclFloat64:
		memcpy(at, &d, 8);
		break;
	case ncclFloat16:
		h = float_half(f);
		memcpy(at, &h, 2);
		break;
	case ncclBfloat16:
		h = float_bfloat(f);
		memcpy(at, &h, 2);
		break;
	case ncclFloat8e4m3:
		q = float_e4m3(f);
		memcpy(at, &q, 1);
		break;
	case ncclFloat8e5m2:
		q = float_e5m2(f);
		memcpy(at, &q, 1);
		break;
	case ncclInt8:
	case ncclUint8:
	case ncclInt32:
	case ncclUint32:
	case ncclInt64:
	case ncclUint64:
	case ncclNumTypes:
		memcpy(at, &i, coll_dtype_bytes(t));
		break;
	}
	return coll_dtype_bytes(t);
}

/* 0, 4, 8, 12: small enough for products in 8 bits of float, and so that an
 * average over 1, 2 or 4 ranks is whole */
static int value(int rank, size_t i, ncclRedOp_t op)
{
	return op == ncclProd ? 1 + (int)((i + (size_t)rank) % 2)
			      : (int)((i * 3 + (size_t)rank * 5) % 4) * 4;
}

static int want(int n, size_t i, ncclRedOp_t op)
{
	int x = value(0, i, op), k;

	for (k = 1; k < n; k++) {
		int y = value(k, i, op);

		x = op == ncclProd  ? x * y
		    : op == ncclMax ? (x > y ? x : y)
		    : op == ncclMin ? (x < y ? x : y)
				    : x + y;
	}
	return op == ncclAvg ? x / n : x;
}

enum { N = 3001 };

static int one_type(struct rank *r, ncclComm_t comm, cudaStream_t s, ncclDataType_t t,
		    ncclRedOp_t op)
{
	size_t bytes = coll_dtype_bytes(t), i;
	static char send[N * 8], recv[N * 8];
	char expect[8];

	for (i = 0; i < N; i++)
		encode(t, value(r->rank, i, op), send + i * bytes);
	NCCL(ncclAllReduce(send, recv, N, t, op, comm, s));
	CUDA(cudaStreamSynchronize(s));
	for (i = 0; i < N; i++) {
		encode(t, want(r->n, i, op), expect);
		if (memcmp(expect, recv + i * bytes, bytes)) {
			fprintf(stderr, "type %d op %d of %d: element %zu is not %d\n", (int)t,
				(int)op, r->n, i, want(r->n, i, op));
			return 1;
		}
	}
	return 0;
}

static int premul(struct rank *r, ncclComm_t comm, cudaStream_t s, ncclDataType_t t)
{
	size_t bytes = coll_dtype_bytes(t), i;
	static char send[N * 8], recv[N * 8], scalar[8];
	ncclRedOp_t op, other;
	char expect[8];
	int where;

	for (where = 0; where < 2; where++) {
		encode(t, 2, scalar);
		NCCL(ncclRedOpCreatePreMulSum(&other, scalar, t, ncclScalarHostImmediate, comm));
		NCCL(ncclRedOpCreatePreMulSum(&op, scalar, t,
					      where ? ncclScalarDevice : ncclScalarHostImmediate,
					      comm));
		CHECK(op != other);
		NCCL(ncclRedOpDestroy(other, comm));
		CHECK(ncclAllReduce(send, recv, N, t, other, comm, s) == ncclInvalidArgument);
		if (!where)
			memset(scalar, 0x55, sizeof(scalar)); /* was read already */
		for (i = 0; i < N; i++)
			encode(t, (int)((i + (size_t)r->rank) % 3), send + i * bytes);
		NCCL(ncclReduceScatter(send, recv, N / 4 / (size_t)r->n, t, op, comm, s));
		NCCL(ncclAllReduce(send, recv, N, t, op, comm, s));
		NCCL(ncclRedOpDestroy(op, comm));
		CUDA(cudaStreamSynchronize(s));
		for (i = 0; i < N; i++) {
			int sum = 0, k;

			for (k = 0; k < r->n; k++)
				sum += 2 * (int)((i + (size_t)k) % 3);
			encode(t, sum, expect);
			CHECK(!memcmp(expect, recv + i * bytes, bytes));
		}
	}
	return 0;
}

/* A reduction may be destroyed before its group ends, and the next one have its number. */
static int premul_in_group(struct rank *r, ncclComm_t comm, cudaStream_t s)
{
	float one = 1, sums[3] = {0}, scalar;

	NCCL(ncclGroupStart());
	for (int i = 0; i < 3; i++) {
		ncclRedOp_t op;

		scalar = (float)(i + 2);
		NCCL(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate,
					      comm));
		NCCL(ncclAllReduce(&one, &sums[i], 1, ncclFloat, op, comm, s));
		NCCL(ncclRedOpDestroy(op, comm));
	}
	NCCL(ncclGroupEnd());
	CUDA(cudaStreamSynchronize(s));
	for (int i = 0; i < 3; i++)
		CHECK(sums[i] == (float)((i + 2) * r->n));
	return 0;
}

static int types(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0);
	cudaStream_t s;
	int t, op;

	CUDA(cudaStreamCreate(&s));
	for (t = 0; t < ncclNumTypes; t++) {
		for (op = 0; op < ncclNumOps; op++) {
			if (one_type(r, comm, s, (ncclDataType_t)t, (ncclRedOp_t)op))
				return 1;
		}
		if (premul(r, comm, s, (ncclDataType_t)t))
			return 1;
	}
	CHECK(!premul_in_group(r, comm, s));
	NCCL(ncclCommDestroy(comm));
	CUDA(cudaStreamDestroy(s));
	return 0;
}

/* --- sends and receives
 * ------------------------------------------------------------------------------ */

static size_t amount(int from, int to)
{
	return (size_t)((from * 7 + to * 13) % 5) * 40000 + (size_t)((from + to) % 3); /* often 0 */
}

static int item(int from, int to, size_t i)
{
	return from * 1000003 + to * 10007 + (int)i;
}

/* All to all with uneven blocks, zero ones and the own one. */
static int alltoallv(struct rank *r, ncclComm_t comm, cudaStream_t *s)
{
	int *out[8], *in[8], k, round;
	size_t i;

	for (k = 0; k < r->n; k++) {
		out[k] = malloc((amount(r->rank, k) + 1) * sizeof(int));
		in[k] = calloc(amount(k, r->rank) + 1, sizeof(int));
		for (i = 0; i < amount(r->rank, k); i++)
			out[k][i] = item(r->rank, k, i);
	}
	for (round = 0; round < 3; round++) {
		NCCL(ncclGroupStart());
		for (k = 0; k < r->n; k++) {
			NCCL(ncclSend(out[k], amount(r->rank, k), ncclInt, k, comm, s[k & 1]));
			NCCL(ncclGroupStart());
			NCCL(ncclRecv(in[k], amount(k, r->rank), ncclInt, k, comm, s[0]));
			NCCL(ncclGroupEnd());
		}
		NCCL(ncclGroupEnd());
	}
	CUDA(cudaStreamSynchronize(s[0]));
	CUDA(cudaStreamSynchronize(s[1]));
	for (k = 0; k < r->n; k++) {
		for (i = 0; i < amount(k, r->rank); i++)
			CHECK(in[k][i] == item(k, r->rank, i));
		CHECK(in[k][i] == 0);
		free(out[k]);
		free(in[k]);
	}
	return 0;
}

/* Calls meet in order, whatever groups they are in. */
static int grouped_differently(struct rank *r, ncclComm_t comm, cudaStream_t s)
{
	enum { CALLS = 9, M = 30000 };
	static int buf[CALLS][M];
	int k, i;

	if (r->n < 2 || r->rank > 1)
		return 0;
	for (k = 0; k < CALLS; k++) {
		for (i = 0; i < M; i++)
			buf[k][i] = r->rank ? 0 : k * M + i;
	}
	if (!r->rank)
		NCCL(ncclGroupStart());
	for (k = 0; k < CALLS; k++) {
		if (r->rank)
			NCCL(ncclRecv(buf[k], M, ncclInt, 0, comm, s));
		else
			NCCL(ncclSend(buf[k], M, ncclInt, 1, comm, s));
	}
	if (!r->rank)
		NCCL(ncclGroupEnd());
	CUDA(cudaStreamSynchronize(s));
	for (k = 0; k < CALLS; k++) {
		for (i = 0; i < M; i++)
			CHECK(buf[k][i] == k * M + i);
	}
	return 0;
}

static int sendrecv(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0);
	cudaStream_t s[2];
	int x = r->rank, y = -1;

	CUDA(cudaStreamCreate(&s[0]));
	CUDA(cudaStreamCreate(&s[1]));
	if (alltoallv(r, comm, s) || grouped_differently(r, comm, s[0]))
		return 1;
	/* a ring without a group of its own: rank 0 receives last */
	if (r->n > 1) {
		if (r->rank)
			NCCL(ncclRecv(&y, 1, ncclInt, r->rank - 1, comm, s[0]));
		NCCL(ncclSend(&x, 1, ncclInt, (r->rank + 1) % r->n, comm, s[0]));
		if (!r->rank)
			NCCL(ncclRecv(&y, 1, ncclInt, r->n - 1, comm, s[0]));
		CUDA(cudaStreamSynchronize(s[0]));
		CHECK(y == (r->rank + r->n - 1) % r->n);
	}
	/* what cannot be */
	CHECK(ncclSend(&x, 1, ncclInt, r->n, comm, s[0]) == ncclInvalidArgument);
	CHECK(ncclSend(NULL, 1, ncclInt, 0, comm, s[0]) == ncclInvalidArgument);
	NCCL(ncclGroupStart());
	CHECK(ncclSend(&x, 1, ncclInt, -1, comm, s[0]) == ncclInvalidArgument);
	CHECK(ncclGroupEnd() == ncclInvalidArgument);
	CHECK(ncclGroupEnd() == ncclInvalidUsage);
	NCCL(ncclCommDestroy(comm));
	CUDA(cudaStreamDestroy(s[0]));
	CUDA(cudaStreamDestroy(s[1]));
	return 0;
}

/* --- streams, graphs, several communicators
 * --------------------------------------------------------- */

static int graph(struct rank *r)
{
	ncclComm_t comm = make_comm(r, 0);
	float *x, *y, *z;
	cudaStream_t s, side;
	cudaEvent_t fork, join;
	cudaGraph_t g;
	cudaGraphExec_t exec;
	int k, next = (r->rank + 1) % r->n, prev = (r->rank + r->n - 1) % r->n;

	CUDA(cudaMalloc((void **)&x, 1000 * sizeof(float)));
	CUDA(cudaMalloc((void **)&y, 1000 * sizeof(float)));
	CUDA(cudaMalloc((void **)&z, 1000 * sizeof(float)));
	CUDA(cudaStreamCreate(&s));
	CUDA(cudaStreamCreate(&side));
	CUDA(cudaEventCreate(&fork));
	CUDA(cudaEventCreate(&join));
	x[999] = (float)(r->rank + 1);
	NCCL(ncclAllReduce(x, y, 1000, ncclFloat, ncclSum, comm, s)); /* before the capture */
	CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	NCCL(ncclAllReduce(x, y, 1000, ncclFloat, ncclSum, comm, s));
	CUDA(cudaEventRecord(fork, s));
	CUDA(cudaStreamWaitEvent(side, fork, 0));
	NCCL(ncclGroupStart());
	NCCL(ncclSend(y, 1000, ncclFloat, next, comm, side));
	NCCL(ncclRecv(z, 1000, ncclFloat, prev, comm, side));
	NCCL(ncclGroupEnd());
	CUDA(cudaEventRecord(join, side));
	CUDA(cudaStreamWaitEvent(s, join, 0));
	CUDA(cudaStreamEndCapture(s, &g));
	CUDA(cudaGraphInstantiate(&exec, g, 0));
	CUDA(cudaGraphDestroy(g));
	CUDA(cudaStreamSynchronize(s));
	for (k = 0; k < 5; k++) {
		x[999] = (float)(r->rank + 1 + k);
		CUDA(cudaGraphLaunch(exec, s));
		if (k == 2) /* between two replays */
			NCCL(ncclAllReduce(x, y, 7, ncclFloat, ncclSum, comm, s));
		CUDA(cudaStreamSynchronize(s));
		CHECK(z[999] == (float)(r->n * (r->n + 1) / 2 + k * r->n));
	}
	NCCL(ncclCommDestroy(comm));
	CUDA(cudaGraphExecDestroy(exec)); /* after the communicator: frees the ops */
	CUDA(cudaEventDestroy(fork));
	CUDA(cudaEventDestroy(join));
	CUDA(cudaStreamDestroy(s));
	CUDA(cudaStreamDestroy(side));
	CUDA(cudaFree(x));
	CUDA(cudaFree(y));
	CUDA(cudaFree(z));
	return 0;
}

/* Two communicators whose ops are launched in opposite orders: only if both make
 * progress at once does this end. And one communicator on two streams. */
static int two(struct rank *r)
{
	enum { M = 200000 };
	ncclComm_t comm[2] = {make_comm(r, 0), make_comm(r, 1)};
	static float x[2][M];
	cudaStream_t s[2];
	int k, round;
	size_t i;

	CUDA(cudaStreamCreateWithFlags(&s[0], cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&s[1], cudaStreamNonBlocking));
	for (round = 0; round < 10; round++) {
		for (i = 0; i < M; i++)
			x[0][i] = x[1][i] = (float)(r->rank + round);
		for (k = 0; k < 2; k++) {
			int c = (k + r->rank) & 1;

			NCCL(ncclAllReduce(x[c], x[c], M, ncclFloat, ncclSum, comm[c], s[c]));
		}
		for (k = 0; k < 2; k++) {
			CUDA(cudaStreamSynchronize(s[k]));
			for (i = 0; i < M; i++)
				CHECK(x[k][i] == (float)(r->n * (r->n - 1) / 2 + r->n * round));
		}
	}
	/* each op needs the one before it, on the other stream */
	for (i = 0; i < M; i++)
		x[0][i] = 1;
	for (k = 0; k < 6; k++)
		NCCL(ncclAllReduce(x[0], x[0], M, ncclFloat, ncclSum, comm[0], s[k & 1]));
	CUDA(cudaStreamSynchronize(s[0]));
	CUDA(cudaStreamSynchronize(s[1]));
	for (k = 0, i = 1; k < 6; k++)
		i *= (size_t)r->n;
	CHECK(x[0][0] == (float)i && x[0][M - 1] == (float)i);
	/* several of both in one group */
	NCCL(ncclGroupStart());
	for (k = 0; k < 4; k++)
		NCCL(ncclBcast(x[k & 1], M, ncclFloat, k % r->n, comm[k & 1], s[k & 1]));
	NCCL(ncclGroupEnd());
	CUDA(cudaDeviceSynchronize());
	for (k = 0; k < 2; k++) {
		NCCL(ncclCommDestroy(comm[k]));
		CUDA(cudaStreamDestroy(s[k]));
	}
	return 0;
}

/* --- ranks in one process
 * ------------------------------------------------------------------------------ */

struct thread {
	pthread_t id;
	ncclComm_t comm;
	int rank, n, result;
};

static int thread_body(struct thread *t)
{
	static float in[8][4096], out[8][4096];
	cudaStream_t s;
	int k;

	CUDA(cudaSetDevice(t->rank));
	CUDA(cudaStreamCreate(&s));
	for (k = 0; k < 20; k++) {
		in[t->rank][4095] = (float)(t->rank * k);
		NCCL(ncclAllReduce(in[t->rank], out[t->rank], 4096, ncclFloat, ncclSum, t->comm,
				   s));
		CUDA(cudaStreamSynchronize(s));
		CHECK(out[t->rank][4095] == (float)(k * t->n * (t->n - 1) / 2));
	}
	CUDA(cudaStreamDestroy(s));
	return 0;
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	t->result = thread_body(t);
	return NULL;
}

static int threads(int n)
{
	static float in[8][1000], out[8][1000];
	struct thread t[8];
	ncclComm_t comms[8];
	cudaStream_t s[8];
	int k;

	NCCL(ncclCommInitAll(comms, n, NULL));
	for (k = 0; k < n; k++) {
		t[k] = (struct thread){.comm = comms[k], .rank = k, .n = n};
		CHECK(!pthread_create(&t[k].id, NULL, thread_main, &t[k]));
	}
	for (k = 0; k < n; k++) {
		pthread_join(t[k].id, NULL);
		CHECK(!t[k].result);
	}
	/* one thread drives all of them */
	for (k = 0; k < n; k++) {
		CUDA(cudaSetDevice(k));
		CUDA(cudaStreamCreate(&s[k]));
		in[k][0] = in[k][999] = (float)k;
	}
	NCCL(ncclGroupStart());
	for (k = 0; k < n; k++)
		NCCL(ncclAllReduce(in[k], out[k], 1000, ncclFloat, ncclMax, comms[k], s[k]));
	NCCL(ncclGroupEnd());
	for (k = 0; k < n; k++) {
		CUDA(cudaStreamSynchronize(s[k]));
		CHECK(out[k][0] == (float)(n - 1) && out[k][999] == (float)(n - 1));
	}
	for (k = 0; k < n; k++) {
		CUDA(cudaStreamDestroy(s[k]));
		NCCL(ncclCommDestroy(comms[k]));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		rank_fn fn;
	} cases[] = {{"types", types}, {"sendrecv", sendrecv}, {"graph", graph}, {"two", two}};
	int i, failed = argc < 3;
	size_t k;

	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[1], "threads"))
			failed += threads(atoi(argv[i]));
		for (k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
			if (!strcmp(argv[1], cases[k].name))
				failed += run_ranks(atoi(argv[i]), cases[k].fn, NULL, -1, 100);
		}
	}
	return failed ? 1 : 0;
}
