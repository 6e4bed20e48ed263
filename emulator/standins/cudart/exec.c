/* Executable graphs: how a graph is cut into lanes, and what a launch does. graph.h explains
 * both. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "event.h"
#include "futex.h"
#include "graph.h"
#include "mark.h"
#include "pace.h"
#include "submit.h"

#include "base/cleanup.h"

struct exec_node {
	struct command command;
	unsigned lane;
	unsigned n_waits;
	unsigned *waits;        /* predecessors on other lanes */
	bool is_awaited;        /* it is among another's waits */
	uint64_t over_ns;       /* when it was over, in its stream's time (pace.h) */
	_Atomic uint32_t ended; /* the number of the last launch in which it ended */
};

struct exec {
	struct object object;
	unsigned n;
	struct exec_node *nodes;
	unsigned n_lanes;
	struct stream **lanes; /* [1..n_lanes), made at the first launch */
	struct user_list users;
	pthread_mutex_t lock; /* of n_launches and the making of lanes */
	uint32_t n_launches;
	uint64_t over_ns;         /* as a node's: of the last launch that ended */
	_Atomic uint32_t n_ended; /* launches; the next one waits for it */
};

/* One launch. Marks are made at the launch, in the order of the nodes, so that an event that the
 * graph records is "recorded, but not passed" from then on. */
struct launch {
	atomic_uint n_refs;
	struct exec *exec; /* reference */
	uint32_t number;
	_Atomic uint32_t n_lanes_left; /* without lane 0 */
	struct mark **marks;           /* by node; owned; NULL for most */
};

static void exec_free(struct object *object)
{
	struct exec *exec = container_of(object, struct exec, object);

	for (unsigned i = 0; i < exec->n; i++) {
		command_deinit(&exec->nodes[i].command);
		free(exec->nodes[i].waits);
	}
	for (unsigned i = 1; exec->lanes && i < exec->n_lanes; i++) {
		if (!exec->lanes[i])
			continue;
		stream_close(exec->lanes[i]);
		stream_unref(exec->lanes[i]);
	}
	free(exec->lanes);
	free(exec->nodes);
	user_list_deinit(&exec->users);
	pthread_mutex_destroy(&exec->lock);
	free(exec);
}

static void exec_putp(struct exec **exec)
{
	if (*exec)
		object_unref(&(*exec)->object);
}

/* --- instantiation: cutting into lanes ---------------------------------------------------------
 */

/* Who comes before whom: n rows of n bits. */
static uint64_t *order_new(const struct graph *graph, size_t *ret_n_words)
{
	size_t n_words = (graph->n + 63) / 64;
	uint64_t *rows = calloc(graph->n * n_words + 1, sizeof(*rows)), *row;
	const struct node_set *deps;

	for (unsigned i = 0; rows && i < graph->n; i++) {
		row = rows + i * n_words;
		deps = &graph->nodes[i]->deps;
		for (unsigned k = 0; k < deps->n; k++) {
			row[deps->ids[k] / 64] |= UINT64_C(1) << deps->ids[k] % 64;
			for (size_t w = 0; w < n_words; w++)
				row[w] |= rows[deps->ids[k] * n_words + w];
		}
	}
	*ret_n_words = n_words;
	return rows;
}

/* A node continues the lane of a direct predecessor that is still its lane's last, else any lane
 * whose last node comes before it (that takes away no overlap), else it opens one. */
static unsigned choose_lane(const struct exec *exec, const struct node *node, const uint64_t *row,
			    const unsigned *last)
{
	unsigned dep;

	for (unsigned k = 0; k < node->deps.n; k++) {
		dep = node->deps.ids[k];
		if (last[exec->nodes[dep].lane] == dep)
			return exec->nodes[dep].lane;
	}
	for (unsigned lane = 0; lane < exec->n_lanes; lane++)
		if (row[last[lane] / 64] >> last[lane] % 64 & 1)
			return lane;
	return exec->n_lanes;
}

