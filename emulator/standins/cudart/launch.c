/* Kernel launches: a launch takes its place in a stream and a configured time, and does nothing. */
#include <string.h>

#include "graph.h"
#include "kernel-time.h"
#include "registry.h"
#include "runtime.h"
#include "submit.h"

#include <cudart/compiler.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/units.h"

#define MAX_THREADS_PER_BLOCK 1024
#define MAX_CONFIGURATIONS 16 /* calls of kernels whose arguments call kernels */

/* --- how long a launch takes ---------------------------------------------------------------------
 */

static const struct command_type kernel_command = {
	.run = command_take_time,
	.is_capturable = true,
	.node = cudaGraphNodeTypeKernel,
};

/* --- launches ------------------------------------------------------------------------------------
 */

static bool is_launchable(dim3 grid, dim3 block)
{
	return grid.x && grid.y && grid.z && block.x && block.y && block.z &&
	       grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535 && block.x <= 1024 &&
	       block.y <= 1024 && block.z <= 64 &&
	       (uint64_t)block.x * block.y * block.z <= MAX_THREADS_PER_BLOCK;
}

/* Holds a place in the stream for @ns. */
static cudaError_t submit(cudaStream_t handle, uint64_t ns)
{
	struct command command = {.type = &kernel_command, .takes_ns = ns};
	CLEANUP(stream_putp) struct stream *stream = stream_get(handle);

	return stream ? stream_submit(stream, &command) : cudaErrorInvalidResourceHandle;
}

static cudaError_t price(const void *func, dim3 grid, dim3 block, uint64_t *ret_ns)
{
	struct symbol *kernel = symbol_find(SYMBOL_KERNEL, func);
	cudaError_t error = runtime_enter();

	if (!kernel)
		return cudaErrorInvalidDeviceFunction;
	if (error == cudaSuccess &&
	    (!is_launchable(grid, block) || !kernel_time_of(kernel, grid, block, ret_ns)))
		error = cudaErrorInvalidConfiguration;
	return error;
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args,
			     size_t shared_bytes, cudaStream_t stream)
{
	uint64_t ns = 0;
	cudaError_t error = price(func, grid, block, &ns);

	(void)args;
	(void)shared_bytes;
	return runtime_return(error == cudaSuccess ? submit(stream, ns) : error);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *dependencies, size_t n_dependencies,
				   const struct cudaKernelNodeParams *params)
{
	struct command command = {.type = &kernel_command};
	cudaError_t error = cudaErrorInvalidValue;

	if (params)
		error = price(params->func, params->gridDim, params->blockDim, &command.takes_ns);
	if (error == cudaSuccess)
		error = graph_add_node(node, graph, dependencies, n_dependencies, &command);
	return runtime_return(error);
}

cudaError_t __cudaNboxProduct(cudaStream_t stream, const struct kernel_product *product)
{
	cudaError_t error = runtime_enter();
	uint64_t ns;

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!kernel_time_of_product(product, &ns))
		return runtime_return(cudaErrorInvalidConfiguration);
	return runtime_return(submit(stream, ns));
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
					size_t shared_bytes, cudaStream_t stream)
{
	return cudaLaunchKernel(func, grid, block, args, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	if (!config || (config->numAttrs && !config->attrs))
		return runtime_return(cudaErrorInvalidValue);
	return cudaLaunchKernel(func, config->gridDim, config->blockDim, args,
				config->dynamicSmemBytes, config->stream);
}

/* --- kernel<<<...>>>() ---------------------------------------------------------------------------
 */

static _Thread_local struct {
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
} configurations[MAX_CONFIGURATIONS];
static _Thread_local unsigned n_configurations;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
				     struct CUstream_st *stream)
{
	if (n_configurations == MAX_CONFIGURATIONS)
		return (unsigned)runtime_return(cudaErrorInvalidConfiguration);
	configurations[n_configurations].grid = grid;
	configurations[n_configurations].block = block;
	configurations[n_configurations].shared_bytes = shared_bytes;
	configurations[n_configurations].stream = stream;
	n_configurations++;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
	if (!n_configurations)
		return runtime_return(cudaErrorMissingConfiguration);
	n_configurations--;
	*grid = configurations[n_configurations].grid;
	*block = configurations[n_configurations].block;
	*shared_bytes = configurations[n_configurations].shared_bytes;
	memcpy(stream, &configurations[n_configurations].stream, sizeof(cudaStream_t));
	return cudaSuccess;
}

/* The handle is the address that stands for the kernel: both forms of launch are one. */
static cudaError_t find_kernel(const void *host_function, void **ret)
{
	if (!ret)
		return runtime_return(cudaErrorInvalidValue);
	if (!symbol_find(SYMBOL_KERNEL, host_function))
		return runtime_return(cudaErrorInvalidDeviceFunction);
	*ret = (void *)(uintptr_t)host_function;
	return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host_function)
{
	return find_kernel(host_function, (void **)kernel);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	return find_kernel(symbol, (void **)function);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared_bytes, cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}

/* --- attributes and occupancy --------------------------------------------------------------------
 */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *func)
{
	if (!attributes)
		return runtime_return(cudaErrorInvalidValue);
	if (!symbol_find(SYMBOL_KERNEL, func))
		return runtime_return(cudaErrorInvalidDeviceFunction);
	*attributes = (struct cudaFuncAttributes){
		.maxThreadsPerBlock = MAX_THREADS_PER_BLOCK,
		.numRegs = 32, /* 1024 threads of it fill the 65536 registers of an SM half */
		.ptxVersion = 80,
		.binaryVersion = 80,
		.maxDynamicSharedSizeBytes = 49152,
	};
	return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attribute, int value)
{
	(void)value;
	if ((int)attribute < cudaFuncAttributeMaxDynamicSharedMemorySize)
		return runtime_return(cudaErrorInvalidValue);
	if (!symbol_find(SYMBOL_KERNEL, func))
		return runtime_return(cudaErrorInvalidDeviceFunction);
	return cudaSuccess;
}

/* By threads alone; what a kernel takes of registers and shared memory is not known. */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n_blocks, const void *func,
								   int block_size,
								   size_t shared_bytes,
								   unsigned int flags)
{
	int value, device;
	cudaError_t error;

	(void)shared_bytes;
	if (!n_blocks || block_size <= 0 || flags & ~cudaOccupancyDisableCachingOverride)
		return runtime_return(cudaErrorInvalidValue);
	if (!symbol_find(SYMBOL_KERNEL, func))
		return runtime_return(cudaErrorInvalidDeviceFunction);
	error = cudaGetDevice(&device);
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerMultiProcessor,
					       device);
	if (error == cudaSuccess)
		*n_blocks = block_size > MAX_THREADS_PER_BLOCK ? 0 : value / block_size;
	return error;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n_blocks, const void *func,
							  int block_size, size_t shared_bytes)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n_blocks, func, block_size,
								      shared_bytes,
								      cudaOccupancyDefault);
}
