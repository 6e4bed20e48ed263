/* The steps that use communicators, and the check of what they give.
 *
 * In a communicator of the whole world each rank has values of its own, and a virtual rank those
 * of its template. In a communicator whose members are not known here all ranks have the same
 * values, so that sums and slots are known nevertheless. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak.h"

enum kind {
	ALLREDUCE_SUM,
	ALLREDUCE_AVG,
	ALLREDUCE_MAX,
	REDUCE,
	REDUCE_SCATTER,
	ALLGATHER,
	ALLTOALL,
	BROADCAST,
	GATHER,
	SCATTER,
	N_KINDS,
};

static const char *const kind_names[N_KINDS] = {
	"all-reduce sum", "all-reduce avg", "all-reduce max", "reduce", "reduce-scatter",
	"all-gather",     "all-to-all",     "broadcast",      "gather", "scatter",
};

/* One collective that was drawn, in a slot. */
struct use {
	enum kind kind;
	const struct comm *c;
	uint32_t count; /* of one rank's piece */
	int root;
	uint32_t salt;
	float factor; /* of the sum, by a user's reduction */
	struct slot *slot;
};

static float value(const struct comm *c, int v, uint32_t salt, uint64_t i)
{
	int who = c->is_world ? template_of(v) : 0;

	return (float)((uint64_t)who % 13 + i % 7 + salt % 5 + 1);
}

static double sum_of(const struct comm *c, uint32_t salt, uint64_t i)
{
	double s = 0;

	if (!c->is_world)
		return (double)c->n * value(c, 0, salt, i);
	for (int v = 0; v < c->n; v++)
		s += value(c, v, salt, i);
	return s;
}

static double max_of(const struct comm *c, uint32_t salt, uint64_t i)
{
	double most = 0;

	for (int v = 0; v < (c->is_world ? c->n : 1); v++)
		most = fmax(most, value(c, v, salt, i));
	return most;
}

static bool is_real(int v)
{
	return template_of(v) == v;
}

/* --- memory ----------------------------------------------------------------------------------- */

static void put(struct lane *l, float *to, const struct use *u, uint32_t count, cudaStream_t stream)
{
	float *host = u->slot->host;

	for (uint32_t i = 0; i < count; i++)
		host[i] = value(u->c, u->c->rank, u->salt, i);
	CUDA(l, cudaMemcpyAsync(to, host, count * sizeof(float), cudaMemcpyHostToDevice, stream));
	CUDA(l, cudaStreamSynchronize(stream));
}

static void check(struct lane *l, const struct use *u, uint32_t i, double want)
{
	double have = u->slot->host[i];
	ncclResult_t state = ncclSuccess;

	if (fabs(have - want) <= 1e-4 * fabs(want))
		return;
	ncclCommGetAsyncError(u->c->handle, &state);
	DIE(l,
	    "%s of %u in communicator %u (rank %d of %d, root %d): element %u is %g, not %g; the communicator "
	    "says %s (%s)",
	    kind_names[u->kind], u->count, u->c->serial, u->c->rank, u->c->n, u->root, i, have,
	    want, ncclGetErrorString(state), ncclGetLastError(u->c->handle));
}

/* --- one collective
 * ------------------------------------------------------------------------------- */

static bool is_wide(enum kind k)
{
	return k == REDUCE_SCATTER || k == ALLGATHER || k == ALLTOALL || k == GATHER ||
	       k == SCATTER;
}

static struct use draw(struct lane *l, const struct comm *c, struct slot *slot)
{
	struct use u = {.c = c, .slot = slot, .factor = 1};
	uint32_t most = SLOT_FLOATS;

	u.kind = (enum kind)rng_below(&l->plan, N_KINDS);
	u.salt = rng_below(&l->plan, 1000);
	u.root = (int)rng_below(&l->plan, (uint32_t)c->n);
	most /= is_wide(u.kind) ? (uint32_t)c->n : 1;
	u.count =
		1 + rng_below(&l->plan, rng_below(&l->plan, 4) ? (most < 500 ? most : 500) : most);
	return u;
}

static void prepare(struct lane *l, const struct use *u, cudaStream_t stream)
{
	uint32_t wide = u->count * (is_wide(u->kind) ? (uint32_t)u->c->n : 1);

	put(l, u->slot->send, u, wide, stream);
	put(l, u->slot->recv, u, u->count, stream);
}

