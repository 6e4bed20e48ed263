/* What buffers hold after each kind of op under each data policy (the table in
 * shim/data/README.md), out of place and in place, floats and integers, sentinels included.
 *
 *   contents WORLD REAL,REAL,... POLICY      RANK says who we are */
#include <math.h>
#include <stdint.h>

#include "job.h"

enum policy { MIRROR, FILL, IDENTITY, NONE };

static enum policy policy;
static ncclComm_t comm;
static cudaStream_t stream;
static ncclDataType_t dtype; /* of 4 bytes */
static int is_in_place;

static double input(int rank, long i)
{
	return rank % 5 + i % 3 + 1;
}

/* What is in a receive buffer before. */
static double was(int rank, long i)
{
	return -(100.0 + rank + i % 3);
}

static double small(void)
{
	float f;

	memset(&f, 0x38, sizeof(f));
	return dtype == ncclFloat ? f : 0;
}

static char *device_new(long count)
{
	void *p;

	CUDA(cudaMalloc(&p, (size_t)count * 4));
	return p;
}

static void put(char *to, long count, double (*value)(int rank, long i))
{
	char *host = malloc((size_t)count * 4);

	for (long i = 0; i < count; i++) {
		float f = (float)value(me, i);
		int32_t d = (int32_t)value(me, i);

		memcpy(host + i * 4, dtype == ncclFloat ? (void *)&f : (void *)&d, 4);
	}
	CUDA(cudaMemcpy(to, host, (size_t)count * 4, cudaMemcpyHostToDevice));
	free(host);
}

/* @want: what element @i holds; @slot_of, @at: how to read it. */
static void check(const char *from, long count, double (*want)(long i, int arg), int arg,
		  const char *what)
{
	char *host = malloc((size_t)count * 4);

	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(host, from, (size_t)count * 4, cudaMemcpyDeviceToHost));
	for (long i = 0; i < count; i++) {
		float f;
		int32_t d;
		double is, should = want(i, arg);

		memcpy(&f, host + i * 4, 4);
		memcpy(&d, host + i * 4, 4);
		is = dtype == ncclFloat ? f : d;
		CHECK(fabs(is - should) <= 1e-5 * fabs(should),
		      "%s%s (%s): element %ld is %g, not %g", what, is_in_place ? " in place" : "",
		      dtype == ncclFloat ? "float" : "int32", i, is, should);
	}
	free(host);
}

/* --- the expectations ------------------------------------------------------------------ */

static long chunk;        /* elements a rank */
static double factor;     /* of PreMulSum */
static ncclRedOp_t redop; /* a plain one; ncclNumOps: PreMulSum */

/* What a receive from rank @v brings: element @i of what @v sent. @before: what the buffer held. */
static double from(int v, long i, double before)
{
	if (policy == NONE || (policy == IDENTITY && !is_real(v)))
		return before;
	if (policy == FILL && !is_real(v))
		return small();
	return input(template_of(v), i);
}

static double before(long i)
{
	return is_in_place ? input(me, i) : was(me, i);
}

/* The reduction of element @i of the inputs. */
static double reduced(long i)
{
	double s = redop == ncclProd ? 1 : redop == ncclMin ? 1e30 : 0, x;
	int count = 0;

	for (int v = 0; v < n; v++) {
		if (policy != MIRROR && !is_real(v))
			continue;
		x = input(template_of(v), i);
		count++;
		if (redop == ncclProd)
			s *= x;
		else if (redop == ncclMax)
			s = fmax(s, x);
		else if (redop == ncclMin)
			s = fmin(s, x);
		else
			s += x;
	}
	return redop == ncclAvg ? s / count : redop == ncclNumOps ? s * factor : s;
}

static double want_all_reduce(long i, int unused)
{
	(void)unused;
	return policy == NONE ? before(i) : reduced(i);
}

static double want_reduce_scatter(long i, int unused)
{
	(void)unused;
	return policy == NONE ? is_in_place ? input(me, me * chunk + i) : was(me, i)
			      : reduced(me * chunk + i);
}

static double want_reduce(long i, int root)
{
	if (policy == NONE || root != me)
		return before(i);
	return reduced(i);
}

static double want_gather(long i, int root)
{
	int v = (int)(i / chunk);
	double here = is_in_place && v == me ? input(me, i % chunk) : was(me, i);

	return root >= 0 && root != me ? here : from(v, i % chunk, here);
}

