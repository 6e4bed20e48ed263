/* Handles for other processes, which are refused: device memory is this process's own memory. And
 * the profiler's switches, which do nothing. */
#include "runtime.h"

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	(void)handle;
	(void)ptr;
	return runtime_return(cudaErrorNotSupported);
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	(void)ptr;
	(void)handle;
	(void)flags;
	return runtime_return(cudaErrorNotSupported);
}

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
	(void)ptr;
	return runtime_return(cudaErrorNotSupported);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	(void)handle;
	(void)event;
	return runtime_return(cudaErrorNotSupported);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	(void)event;
	(void)handle;
	return runtime_return(cudaErrorNotSupported);
}

cudaError_t cudaProfilerStart(void)
{
	return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
	return cudaSuccess;
}
