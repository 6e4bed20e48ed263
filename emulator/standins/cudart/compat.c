/* The functions whose arguments changed between CUDA 12 and 13. Each of the two libraries exports
 * the form that programs built for its version ask for. */
#include "capture-api.h"
#include "graph.h"

#if NBOX_CUDART_MAJOR == 13

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *id, cudaGraph_t *graph,
				     const cudaGraphNode_t **dependencies,
				     const cudaGraphEdgeData **edges, size_t *n_dependencies)
{
	return capture_info(stream, status, id, graph, dependencies, edges, n_dependencies);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
						const cudaGraphEdgeData *edges,
						size_t n_dependencies, unsigned int flags)
{
	(void)edges;
	return capture_update(stream, dependencies, n_dependencies, flags);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
					 cudaGraphEdgeData *edges, size_t *n_dependencies)
{
	return graph_node_dependencies(node, dependencies, edges, n_dependencies);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
				     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
				     size_t n)
{
	return graph_add_dependencies(graph, from, to, edges, n);
}

#else

/* Their names with other arguments are declared in the header: the symbols are named here. */
#define SYMBOL(name) __asm__(name) __attribute__((visibility("default")))

cudaError_t info_v1(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
		    unsigned long long *id) SYMBOL("cudaStreamGetCaptureInfo");
cudaError_t info_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
		    unsigned long long *id, cudaGraph_t *graph,
		    const cudaGraphNode_t **dependencies, size_t *n_dependencies)
	SYMBOL("cudaStreamGetCaptureInfo_v2");
cudaError_t info_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
		    unsigned long long *id, cudaGraph_t *graph,
		    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
		    size_t *n_dependencies) SYMBOL("cudaStreamGetCaptureInfo_v3");
cudaError_t update_v1(cudaStream_t stream, cudaGraphNode_t *dependencies, size_t n_dependencies,
		      unsigned int flags) SYMBOL("cudaStreamUpdateCaptureDependencies");
cudaError_t update_v2(cudaStream_t stream, cudaGraphNode_t *dependencies,
		      const cudaGraphEdgeData *edges, size_t n_dependencies, unsigned int flags)
	SYMBOL("cudaStreamUpdateCaptureDependencies_v2");
cudaError_t dependencies_v1(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
			    size_t *n_dependencies) SYMBOL("cudaGraphNodeGetDependencies");
cudaError_t dependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
			    cudaGraphEdgeData *edges, size_t *n_dependencies)
	SYMBOL("cudaGraphNodeGetDependencies_v2");
cudaError_t add_v1(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
		   size_t n) SYMBOL("cudaGraphAddDependencies");
cudaError_t add_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
		   const cudaGraphEdgeData *edges, size_t n) SYMBOL("cudaGraphAddDependencies_v2");
cudaError_t elapsed_v2(float *ms, cudaEvent_t start, cudaEvent_t end)
	SYMBOL("cudaEventElapsedTime_v2");

cudaError_t info_v1(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
		    unsigned long long *id)
{
	return capture_info(stream, status, id, NULL, NULL, NULL, NULL);
}

cudaError_t info_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
		    unsigned long long *id, cudaGraph_t *graph,
		    const cudaGraphNode_t **dependencies, size_t *n_dependencies)
{
	return capture_info(stream, status, id, graph, dependencies, NULL, n_dependencies);
}

cudaError_t info_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
		    unsigned long long *id, cudaGraph_t *graph,
		    const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
		    size_t *n_dependencies)
{
	return capture_info(stream, status, id, graph, dependencies, edges, n_dependencies);
}

cudaError_t update_v1(cudaStream_t stream, cudaGraphNode_t *dependencies, size_t n_dependencies,
		      unsigned int flags)
{
	return capture_update(stream, dependencies, n_dependencies, flags);
}

cudaError_t update_v2(cudaStream_t stream, cudaGraphNode_t *dependencies,
		      const cudaGraphEdgeData *edges, size_t n_dependencies, unsigned int flags)
{
	(void)edges;
	return capture_update(stream, dependencies, n_dependencies, flags);
}

cudaError_t dependencies_v1(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
			    size_t *n_dependencies)
{
	return graph_node_dependencies(node, dependencies, NULL, n_dependencies);
}

cudaError_t dependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
			    cudaGraphEdgeData *edges, size_t *n_dependencies)
{
	return graph_node_dependencies(node, dependencies, edges, n_dependencies);
}

cudaError_t add_v1(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
		   size_t n)
{
	return graph_add_dependencies(graph, from, to, NULL, n);
}

cudaError_t add_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
		   const cudaGraphEdgeData *edges, size_t n)
{
	return graph_add_dependencies(graph, from, to, edges, n);
}

cudaError_t elapsed_v2(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return cudaEventElapsedTime(ms, start, end);
}

#endif
