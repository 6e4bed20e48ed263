/* Graphs under construction: captured ones, and those made by hand. */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

#include "base/cleanup.h"

pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;

static void node_free(struct object *object)
{
	struct node *node = container_of(object, struct node, object);

	command_deinit(&node->command);
	node_set_deinit(&node->deps);
	free(node);
}

static void graph_free(struct object *object)
{
	struct graph *graph = container_of(object, struct graph, object);
	struct object *node;

	for (unsigned i = 0; i < graph->n; i++) {
		node = object_retire(OBJECT_NODE, graph->nodes[i]->object.handle);
		if (node)
			object_unref(node);
		graph->nodes[i]->graph = NULL;
		object_unref(&graph->nodes[i]->object);
	}
	free(graph->nodes);
	user_list_deinit(&graph->users);
	free(graph);
}

static void graph_putp(struct graph **graph)
{
	if (*graph)
		object_unref(&(*graph)->object);
}

static void node_putp(struct node **node)
{
	if (*node)
		object_unref(&(*node)->object);
}

struct graph *graph_new(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	if (graph)
		object_init(&graph->object, OBJECT_GRAPH, graph_free);
	return graph;
}

void graph_abandon(struct graph *graph)
{
	struct object *object = object_retire(OBJECT_GRAPH, graph->object.handle);

	if (object)
		object_unref(object);
	object_unref(&graph->object);
}

static int graph_grow(struct graph *graph)
{
	unsigned capacity = graph->capacity ? graph->capacity * 2 : 16;
	struct node **nodes;

	if (graph->n < graph->capacity)
		return 0;
	nodes = realloc(graph->nodes, capacity * sizeof(struct node *));
	if (!nodes)
		return -ENOMEM;
	graph->nodes = nodes;
	graph->capacity = capacity;
	return 0;
}

cudaError_t graph_add(struct graph *graph, const struct command *command,
		      const struct node_set *deps, struct node **ret_node)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return cudaErrorMemoryAllocation;
	object_init(&node->object, OBJECT_NODE, node_free);
	node->command.type = &command_empty;
	node->graph = graph;
	node->id = graph->n;
	node->type = command->type->node;
	if (graph_grow(graph) != 0 || (deps && node_set_merge(&node->deps, deps) != 0) ||
	    object_publish(&node->object) != 0) {
		object_unref(&node->object);
		return cudaErrorMemoryAllocation;
	}
	node->command = *command;
	graph->nodes[graph->n++] = node;
	*ret_node = node;
	return cudaSuccess;
}

cudaError_t graph_find_nodes(const struct graph *graph, const cudaGraphNode_t *handles, size_t n,
			     struct node_set *ret_set)
{
	for (size_t i = 0; i < n; i++) {
		CLEANUP(node_putp)
		struct node *node = object_get(OBJECT_NODE, (uintptr_t)handles[i]);

		if (!node || node->graph != graph)
			return cudaErrorInvalidValue;
		if (node_set_add(ret_set, node->id) != 0)
			return cudaErrorMemoryAllocation;
	}
	return cudaSuccess;
}

void graph_mark_before(const struct graph *graph, const struct node_set *set, bool *ret_is_before)
{
	const struct node_set *deps;

	memset(ret_is_before, 0, graph->n * sizeof(bool));
	for (unsigned i = 0; i < set->n; i++)
		ret_is_before[set->ids[i]] = true;
	for (unsigned i = graph->n; i-- > 0;) {
		deps = &graph->nodes[i]->deps;
		for (unsigned k = 0; ret_is_before[i] && k < deps->n; k++)
			ret_is_before[deps->ids[k]] = true;
	}
}

/* --- the calls ----------------------------------------------------------------------------------
 */

cudaError_t cudaGraphCreate(cudaGraph_t *ret_graph, unsigned int flags)
{
	cudaError_t error = runtime_enter();
	struct graph *graph;

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!ret_graph || flags)
		return runtime_return(cudaErrorInvalidValue);
	graph = graph_new();
	if (!graph)
		return runtime_return(cudaErrorMemoryAllocation);
	if (object_publish(&graph->object) == 0)
		*ret_graph = (cudaGraph_t)graph->object.handle;
	else
		error = cudaErrorMemoryAllocation;
	object_unref(&graph->object);
	return runtime_return(error);
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle)
{
	CLEANUP(graph_putp) struct graph *graph = NULL;
	cudaError_t error = runtime_enter();

	if (error == cudaSuccess) {
		graph = object_retire(OBJECT_GRAPH, (uintptr_t)handle);
		if (!graph)
			error = cudaErrorInvalidValue;
	}
	return runtime_return(error);
}

cudaError_t graph_add_node(cudaGraphNode_t *ret_node, cudaGraph_t handle,
			   const cudaGraphNode_t *dependencies, size_t n,
			   const struct command *command)
{
	CLEANUP(graph_putp) struct graph *graph = NULL;
	cudaError_t error = runtime_enter();
	struct node_set deps = {0};
	struct node *node;

	if (error != cudaSuccess)
		return error;
	if (!ret_node || (n && !dependencies))
		return cudaErrorInvalidValue;
	graph = object_get(OBJECT_GRAPH, (uintptr_t)handle);
	if (!graph)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&graph_lock);
	error = graph_find_nodes(graph, dependencies, n, &deps);
	if (error == cudaSuccess)
		error = graph_add(graph, command, &deps, &node);
	if (error == cudaSuccess) {
		node->is_direct = true;
		*ret_node = (cudaGraphNode_t)node->object.handle;
	}
	pthread_mutex_unlock(&graph_lock);
	node_set_deinit(&deps);
	return error;
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
				 const cudaGraphNode_t *dependencies, size_t n_dependencies,
				 const struct cudaHostNodeParams *params)
{
	struct command command = {.type = &command_host};

	if (!params || !params->fn)
		return runtime_return(cudaErrorInvalidValue);
	command.host.fn = params->fn;
	command.host.arg = params->userData;
	return runtime_return(graph_add_node(node, graph, dependencies, n_dependencies, &command));
}

