/* Functions of stream capture whose arguments differ between CUDA 12 and 13; compat.c exports
 * them. */
#pragma once

#include <cuda_runtime_api.h>

/* What cudaStreamGetCaptureInfo and cudaStreamUpdateCaptureDependencies do; their arguments differ
 * between CUDA 12 and 13. */
cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
			 unsigned long long *id, cudaGraph_t *graph,
			 const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
			 size_t *n_dependencies);
cudaError_t capture_update(cudaStream_t stream, const cudaGraphNode_t *dependencies, size_t n,
			   unsigned flags);