static ncclResult_t call(struct lane *l, const struct use *u, ncclRedOp_t op, cudaStream_t stream)
{
	const float *a = u->slot->send;
	float *b = u->slot->recv;
	ncclComm_t h = u->c->handle;
	size_t n = u->count;

	switch (u->kind) {
	case ALLREDUCE_SUM:
		return WATCHED(l, ncclAllReduce(a, b, n, ncclFloat, op, h, stream));
	case ALLREDUCE_AVG:
		return WATCHED(l, ncclAllReduce(a, b, n, ncclFloat, ncclAvg, h, stream));
	case ALLREDUCE_MAX:
		return WATCHED(l, ncclAllReduce(a, b, n, ncclFloat, ncclMax, h, stream));
	case REDUCE:
		return WATCHED(l, ncclReduce(a, b, n, ncclFloat, ncclSum, u->root, h, stream));
	case REDUCE_SCATTER:
		return WATCHED(l, ncclReduceScatter(a, b, n, ncclFloat, ncclSum, h, stream));
	case ALLGATHER:
		return WATCHED(l, ncclAllGather(a, b, n, ncclFloat, h, stream));
	case ALLTOALL:
		return WATCHED(l, ncclAlltoAll(a, b, n, ncclFloat, h, stream));
	case BROADCAST:
		return WATCHED(l, ncclBroadcast(a, b, n, ncclFloat, u->root, h, stream));
	case GATHER:
		return WATCHED(l, ncclGather(a, b, n, ncclFloat, u->root, h, stream));
	case SCATTER:
		return WATCHED(l, ncclScatter(a, b, n, ncclFloat, u->root, h, stream));
	case N_KINDS:
		break;
	}
	return ncclInternalError;
}

static void start(struct lane *l, const struct use *u, ncclRedOp_t op, cudaStream_t stream)
{
	ncclResult_t r = call(l, u, op, stream);

	if (r)
		DIE(l, "%s: %s (%s)", kind_names[u->kind], ncclGetErrorString(r),
		    ncclGetLastError(NULL));
}

/* The k-th piece of a wide buffer is rank k's; @is_chunked: each rank sent other pieces. */
static void check_pieces(struct lane *l, const struct use *u, bool is_chunked)
{
	for (int v = 0; v < u->c->n; v++) {
		for (uint32_t i = 0; i < u->count; i++) {
			uint64_t at = (is_chunked ? (uint64_t)u->c->rank * u->count : 0) + i;

			check(l, u, (uint32_t)v * u->count + i, value(u->c, v, u->salt, at));
		}
	}
}

static void check_use(struct lane *l, const struct use *u, cudaStream_t stream)
{
	const struct comm *c = u->c;
	bool is_root = u->root == c->rank;
	uint32_t wide = u->count;
	uint64_t mine = (uint64_t)c->rank * u->count;

	if (u->kind == ALLGATHER || u->kind == ALLTOALL || (u->kind == GATHER && is_root))
		wide *= (uint32_t)c->n;
	CUDA(l, cudaMemcpyAsync(u->slot->host, u->slot->recv, wide * sizeof(float),
				cudaMemcpyDeviceToHost, stream));
	CUDA(l, cudaStreamSynchronize(stream));
	if (!job.is_exact)
		return;
	if (u->kind == ALLGATHER || u->kind == ALLTOALL || (u->kind == GATHER && is_root)) {
		check_pieces(l, u, u->kind == ALLTOALL);
		return;
	}
	for (uint32_t i = 0; i < u->count; i++) {
		switch (u->kind) {
		case ALLREDUCE_SUM:
			check(l, u, i, u->factor * sum_of(c, u->salt, i));
			break;
		case ALLREDUCE_AVG:
			check(l, u, i, sum_of(c, u->salt, i) / c->n);
			break;
		case ALLREDUCE_MAX:
			check(l, u, i, max_of(c, u->salt, i));
			break;
		case REDUCE:
			if (is_root)
				check(l, u, i, sum_of(c, u->salt, i));
			break;
		case REDUCE_SCATTER:
			check(l, u, i, sum_of(c, u->salt, mine + i));
			break;
		case BROADCAST:
			check(l, u, i, value(c, u->root, u->salt, i));
			break;
		case SCATTER: /* from a virtual root: as it was */
			if (c->is_world)
				check(l, u, i,
				      is_real(u->root) ? value(c, u->root, u->salt, mine + i)
						       : value(c, c->rank, u->salt, i));
			break;
		case ALLGATHER:
		case ALLTOALL:
		case GATHER:
		case N_KINDS:
			break;
		}
	}
}

