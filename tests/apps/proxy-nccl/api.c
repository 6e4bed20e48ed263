/* See impl.h: what jobs call, and what a group collects and launches. */
#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "impl.h"
#include "patches/records.h"
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

/* --- how an op is cut -------------------------------------------------------------- */

int op_chunk_steps(const struct op *o)
{
	bool has_slices = o->algorithm == PLUGIN_RING && o->protocol == PLUGIN_SIMPLE &&
			  (o->kind == COLL_ALLREDUCE || o->kind == COLL_ALLGATHER ||
			   o->kind == COLL_REDUCESCATTER);

	return has_slices ? 4 : 1;
}

int op_slice_steps(const struct op *o)
{
	return op_chunk_steps(o) == 4 ? 2 : 1;
}

static size_t chunk_bytes(const struct op *o)
{
	size_t bytes = step_bytes(o->protocol) * (size_t)op_chunk_steps(o);

	if (o->protocol == PLUGIN_LL)
		return bytes / 2;
	return o->protocol == PLUGIN_LL128 ? bytes / 16 * 15 : bytes;
}

size_t op_chunk(const struct op *o)
{
	return chunk_bytes(o) / dtype_bytes(o->dtype);
}

size_t p2p_chunk(const struct p2p_task *t)
{
	size_t chunk = P2P_CHUNK;

	if (!t->pipe || !t->pipe->is_net)
		return chunk;
	return t->bytes < chunk ? chunk / 4 : t->bytes < 8 * chunk ? chunk / 2 : chunk;
}

static size_t ceil_of(size_t a, size_t b)
{
	return (a + b - 1) / b;
}

/* Steps of @o's proxy on channel @ch. */
static uint64_t steps_of(const struct op *o, int ch)
{
	size_t n = o->comm->n_ranks, chunks = ceil_of(o->part[ch], op_chunk(o));

	if (o->algorithm == PLUGIN_TREE || o->kind == COLL_BROADCAST || o->kind == COLL_REDUCE)
		return chunks;
	if (o->kind == COLL_ALLREDUCE)
		return 2 * (n - 1) * ceil_of(o->part[ch], n * op_chunk(o)) *
		       (size_t)op_chunk_steps(o);
	return (n - 1) * chunks * (size_t)op_chunk_steps(o);
}

/* Whole grains of 16 bytes a channel; small ops have fewer channels. */
static void cut(struct op *o)
{
	size_t grain = 512 / dtype_bytes(o->dtype), at = 0,
	       each = ceil_of(ceil_of(o->count, (size_t)o->n_channels), grain) * grain;

	for (int i = 0; i < o->n_channels; i++) {
		o->begin[i] = at;
		o->part[i] = o->count - at < each ? o->count - at : each;
		at += o->part[i];
	}
}

/* --- the proxy's part -------------------------------------------------------------- */

static uint32_t function_bit(const struct op *o)
{
	static const uint32_t bits[COLL_KINDS] = {
		[COLL_ALLREDUCE] = 1u << PLUGIN_ALLREDUCE,
		[COLL_ALLGATHER] = 1u << PLUGIN_ALLGATHER,
		[COLL_REDUCESCATTER] = 1u << PLUGIN_REDUCESCATTER,
		[COLL_BROADCAST] = 1u << PLUGIN_BROADCAST,
		[COLL_REDUCE] = 1u << PLUGIN_REDUCE,
		[COLL_SENDRECV] = 3u << 6,
	};

	return bits[o->kind];
}

static void add_proxy(struct proxy_op ***last, const struct op *o, struct pipe *p, uint64_t n_steps,
		      int chunk, size_t bytes_max, void *event)
{
	struct proxy_op *new;

	if (!p || !p->is_net || !n_steps)
		return;
	new = calloc(1, sizeof(*new));
	*new = (struct proxy_op){.pipe = p,
				 .task_event = event,
				 .mask = profiler_mask(),
				 .functions = function_bit(o),
				 .algorithm = 1u << o->algorithm,
				 .protocol = 1u << o->protocol,
				 .n_steps = n_steps,
				 .chunk_steps = op_chunk_steps(o),
				 .slice_steps = op_slice_steps(o),
				 .chunk_bytes = chunk,
				 .bytes_max = bytes_max};
	**last = new;
	*last = &new->next;
}

static void add_ring(struct proxy_op ***last, const struct op *o, int ch, void *event)
{
	const struct channel *c = &o->comm->channels[ch];
	bool is_last = false, is_first = false; /* of a chain */
	int chunk = (int)chunk_bytes(o);

	if (o->kind == COLL_BROADCAST) {
		is_first = o->comm->rank == o->root;
		is_last = c->next == o->root;
	} else if (o->kind == COLL_REDUCE) {
		is_first = c->prev == o->root;
		is_last = o->comm->rank == o->root;
	}
	if (!is_first)
		add_proxy(last, o, comm_pipe(o->comm, c->prev, ch, 0, false), steps_of(o, ch),
			  chunk, SIZE_MAX, event);
	if (!is_last)
		add_proxy(last, o, comm_pipe(o->comm, c->next, ch, 0, true), steps_of(o, ch), chunk,
			  SIZE_MAX, event);
}

