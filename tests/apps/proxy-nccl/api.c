/* See impl.h: what jobs call, and what a group collects. */
#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "impl.h"
#include "wire.h"

#define API __attribute__((visibility("default")))
#define SCALARS_MAX 64

static _Thread_local struct {
	int depth;
	struct op *first, **last;
	ncclResult_t result;
	struct making *makings;
} group;

struct making {
	struct making *next;
	ncclComm_t *ret;
	ncclComm_t comm;
	pthread_t thread;
	int r;
};

static struct {
	pthread_mutex_t lock;
	char text[512];
	struct {
		bool is_used;
		unsigned char value[8];
		const void *device;
		ncclDataType_t dtype;
	} scalars[SCALARS_MAX];
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

void say(const char *fmt, ...)
{
	va_list args;

	pthread_mutex_lock(&g.lock);
	va_start(args, fmt);
	vsnprintf(g.text, sizeof(g.text), fmt, args);
	va_end(args);
	pthread_mutex_unlock(&g.lock);
}

size_t dtype_bytes(ncclDataType_t t)
{
	return coll_dtype_bytes((uint32_t)t);
}

/* --- what jobs enqueue -------------------------------------------------------------- */

static int protocol_of_env(void)
{
	const char *told = getenv("FAKE_NCCL_PROTO");

	if (told && strcasecmp(told, "LL") == 0)
		return PLUGIN_LL;
	return told && strcasecmp(told, "LL128") == 0 ? PLUGIN_LL128 : PLUGIN_SIMPLE;
}

static bool wants_tree(void)
{
	const char *told = getenv("FAKE_NCCL_ALGO");

	return told && strcasecmp(told, "Tree") == 0;
}

static ncclResult_t done_or_later(void)
{
	struct op *list = group.first;

	if (group.depth)
		return ncclSuccess;
	group.first = NULL;
	return launch(list);
}

static ncclResult_t refuse(const char *why)
{
	say("%s", why);
	group.result = ncclInvalidArgument;
	return ncclInvalidArgument;
}

static struct op *op_new(ncclComm_t comm, cudaStream_t stream, enum coll_kind kind)
{
	struct op *o = calloc(1, sizeof(*o)), **last = &group.first;

	*o = (struct op){.comm = comm, .stream = stream, .kind = kind};
	while (*last)
		last = &(*last)->next;
	*last = o;
	return o;
}

static ncclResult_t collective(enum coll_kind kind, const void *send, void *recv, size_t count,
			       ncclDataType_t dtype, ncclRedOp_t redop, int root, ncclComm_t comm,
			       cudaStream_t stream)
{
	struct op *o;

	if (!comm || (unsigned)dtype >= ncclNumTypes || root < 0 || (uint32_t)root >= comm->n_ranks)
		return refuse("an argument is wrong");
	if (comm->is_starting)
		return refuse("the communicator is used before it is made");
	if (comm->async != ncclSuccess)
		return (ncclResult_t)comm->async;
	if (!count)
		return ncclSuccess;
	o = op_new(comm, stream, kind);
	o->send = send;
	o->recv = recv;
	o->count = count;
	o->dtype = dtype;
	o->redop = (uint32_t)redop;
	o->root = (uint32_t)root;
	o->protocol = protocol_of_env();
	o->algorithm = kind == COLL_ALLREDUCE && wants_tree() ? PLUGIN_TREE : PLUGIN_RING;
	if ((uint32_t)redop >= ncclNumOps) {
		uint32_t i = (uint32_t)redop - ncclNumOps;

		if (i >= SCALARS_MAX || !g.scalars[i].is_used)
			return refuse("an unknown reduction");
		o->has_scalar = true;
		o->redop = COLL_SUM;
		if (g.scalars[i].device)
			memcpy(o->scalar, g.scalars[i].device, dtype_bytes(dtype));
		else
			memcpy(o->scalar, g.scalars[i].value, sizeof(o->scalar));
	}
	o->n_channels = comm->n_channels;
	return done_or_later();
}

static struct op *p2p_op(ncclComm_t comm, cudaStream_t stream)
{
	for (struct op *o = group.first; o; o = o->next)
		if (o->comm == comm && o->kind == COLL_SENDRECV)
			return o;
	return op_new(comm, stream, COLL_SENDRECV);
}

static ncclResult_t p2p(bool is_send, void *buffer, size_t count, ncclDataType_t dtype, int peer,
			ncclComm_t comm, cudaStream_t stream)
{
	struct op *o;

	if (!comm || (unsigned)dtype >= ncclNumTypes || peer < 0 || (uint32_t)peer >= comm->n_ranks)
		return refuse("an argument is wrong");
	if (comm->is_starting)
		return refuse("the communicator is used before it is made");
	if (comm->async != ncclSuccess)
		return (ncclResult_t)comm->async;
	o = p2p_op(comm, stream);
	o->protocol = PLUGIN_SIMPLE;
	o->algorithm = PLUGIN_RING;
	o->tasks = realloc(o->tasks, (o->n_tasks + 1) * sizeof(*o->tasks));
	o->tasks[o->n_tasks++] = (struct p2p_task){.is_send = is_send,
						   .peer = (uint32_t)peer,
						   .buffer = buffer,
						   .bytes = count * dtype_bytes(dtype),
						   .count = count,
						   .dtype = dtype};
	return done_or_later();
}

/* --- calls ------------------------------------------------------------------------- */

API ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return collective(COLL_ALLREDUCE, send, recv, count, dtype, op, 0, comm, stream);
}

API ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			       ncclComm_t comm, cudaStream_t stream)
{
	return collective(COLL_ALLGATHER, send, recv, count, dtype, ncclSum, 0, comm, stream);
}

API ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t dtype,
				   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return collective(COLL_REDUCESCATTER, send, recv, count, dtype, op, 0, comm, stream);
}

API ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			       int root, ncclComm_t comm, cudaStream_t stream)
{
	return collective(COLL_BROADCAST, send, recv, count, dtype, ncclSum, root, comm, stream);
}

API ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t dtype, int root,
			   ncclComm_t comm, cudaStream_t stream)
{
	return ncclBroadcast(buffer, buffer, count, dtype, root, comm, stream);
}

API ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			    ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return collective(COLL_REDUCE, send, recv, count, dtype, op, root, comm, stream);
}

API ncclResult_t ncclSend(const void *buffer, size_t count, ncclDataType_t dtype, int peer,
			  ncclComm_t comm, cudaStream_t stream)
{
	return p2p(true, (void *)(uintptr_t)buffer, count, dtype, peer, comm, stream);
}

API ncclResult_t ncclRecv(void *buffer, size_t count, ncclDataType_t dtype, int peer,
			  ncclComm_t comm, cudaStream_t stream)
{
	return p2p(false, buffer, count, dtype, peer, comm, stream);
}

API ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}

static void *make(void *ctx)
{
	struct making *m = ctx;

	m->r = comm_init(m->comm);
	return NULL;
}

static void *make_behind(void *ctx)
{
	ncclComm_t c = ctx;

	if (comm_init(c) < 0)
		c->async = ncclRemoteError;
	c->is_starting = false;
	return NULL;
}

/* NCCL_COMM_BLOCKING=0 */
static ncclResult_t make_all_behind(void)
{
	while (group.makings) {
		struct making *m = group.makings;

		group.makings = m->next;
		m->comm->is_nonblocking = true;
		m->comm->is_starting = true;
		if (pthread_create(&m->thread, NULL, make_behind, m->comm) ||
		    pthread_detach(m->thread))
			abort();
		free(m);
	}
	return ncclInProgress;
}

static ncclResult_t make_all(void)
{
	const char *blocking = getenv("NCCL_COMM_BLOCKING");
	ncclResult_t r = ncclSuccess;

	if (blocking && strcmp(blocking, "0") == 0)
		return make_all_behind();
	for (struct making *m = group.makings; m; m = m->next)
		if (pthread_create(&m->thread, NULL, make, m))
			abort();
	while (group.makings) {
		struct making *m = group.makings;

		group.makings = m->next;
		pthread_join(m->thread, NULL);
		if (m->r < 0) {
			r = m->comm->aborted ? ncclInternalError : ncclRemoteError;
			*m->ret = NULL;
			comm_end(m->comm);
		}
		free(m);
	}
	return r;
}

API ncclResult_t ncclGroupEnd(void)
{
	ncclResult_t r = group.result;

	if (!group.depth)
		return ncclInvalidUsage;
	if (--group.depth)
		return ncclSuccess;
	group.result = ncclSuccess;
	if (r != ncclSuccess) {
		while (group.first) {
			struct op *o = group.first;

			group.first = o->next;
			free(o->tasks);
			free(o);
		}
		return r;
	}
	if (group.makings)
		r = make_all();
	return r == ncclSuccess ? done_or_later() : r;
}

/* --- communicators ----------------------------------------------------------------- */

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int n_ranks, ncclUniqueId id, int rank,
					ncclConfig_t *config)
{
	struct making *m;
	ncclComm_t c;

	if (!ret || n_ranks < 1 || rank < 0 || rank >= n_ranks)
		return refuse("an argument is wrong");
	if (config && config->min_ctas > config->max_ctas) /* as NCCL, set or not */
		return refuse("Invalid config min/max channels attribute value");
	m = calloc(1, sizeof(*m));
	c = calloc(1, sizeof(*c));
	c->n_ranks = (uint32_t)n_ranks;
	c->rank = (uint32_t)rank;
	c->id = id;
	if (config && config->min_ctas != NCCL_CONFIG_UNDEF_INT)
		c->n_channels_min = config->min_ctas;
	if (cudaGetDevice(&c->device) != cudaSuccess)
		c->device = 0;
	*m = (struct making){.next = group.makings, .ret = ret, .comm = c};
	group.makings = m;
	*ret = c;
	return group.depth ? ncclSuccess : make_all();
}