static cudaStream_t some_stream(struct lane *l)
{
	return l->streams[rng_below(&l->plan, N_STREAMS)];
}

void use_check(struct lane *l, struct comm *c)
{
	struct use u = {.kind = ALLREDUCE_SUM,
			.c = c,
			.count = 3,
			.salt = c->serial,
			.factor = 1,
			.slot = &l->slots[0]};

	prepare(l, &u, l->streams[0]);
	start(l, &u, ncclSum, l->streams[0]);
	check_use(l, &u, l->streams[0]);
}

void step_collective(struct lane *l)
{
	struct comm *c = comm_any(l);
	cudaStream_t stream = some_stream(l);
	struct use u;

	if (!comm_is_member(l, c))
		return;
	for (uint32_t n = 1 + rng_below(&l->plan, 3); n; n--) {
		u = draw(l, c, &l->slots[0]);
		prepare(l, &u, stream);
		dawdle(l);
		start(l, &u, ncclSum, stream);
		check_use(l, &u, stream);
	}
}

void step_empty(struct lane *l)
{
	struct comm *c = comm_any(l);
	cudaStream_t stream = some_stream(l);
	struct use u;

	if (!comm_is_member(l, c))
		return;
	u = draw(l, c, &l->slots[0]);
	prepare(l, &u, stream);
	u.count = 0;
	start(l, &u, ncclSum, stream);
	check_use(l, &u, stream);
}

/* Collectives of several communicators on several streams in one group. */
void step_group(struct lane *l)
{
	struct use u[N_SLOTS] = {{0}};
	cudaStream_t streams[N_SLOTS];
	const struct comm *comms[N_SLOTS];
	int n = 2 + (int)rng_below(&l->plan, N_SLOTS - 1);

	/* first what all ranks draw: the rest depends on sizes, which only members know */
	for (int i = 0; i < n; i++) {
		comms[i] = comm_any(l);
		streams[i] = some_stream(l);
	}
	for (int i = 0; i < n; i++) {
		if (!comm_is_member(l, comms[i]))
			continue;
		l->plan = rng_new(job.seed, (uint64_t)l->step, (uint64_t)l->number, (uint64_t)i);
		u[i] = draw(l, comms[i], &l->slots[i]);
		prepare(l, &u[i], streams[i]);
	}
	dawdle(l);
	NCCL(l, ncclGroupStart());
	for (int i = 0; i < n; i++) {
		if (u[i].c)
			start(l, &u[i], ncclSum, streams[i]);
	}
	NCCL(l, ncclGroupEnd());
	for (int i = 0; i < n; i++) {
		if (u[i].c)
			check_use(l, &u[i], streams[i]);
	}
}

void step_big_group(struct lane *l)
{
	struct comm *c = comm_any(l);
	uint32_t n = 1025 + rng_below(&l->plan, 500);
	struct use u = {.kind = ALLREDUCE_MAX, .c = c, .count = 1, .slot = &l->slots[0]};

	if (!comm_is_member(l, c) || c->n > 64)
		return;
	prepare(l, &u, l->streams[0]);
	NCCL(l, ncclGroupStart());
	for (uint32_t i = 0; i < n; i++)
		start(l, &u, ncclSum, l->streams[0]);
	NCCL(l, ncclGroupEnd());
	check_use(l, &u, l->streams[0]);
}

/* One communicator on changing streams: its ops follow each other. */
void step_streams(struct lane *l)
{
	struct comm *c = comm_any(l);
	uint32_t n = 2 + rng_below(&l->plan, 6);
	struct use u = {.kind = ALLREDUCE_SUM,
			.c = c,
			.count = 1 + rng_below(&l->plan, 3000),
			.factor = 1,
			.slot = &l->slots[0]};

	if (!comm_is_member(l, c))
		return;
	prepare(l, &u, l->streams[0]);
	start(l, &u, ncclSum, l->streams[0]);
	for (uint32_t i = 1; i <= n; i++) /* of equal values */
		NCCL(l, ncclAllReduce(u.slot->recv, u.slot->recv, u.count, ncclFloat, ncclMax,
				      c->handle, l->streams[i % N_STREAMS]));
	check_use(l, &u, l->streams[n % N_STREAMS]);
}