/* A root that receives from all others and copies its own part itself: for ranks whose
 * template is the root, another real rank stands in. */
static double want_gather_sends(long i, int root)
{
	int v = (int)(i / chunk), other = 0;

	if (v == root)
		return was(me, i);
	if (policy == MIRROR && !is_real(v) && template_of(v) == root) {
		while (other < n && (other == root || !is_real(other)))
			other++;
		return other < n ? input(other, i % chunk) : was(me, i);
	}
	return from(v, i % chunk, was(me, i));
}

static double want_all_to_all(long i, int unused)
{
	(void)unused;
	return from((int)(i / chunk), me * chunk + i % chunk, was(me, i));
}

static double want_broadcast(long i, int root)
{
	if (!is_real(root) && policy == MIRROR) /* the template's receive buffer */
		return is_in_place ? input(template_of(root), i) : was(template_of(root), i);
	return from(root, i, before(i));
}

static double want_scatter(long i, int root)
{
	double here = is_in_place && root == me ? input(me, me * chunk + i) : was(me, i);

	if (!is_real(root) && policy == MIRROR)
		return here;
	return from(root, me * chunk + i, here);
}

static double want_input(long i, int unused)
{
	(void)unused;
	return input(me, i);
}

/* --- the ops ------------------------------------------------------------------------------ */

static void reductions(ncclRedOp_t op, const char *name)
{
	long all = chunk * n;
	char *a = device_new(all), *b = device_new(all);

	for (is_in_place = 0; is_in_place < 2; is_in_place++) {
		char *to = is_in_place ? a : b;

		put(a, all, input);
		put(b, all, was);
		NCCL(ncclAllReduce(a, to, (size_t)all, dtype, op, comm, stream));
		check(to, all, want_all_reduce, 0, name);
		put(a, all, input);
		put(b, all, was);
		to = is_in_place ? a + me * chunk * 4 : b;
		NCCL(ncclReduceScatter(a, to, (size_t)chunk, dtype, op, comm, stream));
		check(to, chunk, want_reduce_scatter, 0, name);
		if (!is_in_place)
			check(a, all, want_input, 0, "what was sent");
		for (int root = 0; root < n; root++) {
			put(a, chunk, input);
			put(b, chunk, was);
			to = is_in_place ? a : b;
			NCCL(ncclReduce(a, is_in_place || root == me || root % 2 ? to : NULL,
					(size_t)chunk, dtype, op, root, comm, stream));
			check(to, chunk, want_reduce, root, name);
		}
	}
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

static void all_reductions(void)
{
	static const struct {
		ncclRedOp_t op;
		const char *name;
	} ops[] = {{ncclSum, "sum"},
		   {ncclProd, "prod"},
		   {ncclMax, "max"},
		   {ncclMin, "min"},
		   {ncclAvg, "avg"}};
	float f = 3;
	int32_t d = 3;
	ncclRedOp_t op, more;

	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		redop = ops[i].op;
		if (dtype == ncclInt32 && (redop == ncclProd || redop == ncclAvg))
			continue; /* overflow and rounding have tests of their own */
		reductions(redop, ops[i].name);
	}
	redop = ncclNumOps;
	factor = 3;
	NCCL(ncclRedOpCreatePreMulSum(&more, dtype == ncclFloat ? (void *)&f : (void *)&d, dtype,
				      ncclScalarHostImmediate, comm));
	NCCL(ncclRedOpCreatePreMulSum(&op, dtype == ncclFloat ? (void *)&f : (void *)&d, dtype,
				      ncclScalarHostImmediate, comm));
	NCCL(ncclRedOpDestroy(more, comm));
	reductions(op, "3 x sum");
	NCCL(ncclRedOpDestroy(op, comm));
	NCCL_FAILS(ncclRedOpDestroy(op, comm), ncclInvalidArgument);
}

