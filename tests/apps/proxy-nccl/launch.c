/* See impl.h: how ops are cut, and how a group of them is launched. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "wire.h"

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