/* --- reductions of the user's
 * --------------------------------------------------------------------- */

static ncclRedOp_t redop_new(struct lane *l, const struct comm *c, float *scalar)
{
	ncclRedOp_t op;

	NCCL(l,
	     ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat, ncclScalarHostImmediate, c->handle));
	return op;
}

void step_redop(struct lane *l)
{
	struct comm *c = comm_any(l);
	cudaStream_t stream = some_stream(l);
	struct use u = {.kind = ALLREDUCE_SUM,
			.c = c,
			.count = 1 + rng_below(&l->plan, 3000),
			.factor = 2,
			.slot = &l->slots[0]};
	float scalar = 2;
	ncclRedOp_t op;

	if (!comm_is_member(l, c))
		return;
	prepare(l, &u, stream);
	op = redop_new(l, c, &scalar);
	start(l, &u, op, stream);
	NCCL(l, ncclRedOpDestroy(op, c->handle)); /* what is under way keeps it */
	check_use(l, &u, stream);
}

/* Made, used and destroyed in a group, where the next one may get its number. */
void step_redop_in_group(struct lane *l)
{
	struct comm *c = comm_any(l);
	uint32_t count = 1 + rng_below(&l->plan, 3000);
	struct use u[N_SLOTS];

	if (!comm_is_member(l, c))
		return;
	for (int i = 0; i < N_SLOTS; i++) {
		u[i] = (struct use){.kind = ALLREDUCE_SUM,
				    .c = c,
				    .count = count,
				    .factor = (float)(i + 2),
				    .slot = &l->slots[i]};
		prepare(l, &u[i], l->streams[0]);
	}
	NCCL(l, ncclGroupStart());
	for (int i = 0; i < N_SLOTS; i++) {
		float scalar = u[i].factor;
		ncclRedOp_t op = redop_new(l, c, &scalar);

		start(l, &u[i], op, l->streams[0]);
		NCCL(l, ncclRedOpDestroy(op, c->handle));
	}
	NCCL(l, ncclGroupEnd());
	for (int i = 0; i < N_SLOTS; i++)
		check_use(l, &u[i], l->streams[0]);
}

/* --- sends and receives
 * ------------------------------------------------------------------------------ */

static void get(struct lane *l, const struct use *u, uint32_t count, cudaStream_t stream)
{
	CUDA(l, cudaMemcpyAsync(u->slot->host, u->slot->recv, count * sizeof(float),
				cudaMemcpyDeviceToHost, stream));
	CUDA(l, cudaStreamSynchronize(stream));
}

void step_ring(struct lane *l)
{
	struct comm *c = comm_any(l);
	cudaStream_t stream = some_stream(l);
	struct use u = {.kind = BROADCAST,
			.c = c,
			.count = 1 + rng_below(&l->plan, 20000),
			.salt = rng_below(&l->plan, 100),
			.slot = &l->slots[0]};
	int left;

	if (!comm_is_member(l, c))
		return;
	left = u.root = (c->rank + c->n - 1) % c->n;
	prepare(l, &u, stream);
	dawdle(l);
	NCCL(l, ncclGroupStart());
	NCCL(l,
	     ncclSend(u.slot->send, u.count, ncclFloat, (c->rank + 1) % c->n, c->handle, stream));
	NCCL(l, ncclRecv(u.slot->recv, u.count, ncclFloat, left, c->handle, stream));
	NCCL(l, ncclGroupEnd());
	get(l, &u, u.count, stream);
	if (job.is_exact && (!c->is_world || is_real(left) || job.k == 1)) {
		for (uint32_t i = 0; i < u.count; i++)
			check(l, &u, i, value(c, left, u.salt, i));
	}
}

/* As frameworks do it: a send and a receive for each rank. */
void step_all_to_all(struct lane *l)
{
	struct comm *c = comm_any(l);
	cudaStream_t stream = some_stream(l);
	struct use u = {.kind = ALLTOALL,
			.c = c,
			.salt = rng_below(&l->plan, 100),
			.slot = &l->slots[0]};
	uint32_t count;

	if (!comm_is_member(l, c) || c->n > 64)
		return;
	count = u.count = 1 + rng_below(&l->plan, SLOT_FLOATS / (uint32_t)c->n / 4);
	prepare(l, &u, stream);
	NCCL(l, ncclGroupStart());
	for (int v = 0; v < c->n; v++) {
		NCCL(l, ncclSend(u.slot->send + (uint32_t)v * count, count, ncclFloat, v, c->handle,
				 stream));
		NCCL(l, ncclRecv(u.slot->recv + (uint32_t)v * count, count, ncclFloat, v, c->handle,
				 stream));
	}
	NCCL(l, ncclGroupEnd());
	check_use(l, &u, stream);
}