static int exec_cut(struct exec *exec, const struct graph *graph)
{
	CLEANUP(freep) unsigned *last = calloc(graph->n + 1, sizeof(*last));
	CLEANUP(freep) uint64_t *rows = NULL;
	const struct node_set *deps;
	struct exec_node *node;
	size_t n_words;

	rows = order_new(graph, &n_words);
	if (!last || !rows)
		return -ENOMEM;
	for (unsigned i = 0; i < graph->n; i++) {
		node = &exec->nodes[i];
		deps = &graph->nodes[i]->deps;
		node->lane = choose_lane(exec, graph->nodes[i], rows + i * n_words, last);
		if (node->lane == exec->n_lanes)
			exec->n_lanes++;
		last[node->lane] = i;
		node->waits = calloc(deps->n + 1, sizeof(*node->waits));
		if (!node->waits)
			return -ENOMEM;
		for (unsigned k = 0; k < deps->n; k++) {
			if (exec->nodes[deps->ids[k]].lane == node->lane)
				continue;
			node->waits[node->n_waits++] = deps->ids[k];
			exec->nodes[deps->ids[k]].is_awaited = true;
		}
	}
	return 0;
}

/* Called with graph_lock held. */
static struct exec *exec_new(const struct graph *graph)
{
	CLEANUP(exec_putp) struct exec *exec = calloc(1, sizeof(*exec));

	if (!exec)
		return NULL;
	object_init(&exec->object, OBJECT_EXEC, exec_free);
	pthread_mutex_init(&exec->lock, NULL);
	exec->nodes = calloc(graph->n + 1, sizeof(*exec->nodes));
	if (!exec->nodes)
		return NULL;
	exec->n = graph->n;
	for (unsigned i = 0; i < graph->n; i++)
		command_copy(&graph->nodes[i]->command, &exec->nodes[i].command);
	if (exec_cut(exec, graph) != 0 || user_list_copy(&graph->users, &exec->users) != 0)
		return NULL;
	exec->lanes = calloc(exec->n_lanes + 1, sizeof(struct stream *));
	return exec->lanes ? steal_ptr(exec) : NULL;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret_exec, cudaGraph_t handle,
				 unsigned long long flags)
{
	cudaError_t error = runtime_enter();
	struct graph *graph;
	struct exec *exec;

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!ret_exec || flags & ~15ull)
		return runtime_return(cudaErrorInvalidValue);
	if (flags & cudaGraphInstantiateFlagDeviceLaunch)
		return runtime_return(cudaErrorNotSupported);
	graph = object_get(OBJECT_GRAPH, (uintptr_t)handle);
	if (!graph)
		return runtime_return(cudaErrorInvalidValue);
	pthread_mutex_lock(&graph_lock);
	exec = exec_new(graph);
	pthread_mutex_unlock(&graph_lock);
	object_unref(&graph->object);
	if (!exec)
		return runtime_return(cudaErrorMemoryAllocation);
	if (object_publish(&exec->object) == 0)
		*ret_exec = (cudaGraphExec_t)exec->object.handle;
	else
		error = cudaErrorMemoryAllocation;
	object_unref(&exec->object);
	return runtime_return(error);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle)
{
	CLEANUP(exec_putp) struct exec *exec = NULL;
	cudaError_t error = runtime_enter();

	if (error == cudaSuccess) {
		exec = object_retire(OBJECT_EXEC, (uintptr_t)handle);
		if (!exec)
			error = cudaErrorInvalidValue;
	}
	return runtime_return(error);
}

/* --- launches -----------------------------------------------------------------------------------
 */

static void launch_ref(struct launch *launch)
{
	atomic_fetch_add_explicit(&launch->n_refs, 1, memory_order_relaxed);
}