API ncclResult_t ncclCommInitRank(ncclComm_t *ret, int n_ranks, ncclUniqueId id, int rank)
{
	return ncclCommInitRankConfig(ret, n_ranks, id, rank, NULL);
}

API ncclResult_t ncclCommInitAll(ncclComm_t *ret, int n, const int *devices)
{
	ncclUniqueId id;
	int before;

	if (!ret || n < 1 || cudaGetDevice(&before) != cudaSuccess)
		return refuse("an argument is wrong");
	if (root_make_id((uint32_t)n, &id) < 0)
		return ncclSystemError;
	ncclGroupStart();
	for (int i = 0; i < n; i++) {
		cudaSetDevice(devices ? devices[i] : i);
		ncclCommInitRank(&ret[i], n, id, i);
	}
	cudaSetDevice(before);
	return ncclGroupEnd();
}

/* All that was launched runs to its end, but in an aborted communicator. */
static void wait_for_launches(ncclComm_t c)
{
	unsigned idle = 0;

	while (c->is_starting || c->n_run != c->n_launched)
		pause_for(&idle);
}

API ncclResult_t ncclCommFinalize(ncclComm_t c)
{
	wait_for_launches(c);
	return ncclSuccess;
}

API ncclResult_t ncclCommDestroy(ncclComm_t c)
{
	if (!c)
		return ncclSuccess;
	wait_for_launches(c);
	comm_end(c);
	return ncclSuccess;
}

API ncclResult_t ncclCommAbort(ncclComm_t c)
{
	if (!c)
		return ncclSuccess;
	c->aborted = true;
	wait_for_launches(c);
	comm_end(c);
	return ncclSuccess;
}

API ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *ret)
{
	*ret = c->is_starting ? ncclInProgress : (ncclResult_t)c->async;
	return ncclSuccess;
}

API ncclResult_t ncclCommCount(ncclComm_t c, int *ret)
{
	*ret = (int)c->n_ranks;
	return ncclSuccess;
}

API ncclResult_t ncclCommUserRank(ncclComm_t c, int *ret)
{
	*ret = (int)c->rank;
	return ncclSuccess;
}

API ncclResult_t ncclCommCuDevice(ncclComm_t c, int *ret)
{
	*ret = c->device;
	return ncclSuccess;
}

API ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *ret, void *scalar, ncclDataType_t dtype,
					  ncclScalarResidence_t residence, ncclComm_t comm)
{
	(void)comm;
	pthread_mutex_lock(&g.lock);
	for (uint32_t i = 0; i < SCALARS_MAX; i++)
		if (!g.scalars[i].is_used) {
			g.scalars[i].is_used = true;
			g.scalars[i].dtype = dtype;
			g.scalars[i].device = residence == ncclScalarDevice ? scalar : NULL;
			if (residence != ncclScalarDevice)
				memcpy(g.scalars[i].value, scalar, dtype_bytes(dtype));
			pthread_mutex_unlock(&g.lock);
			*ret = (ncclRedOp_t)(ncclNumOps + i);
			return ncclSuccess;
		}
	pthread_mutex_unlock(&g.lock);
	return refuse("too many reductions");
}

API ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	(void)comm;
	if ((uint32_t)op >= ncclNumOps && (uint32_t)op < ncclNumOps + SCALARS_MAX)
		g.scalars[op - ncclNumOps].is_used = false;
	return ncclSuccess;
}

int version_told(void)
{
	const char *told = getenv("FAKE_NCCL_VERSION");

	return told ? atoi(told) : NCCL_CODE(2, 28, 9);
}

API ncclResult_t ncclGetVersion(int *ret)
{
	*ret = version_told();
	return ncclSuccess;
}

/* The id of a communicator that nobody answers: nboxd mints those that are used. */
API ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	memset(id, 0, sizeof(*id));
	memcpy(id->internal, "proxy-nccl has no root", 22);
	return ncclSuccess;
}

API const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const names[] = {"no error",         "unhandled cuda error",
					    "system error",     "internal error",
					    "invalid argument", "invalid usage",
					    "remote error",     "in progress"};

	return (unsigned)result < ncclNumResults ? names[result] : "unknown result code";
}

API const char *ncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return g.text;
}
