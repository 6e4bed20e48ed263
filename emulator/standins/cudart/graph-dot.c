/* cudaGraphDebugDotPrint: a graph as a text for Graphviz. */
#include <stdio.h>

#include "graph.h"
#include "runtime.h"

static const char *node_name(const struct node *node)
{
	static const char *const names[] = {
		[cudaGraphNodeTypeKernel] = "kernel",
		[cudaGraphNodeTypeMemcpy] = "memcpy",
		[cudaGraphNodeTypeMemset] = "memset",
		[cudaGraphNodeTypeHost] = "host function",
		[cudaGraphNodeTypeGraph] = "graph",
		[cudaGraphNodeTypeEmpty] = "empty",
		[cudaGraphNodeTypeWaitEvent] = "event wait",
		[cudaGraphNodeTypeEventRecord] = "event record",
	};

	return (size_t)node->type < sizeof(names) / sizeof(names[0]) ? names[node->type] : "other";
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t handle, const char *path, unsigned int flags)
{
	cudaError_t error = runtime_enter();
	struct graph *graph;
	FILE *file;

	(void)flags; /* how much to say of a node: there is no more than its type */
	if (error != cudaSuccess)
		return runtime_return(error);
	graph = object_get(OBJECT_GRAPH, (uintptr_t)handle);
	if (!graph || !path) {
		if (graph)
			object_unref(&graph->object);
		return runtime_return(cudaErrorInvalidValue);
	}
	file = fopen(path, "we");
	if (!file)
		error = cudaErrorOperatingSystem;
	pthread_mutex_lock(&graph_lock);
	if (file)
		fprintf(file, "digraph graph_%llu {\n", (unsigned long long)graph->object.handle);
	for (unsigned i = 0; file && i < graph->n; i++) {
		fprintf(file, "\tn%u [label=\"%u: %s\"];\n", i, i, node_name(graph->nodes[i]));
		for (unsigned k = 0; k < graph->nodes[i]->deps.n; k++)
			fprintf(file, "\tn%u -> n%u;\n", graph->nodes[i]->deps.ids[k], i);
	}
	pthread_mutex_unlock(&graph_lock);
	if (file) {
		fputs("}\n", file);
		if (fclose(file) != 0)
			error = cudaErrorOperatingSystem;
	}
	object_unref(&graph->object);
	return runtime_return(error);
}