/* One real rank to another one, outside of any group; the rest does something else. */
void step_pair(struct lane *l)
{
	struct comm *c = comm_any(l);
	cudaStream_t stream = some_stream(l);
	int a = (int)rng_below(&l->plan, (uint32_t)job.k);
	int b = (a + 1 + (int)rng_below(&l->plan, (uint32_t)(job.k > 1 ? job.k - 1 : 1))) % job.k;
	struct use u = {.kind = BROADCAST,
			.c = c,
			.root = job.real[a],
			.count = 1 + rng_below(&l->plan, 20000),
			.salt = rng_below(&l->plan, 100),
			.slot = &l->slots[0]};

	if (!c->is_world || a == b || (l->index != a && l->index != b))
		return;
	prepare(l, &u, stream);
	dawdle(l);
	if (l->index == a)
		NCCL(l, ncclSend(u.slot->send, u.count, ncclFloat, job.real[b], c->handle, stream));
	else
		NCCL(l, ncclRecv(u.slot->recv, u.count, ncclFloat, job.real[a], c->handle, stream));
	if (l->index == b && job.is_exact)
		check_use(l, &u, stream);
	CUDA(l, cudaStreamSynchronize(stream));
}

/* --- graphs
 * ------------------------------------------------------------------------------------------- */

void step_graph(struct lane *l)
{
	struct comm *c = comm_any(l);
	cudaStream_t stream = some_stream(l);
	uint32_t n = 1 + rng_below(&l->plan, 5);
	struct use u = {.kind = ALLREDUCE_SUM,
			.c = c,
			.count = 1 + rng_below(&l->plan, 3000),
			.factor = 1,
			.slot = &l->slots[0]};
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	if (!comm_is_member(l, c))
		return;
	prepare(l, &u, stream);
	for (int i = 0; i < N_STREAMS; i++) /* an op in a graph does not wait for one outside */
		CUDA(l, cudaStreamSynchronize(l->streams[i]));
	CUDA(l, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	start(l, &u, ncclSum, stream);
	NCCL(l, ncclAllReduce(u.slot->recv, u.slot->recv, u.count, ncclFloat, ncclMax, c->handle,
			      stream));
	CUDA(l, cudaStreamEndCapture(stream, &graph));
	CUDA(l, cudaGraphInstantiate(&exec, graph, 0));
	for (uint32_t i = 0; i < n; i++)
		CUDA(l, cudaGraphLaunch(exec, stream));
	check_use(l, &u, stream);
	CUDA(l, cudaGraphExecDestroy(exec));
	CUDA(l, cudaGraphDestroy(graph));
}

/* --- children
 * -------------------------------------------------------------------------------------------- */

static void reap(struct lane *l, pid_t pid)
{
	int status = 0;
	pid_t r = -1;

	WAIT_UNTIL(l, (r = waitpid(pid, &status, WNOHANG)) != 0);
	if (r != pid || status)
		DIE(l, "a child ended with status 0x%x", (unsigned int)status);
}

/* As data loaders and compilers are started. */
void step_fork(struct lane *l)
{
	char program[] = "/proc/self/exe", nothing[] = "nothing";
	char *argv[] = {program, nothing, NULL};
	bool execs = rng_below(&l->luck, 2);
	pid_t pid;

	if (!job.may_fork || rng_below(&l->luck, 3))
		return;
	pid = fork();
	if (!pid) {
		if (execs)
			execv(program, argv);
		_exit(execs ? 127 : 0);
	}
	reap(l, pid);
}

/* A child that ends what it inherited, as the destructors of a program do. */
void step_fork_destroy(struct lane *l)
{
	struct comm *c = comm_any(l);
	pid_t pid;

	if (!job.may_fork || !comm_is_member(l, c))
		return;
	pid = fork();
	if (!pid) {
		ncclCommDestroy(c->handle);
		_exit(0);
	}
	reap(l, pid);
	use_check(l, c);
}
