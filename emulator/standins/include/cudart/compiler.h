/* What code that nvcc made calls by itself: registration of its kernels and variables when it is
 * loaded, and the two halves of kernel<<<...>>>(). For programs built with nvcc and for tests. */
#pragma once

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return: a handle of the module, never NULL (without memory the process ends: the generated code
 * has nobody to complain to, and goes on in any case). @fat_binary is not looked into. */
NBOX_CUDART_API void **__cudaRegisterFatBinary(void *fat_binary);
NBOX_CUDART_API void __cudaRegisterFatBinaryEnd(void **module);
/* Forgets all that was registered with @module. */
NBOX_CUDART_API void __cudaUnregisterFatBinary(void **module);
NBOX_CUDART_API void __cudaRegisterFunction(void **module, const char *host_function,
					    char *device_function, const char *device_name,
					    int thread_limit, uint3 *thread_id, uint3 *block_id,
					    dim3 *block_dim, dim3 *grid_dim, int *warp_size);
NBOX_CUDART_API void __cudaRegisterVar(void **module, char *host_variable, char *device_address,
				       const char *device_name, int external, size_t size,
				       int constant, int global);
NBOX_CUDART_API void __cudaRegisterManagedVar(void **module, void **host_variable,
					      char *device_address, const char *device_name,
					      int external, size_t size, int constant, int global);
NBOX_CUDART_API char __cudaInitModule(void **module);

NBOX_CUDART_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
						     struct CUstream_st *stream);
NBOX_CUDART_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
						       size_t *shared_bytes, void *stream);
NBOX_CUDART_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host_function);
NBOX_CUDART_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
					       void **args, size_t shared_bytes,
					       cudaStream_t stream);

#ifdef __cplusplus
}
#endif