static void launch_unref(struct launch *launch)
{
	if (!launch || atomic_fetch_sub_explicit(&launch->n_refs, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; launch->marks && i < launch->exec->n; i++)
		mark_unref(launch->marks[i]);
	free(launch->marks);
	object_unref(&launch->exec->object);
	free(launch);
}

static struct launch *launch_new(struct exec *exec)
{
	struct launch *launch = calloc(1, sizeof(*launch));

	if (!launch)
		return NULL;
	atomic_init(&launch->n_refs, 1);
	object_ref(&exec->object);
	launch->exec = exec;
	launch->marks = calloc(exec->n + 1, sizeof(struct mark *));
	if (!launch->marks) {
		launch_unref(launch);
		return NULL;
	}
	return launch;
}

/* Return: 0, or -ENOMEM; marks that were made already are passed then. */
static int launch_arm(struct launch *launch)
{
	struct exec *exec = launch->exec;
	struct command *command;

	for (unsigned i = 0; i < exec->n; i++) {
		command = &exec->nodes[i].command;
		if (command->type == &event_follow_command)
			launch->marks[i] = event_mark(command->event);
		if (command->type != &event_record_command)
			continue;
		launch->marks[i] = event_rearm(command->event);
		if (launch->marks[i])
			continue;
		while (i-- > 0)
			if (exec->nodes[i].command.type == &event_record_command)
				mark_pass(launch->marks[i], mark_now_ns());
		return -ENOMEM;
	}
	return 0;
}

static void word_advance(_Atomic uint32_t *word, uint32_t value)
{
	/* Release pairs with the acquire in word_wait(). */
	atomic_store_explicit(word, value, memory_order_release);
	futex_wake_all(word);
}

/* Waits until *@word has reached @value, in the cyclic sense. */
static void word_wait(const _Atomic uint32_t *word, uint32_t value)
{
	uint32_t now;

	while (!runtime_is_stopping()) {
		now = atomic_load_explicit(word, memory_order_acquire);
		if ((int32_t)(now - value) >= 0)
			break;
		futex_wait(word, now, RUNTIME_STOP_POLL_NS);
	}
}

static void run_node(struct launch *launch, unsigned i)
{
	struct exec_node *node = &launch->exec->nodes[i];

	for (unsigned k = 0; k < node->n_waits; k++)
		word_wait(&launch->exec->nodes[node->waits[k]].ended, launch->number);
	if (runtime_is_stopping())
		return;
	for (unsigned k = 0; k < node->n_waits; k++)
		pace_not_before(launch->exec->nodes[node->waits[k]].over_ns);
	if (node->command.type == &event_record_command)
		mark_pass(launch->marks[i], pace_ns());
	else if (node->command.type != &event_follow_command)
		command_run(&node->command);
	else if (launch->marks[i] && mark_wait(launch->marks[i]))
		pace_not_before(launch->marks[i]->time_ns);
	node->over_ns = pace_ns();
	if (node->is_awaited)
		word_advance(&node->ended, launch->number);
}

static void run_lane(struct launch *launch, unsigned lane)
{
	for (unsigned i = 0; i < launch->exec->n && !runtime_is_stopping(); i++)
		if (launch->exec->nodes[i].lane == lane)
			run_node(launch, i);
}

/* Another lane of a launch, in a stream of the graph's own. */
static void lane_run(const struct command *command)
{
	struct launch *launch = command->launch.launch;

	run_lane(launch, command->launch.lane);
	if (atomic_fetch_sub_explicit(&launch->n_lanes_left, 1, memory_order_acq_rel) == 1)
		futex_wake_all(&launch->n_lanes_left);
}

static void launch_drop(struct command *command)
{
	launch_unref(command->launch.launch);
}

static const struct command_type lane_command = {.run = lane_run, .drop = launch_drop};

/* Lane 0 starts the others when its own stream has got to the launch, and ends the launch when all
 * have ended. */
static void launch_run(const struct command *at)
{
	struct command command = {.type = &lane_command};
	struct launch *launch = at->launch.launch;
	struct exec *exec = launch->exec;
	uint32_t left;

	word_wait(&exec->n_ended, launch->number - 1);
	if (runtime_is_stopping())
		return;
	pace_not_before(exec->over_ns); /* of another stream, it may be */
	command.queued_ns = pace_ns();
	for (unsigned lane = 1; lane < exec->n_lanes; lane++) {
		command.launch.launch = launch;
		command.launch.lane = lane;
		launch_ref(launch);
		/* The lane's thread is there; what can be short is memory for a command. */
		while (stream_enqueue(exec->lanes[lane], &command) != cudaSuccess) {
			if (runtime_is_stopping())
				return;
			launch_ref(launch); /* the failed call dropped one */
			sched_yield();
		}
	}
	run_lane(launch, 0);
	while (!runtime_is_stopping()) {
		/* Acquire pairs with the release of the lane that ends last. */
		left = atomic_load_explicit(&launch->n_lanes_left, memory_order_acquire);
		if (left == 0)
			break;
		futex_wait(&launch->n_lanes_left, left, RUNTIME_STOP_POLL_NS);
	}
	if (runtime_is_stopping())
		return;
	for (unsigned i = 0; i < exec->n; i++)
		pace_not_before(exec->nodes[i].over_ns);
	exec->over_ns = pace_ns();
	word_advance(&exec->n_ended, launch->number);
}

static const struct command_type launch_command = {.run = launch_run, .drop = launch_drop};

/* Called with the graph's lock held. An empty command starts each thread, where it can fail. */
static cudaError_t exec_make_lanes(struct exec *exec, struct device *device)
{
	struct command command = {.type = &command_empty};
	cudaError_t error = cudaSuccess;

	for (unsigned i = 1; i < exec->n_lanes && error == cudaSuccess; i++) {
		if (exec->lanes[i])
			continue;
		exec->lanes[i] = stream_new(device, STREAM_INTERNAL, cudaStreamNonBlocking, 0);
		if (!exec->lanes[i])
			return cudaErrorMemoryAllocation;
		error = stream_enqueue(exec->lanes[i], &command);
		if (error != cudaSuccess) {
			stream_close(exec->lanes[i]);
			stream_unref(exec->lanes[i]);
			exec->lanes[i] = NULL;
		}
	}
	return error;
}

/* Called with the graph's lock held, so that launches get into queues in the order of their
 * numbers. */
static cudaError_t launch(struct exec *exec, struct stream *stream)
{
	struct command command = {.type = &launch_command};
	cudaError_t error;
	struct launch *launch;

	error = exec_make_lanes(exec, stream->device);
	if (error != cudaSuccess)
		return error;
	launch = launch_new(exec);
	if (!launch)
		return cudaErrorMemoryAllocation;
	launch->number = exec->n_launches + 1;
	atomic_init(&launch->n_lanes_left, exec->n_lanes ? exec->n_lanes - 1 : 0);
	if (launch_arm(launch) != 0) {
		launch_unref(launch);
		return cudaErrorMemoryAllocation;
	}
	command.launch.launch = launch;
	launch_ref(launch);
	error = stream_submit(stream, &command);
	if (error == cudaSuccess)
		exec->n_launches++;
	for (unsigned i = 0; error != cudaSuccess && i < exec->n; i++)
		if (exec->nodes[i].command.type == &event_record_command)
			mark_pass(launch->marks[i], mark_now_ns());
	launch_unref(launch);
	return error;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	CLEANUP(exec_putp) struct exec *exec = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	exec = object_get(OBJECT_EXEC, (uintptr_t)handle);
	if (!exec)
		return runtime_return(cudaErrorInvalidValue);
	stream = stream_get(stream_handle);
	if (!stream)
		return runtime_return(cudaErrorInvalidResourceHandle);
	pthread_mutex_lock(&exec->lock);
	error = launch(exec, stream);
	pthread_mutex_unlock(&exec->lock);
	return runtime_return(error);
}