static cudaError_t add_dependency(struct graph *graph, struct node *from, struct node *to)
{
	if (!from || !to || from->graph != graph || to->graph != graph || from == to)
		return cudaErrorInvalidValue;
	for (unsigned i = 0; i < to->deps.n; i++)
		if (to->deps.ids[i] == from->id)
			return cudaErrorInvalidValue;
	if (from->id > to->id)
		return cudaErrorNotSupported;
	return node_set_add(&to->deps, from->id) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t graph_add_dependencies(cudaGraph_t handle, const cudaGraphNode_t *from,
				   const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
				   size_t n)
{
	static const cudaGraphEdgeData plain;
	CLEANUP(graph_putp) struct graph *graph = NULL;
	cudaError_t error = runtime_enter();

	if (error == cudaSuccess) {
		graph = object_get(OBJECT_GRAPH, (uintptr_t)handle);
		if (!graph || (n && (!from || !to)))
			error = cudaErrorInvalidValue;
	}
	pthread_mutex_lock(&graph_lock);
	for (size_t i = 0; i < n && error == cudaSuccess; i++) {
		CLEANUP(node_putp) struct node *a = object_get(OBJECT_NODE, (uintptr_t)from[i]);
		CLEANUP(node_putp) struct node *b = object_get(OBJECT_NODE, (uintptr_t)to[i]);

		error = edges && memcmp(&edges[i], &plain, sizeof(plain))
				? cudaErrorNotSupported
				: add_dependency(graph, a, b);
	}
	pthread_mutex_unlock(&graph_lock);
	return runtime_return(error);
}

/* Gives out at most *n handles; beyond the end it writes NULL, and *n becomes the number given. */
static void give_handles(const struct graph *graph, const struct node_set *set,
			 cudaGraphNode_t *handles, size_t *n)
{
	size_t total = set ? set->n : graph->n;
	unsigned id;

	if (!handles) {
		*n = total;
		return;
	}
	for (size_t i = 0; i < *n; i++) {
		id = i < total ? (set ? set->ids[i] : (unsigned)i) : 0;
		handles[i] = i < total ? (cudaGraphNode_t)graph->nodes[id]->object.handle : NULL;
	}
	if (*n > total)
		*n = total;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *n_nodes)
{
	CLEANUP(graph_putp) struct graph *graph = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	graph = object_get(OBJECT_GRAPH, (uintptr_t)handle);
	if (!graph || !n_nodes)
		return runtime_return(cudaErrorInvalidValue);
	pthread_mutex_lock(&graph_lock);
	give_handles(graph, NULL, nodes, n_nodes);
	pthread_mutex_unlock(&graph_lock);
	return cudaSuccess;
}

cudaError_t graph_node_dependencies(cudaGraphNode_t handle, cudaGraphNode_t *dependencies,
				    cudaGraphEdgeData *edges, size_t *n)
{
	CLEANUP(node_putp) struct node *node = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	node = object_get(OBJECT_NODE, (uintptr_t)handle);
	if (!node || !n)
		return runtime_return(cudaErrorInvalidValue);
	pthread_mutex_lock(&graph_lock);
	if (node->graph)
		give_handles(node->graph, &node->deps, dependencies, n);
	else
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess && edges && dependencies)
		memset(edges, 0, *n * sizeof(*edges));
	pthread_mutex_unlock(&graph_lock);
	return runtime_return(error);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, enum cudaGraphNodeType *type)
{
	CLEANUP(node_putp) struct node *node = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	node = object_get(OBJECT_NODE, (uintptr_t)handle);
	if (!node || !type)
		return runtime_return(cudaErrorInvalidValue);
	*type = node->type;
	return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph_handle, cudaUserObject_t handle,
				      unsigned int count, unsigned int flags)
{
	CLEANUP(user_putp) struct user_object *user = NULL;
	CLEANUP(graph_putp) struct graph *graph = NULL;
	cudaError_t error = runtime_enter();
	unsigned n = 0;

	if (error != cudaSuccess)
		return runtime_return(error);
	user = object_get(OBJECT_USER, (uintptr_t)handle);
	graph = object_get(OBJECT_GRAPH, (uintptr_t)graph_handle);
	if (!user || !graph || !count || flags & ~(unsigned)cudaGraphUserObjectMove)
		return runtime_return(cudaErrorInvalidValue);
	pthread_mutex_lock(&graph_lock);
	while (n < count && user_list_add(&graph->users, user) == 0)
		n++;
	pthread_mutex_unlock(&graph_lock);
	if (!(flags & cudaGraphUserObjectMove))
		atomic_fetch_add_explicit(&user->n_owned, n, memory_order_relaxed);
	return runtime_return(n == count ? cudaSuccess : cudaErrorMemoryAllocation);
}
