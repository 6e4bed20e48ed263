/* The calls of stream capture. */
#include "capture-api.h"

#include "capture.h"
#include "graph.h"
#include "submit.h"

#include "base/cleanup.h"

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
		return runtime_return(cudaErrorInvalidValue);
	stream = stream_get(handle);
	if (!stream)
		return runtime_return(cudaErrorInvalidResourceHandle);
	if (stream->role == STREAM_LEGACY)
		return runtime_return(cudaErrorStreamCaptureUnsupported);
	pthread_mutex_lock(&graph_lock);
	error = atomic_load(&stream->capture) ? cudaErrorIllegalState : capture_begin(stream, mode);
	pthread_mutex_unlock(&graph_lock);
	return runtime_return(error);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *ret_graph)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = runtime_enter();
	struct graph *graph = NULL;

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!ret_graph)
		return runtime_return(cudaErrorInvalidValue);
	stream = stream_get(handle);
	if (!stream)
		return runtime_return(cudaErrorInvalidResourceHandle);
	pthread_mutex_lock(&graph_lock);
	error = capture_finish(stream, &graph);
	pthread_mutex_unlock(&graph_lock);
	*ret_graph = NULL;
	if (error == cudaSuccess) {
		*ret_graph = (cudaGraph_t)graph->object.handle;
		object_unref(&graph->object);
	} else if (graph) {
		graph_abandon(graph);
	}
	return runtime_return(error);
}

cudaError_t capture_info(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
			 unsigned long long *id, cudaGraph_t *graph,
			 const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
			 size_t *n_dependencies)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!status)
		return runtime_return(cudaErrorInvalidValue);
	stream = stream_get(handle);
	if (!stream)
		return runtime_return(cudaErrorInvalidResourceHandle);
	if (stream->role == STREAM_LEGACY) {
		*status = cudaStreamCaptureStatusNone;
		return runtime_return(capture_check_legacy(stream->device));
	}
	if (edges)
		*edges = NULL; /* edges here carry no data */
	pthread_mutex_lock(&graph_lock);
	error = capture_look(stream, status, id, graph, dependencies, n_dependencies);
	pthread_mutex_unlock(&graph_lock);
	return runtime_return(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	return capture_info(stream, status, NULL, NULL, NULL, NULL, NULL);
}

cudaError_t capture_update(cudaStream_t handle, const cudaGraphNode_t *dependencies, size_t n,
			   unsigned flags)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	if (flags > cudaStreamSetCaptureDependencies || (n && !dependencies))
		return runtime_return(cudaErrorInvalidValue);
	stream = stream_get(handle);
	if (!stream)
		return runtime_return(cudaErrorInvalidResourceHandle);
	pthread_mutex_lock(&graph_lock);
	error = capture_set_frontier(stream, dependencies, n, flags);
	pthread_mutex_unlock(&graph_lock);
	return runtime_return(error);
}