static void add_tree(struct proxy_op ***last, const struct op *o, int ch, void *event)
{
	const struct channel *c = &o->comm->channels[ch];
	uint64_t n = steps_of(o, ch);
	int chunk = (int)chunk_bytes(o);

	for (int is_down = 0; is_down < 2; is_down++) {
		for (int i = 0; i < PEERS_MAX; i++)
			if (c->down[i] >= 0)
				add_proxy(last, o,
					  comm_pipe(o->comm, (uint32_t)c->down[i], ch, 0, is_down),
					  n, chunk, SIZE_MAX, event);
		if (c->up >= 0)
			add_proxy(last, o, comm_pipe(o->comm, (uint32_t)c->up, ch, 0, !is_down), n,
				  chunk, SIZE_MAX, event);
	}
}

/* As NCCL after the launch: events of the group and the tasks, what the proxy has to do, and the
 * events' ends. */
static void upload(struct op *o)
{
	ncclComm_t c = o->comm;
	struct proxy_op *list = NULL, **last = &list;
	void *of_group = NULL, *event = NULL;

	if (c->n_ranks == 1)
		return;
	profiler_group(c, &of_group);
	if (o->kind != COLL_SENDRECV) {
		profiler_coll(c, of_group, o, c->seq[o->kind]++, &event);
		for (int ch = 0; ch < o->n_channels; ch++) {
			if (!o->part[ch])
				continue;
			if (o->algorithm == PLUGIN_TREE)
				add_tree(&last, o, ch, event);
			else
				add_ring(&last, o, ch, event);
		}
	}
	for (size_t i = 0; i < o->n_tasks; i++)
		profiler_p2p(c, of_group, &o->tasks[i], &o->tasks[i].event);
	for (size_t i = 0; i < o->n_tasks; i++) {
		struct p2p_task *t = &o->tasks[i];
		size_t chunk = p2p_chunk(t), n = t->bytes ? ceil_of(t->bytes, chunk) : 1;

		add_proxy(&last, o, t->pipe, n, (int)chunk, t->bytes < chunk ? t->bytes : chunk,
			  t->event);
	}
	if (list)
		proxy_submit(c, list);
	profiler_stop(event);
	for (size_t i = 0; i < o->n_tasks; i++)
		profiler_stop(o->tasks[i].event);
	profiler_stop(of_group);
}

/* --- launches ---------------------------------------------------------------------- */

/* The connections of sends and receives: a pair has one channel a direction. */
static int connect_tasks(struct op *o)
{
	ncclComm_t c = o->comm;
	struct edge *edges = calloc(o->n_tasks + 1, sizeof(*edges));
	size_t n = 0;
	int r;

	for (size_t i = 0; i < o->n_tasks; i++) {
		const struct p2p_task *t = &o->tasks[i];

		if (t->peer != c->rank)
			edges[n++] =
				(struct edge){t->peer,
					      (int)((t->peer + c->rank) % (uint32_t)c->n_channels),
					      1, t->is_send};
	}
	wire_abort_by(&c->aborted);
	c->client.until_ns = UINT64_MAX;
	r = comm_set_up(c, -1, edges, n);
	wire_abort_by(NULL);
	for (size_t i = 0; i < o->n_tasks && r == 0; i++) {
		struct p2p_task *t = &o->tasks[i];

		if (t->peer != c->rank)
			t->pipe = comm_pipe(c, t->peer,
					    (int)((t->peer + c->rank) % (uint32_t)c->n_channels), 1,
					    t->is_send);
	}
	free(edges);
	return r;
}

/* Whether NCCL launches @a before @b, which was called before it: collectives are first, the
 * largest of them before others. */
static bool is_before(const struct op *a, const struct op *b)
{
	if (a->comm != b->comm || a->kind == COLL_SENDRECV)
		return false;
	return b->kind == COLL_SENDRECV ||
	       a->count * dtype_bytes(a->dtype) > b->count * dtype_bytes(b->dtype);
}

static struct op *in_order(struct op *list)
{
	struct op *sorted = NULL;

	while (list) {
		struct op *o = list, **at = &sorted;

		list = o->next;
		while (*at && !is_before(o, *at))
			at = &(*at)->next;
		o->next = *at;
		*at = o;
	}
	return sorted;
}

static ncclResult_t launch_one(const struct op *o)
{
	struct op *copy = malloc(sizeof(*copy)); /* the device frees its own */
	ncclResult_t result = ncclSuccess;

	*copy = *o;
	if (o->n_tasks) {
		copy->tasks = calloc(o->n_tasks, sizeof(*copy->tasks));
		memcpy(copy->tasks, o->tasks, o->n_tasks * sizeof(*copy->tasks));
	}
	copy->number = o->comm->n_launched++;
	if (cudaLaunchHostFunc(o->stream, kernel_run, copy) != cudaSuccess)
		result = ncclUnhandledCudaError;
	return result;
}

/* As NCCL: connects for all ops of a group before it launches one. */
ncclResult_t launch(struct op *list)
{
	ncclResult_t result = ncclSuccess, later = ncclSuccess;

	for (struct op *o = list; o && result == ncclSuccess; o = o->next) {
		if (o->comm->is_nonblocking && o->n_tasks) /* NCCL would connect behind the call */
			later = ncclInProgress;
		if (o->kind != COLL_SENDRECV &&
		    (result = (ncclResult_t)tuner_ask(o)) == ncclSuccess)
			cut(o);
		if (o->n_tasks && connect_tasks(o) < 0) {
			say("rank %u: %s", o->comm->rank, wire_error());
			result = ncclRemoteError;
		}
	}
	list = in_order(list);
	while (list) {
		struct op *o = list;

		list = o->next;
		if (result == ncclSuccess) {
			result = launch_one(o);
			upload(o);
		}
		free(o->tasks);
		free(o);
	}
	return result == ncclSuccess ? later : result;
}

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