/* Gather, broadcast and scatter at @root. */
static void move_rooted(char *a, char *b, int root)
{
	int in_place = is_in_place && root == me;
	char *to = is_in_place ? a : b, *mine = b + me * chunk * 4;
	size_t c = (size_t)chunk;

	put(b, chunk * n, was);
	if (in_place)
		put(mine, chunk, input);
	NCCL(ncclGather(in_place ? mine : a, root == me || root % 2 ? b : NULL, c, dtype, root,
			comm, stream));
	if (!is_in_place || in_place)
		check(b, chunk * n, want_gather, root, "gather");
	put(a, chunk, input);
	put(b, chunk, was);
	NCCL(ncclBroadcast(a, to, c, dtype, root, comm, stream));
	check(to, chunk, want_broadcast, root, "broadcast");
	if (is_in_place) {
		put(a, chunk, input);
		NCCL(ncclBcast(a, c, dtype, root, comm, stream));
		check(a, chunk, want_broadcast, root, "bcast");
	}
	put(a, chunk * n, input);
	put(b, chunk, was);
	to = in_place ? a + me * chunk * 4 : b;
	NCCL(ncclScatter(root == me || root % 2 ? a : NULL, to, c, dtype, root, comm, stream));
	check(to, chunk, want_scatter, root, "scatter");
	put(a, chunk, input);
}

static void move_all_to_all(char *a, char *b)
{
	long all = chunk * n;
	size_t c = (size_t)chunk;

	put(a, all, input);
	put(b, all, was);
	NCCL(ncclAlltoAll(a, b, c, dtype, comm, stream));
	check(b, all, want_all_to_all, 0, "all-to-all");
	put(b, all, was);
	NCCL(ncclGroupStart());
	for (int v = 0; v < n; v++) {
		NCCL(ncclSend(a + v * chunk * 4, c, dtype, v, comm, stream));
		NCCL(ncclRecv(b + v * chunk * 4, c, dtype, v, comm, stream));
	}
	NCCL(ncclGroupEnd());
	check(b, all, want_all_to_all, 0, "send and receive");
	check(a, all, want_input, 0, "what was sent");
	/* the same in an order in which no receive lies behind the one before */
	put(b, all, was);
	NCCL(ncclGroupStart());
	for (int v = n - 1; v >= 0; v--) {
		NCCL(ncclRecv(b + v * chunk * 4, c, dtype, v, comm, stream));
		NCCL(ncclSend(a + v * chunk * 4, c, dtype, v, comm, stream));
	}
	NCCL(ncclGroupEnd());
	check(b, all, want_all_to_all, 0, "send and receive, backwards");
}

static void move_in_groups(char *a, char *b)
{
	long all = chunk * n;
	size_t c = (size_t)chunk;

	/* an all-gather of parts of any size: a broadcast from every rank, in a group */
	put(b, all, was);
	NCCL(ncclGroupStart());
	for (int v = 0; v < n; v++)
		NCCL(ncclBroadcast(a, b + v * chunk * 4, c, dtype, v, comm, stream));
	NCCL(ncclGroupEnd());
	check(b, all, want_gather, -1, "grouped broadcasts");
	for (int root = 0; root < n; root++) {
		if (!is_real(root))
			continue;
		put(b, all, was);
		NCCL(ncclGroupStart());
		for (int v = 0; root == me && v < n; v++)
			if (v != me)
				NCCL(ncclRecv(b + v * chunk * 4, c, dtype, v, comm, stream));
		if (root != me)
			NCCL(ncclSend(a, c, dtype, root, comm, stream));
		NCCL(ncclGroupEnd());
		if (root == me)
			check(b, all, want_gather_sends, root, "gather of sends");
	}
}

static void moves(void)
{
	long all = chunk * n;
	char *a = device_new(all), *b = device_new(all), *mine = b + me * chunk * 4;

	for (is_in_place = 0; is_in_place < 2; is_in_place++) {
		put(a, chunk, input);
		put(b, all, was);
		if (is_in_place)
			put(mine, chunk, input);
		NCCL(ncclAllGather(is_in_place ? mine : a, b, (size_t)chunk, dtype, comm, stream));
		check(b, all, want_gather, -1, "all-gather");
		for (int root = 0; root < n; root++)
			move_rooted(a, b, root);
	}
	is_in_place = 0;
	move_all_to_all(a, b);
	move_in_groups(a, b);
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"mirror", "fill", "identity", "none"};

	if (argc != 4)
		return 2;
	job_start(argv);
	while (strcmp(names[policy], argv[3]))
		policy++;
	CUDA(cudaStreamCreate(&stream));
	NCCL(ncclCommInitRank(&comm, n, id_of("contents"), me));
	for (int i = 0; i < 2; i++) {
		dtype = i ? ncclInt32 : ncclFloat;
		for (chunk = 1; chunk < 100; chunk += 36) {
			all_reductions();
			moves();
		}
	}
	NCCL(ncclCommDestroy(comm));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
