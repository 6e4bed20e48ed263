/* Kernels in the CUDA runtime API: launches, attributes, occupancy, and the symbols of device
 * variables. Included by cuda_runtime_api.h.
 *
 * A host without a GPU cannot run a kernel's code. A launch is a place in the stream that takes
 * the time that NBOX_HOST_KERNEL_TIME tells (0 unless set) and changes no memory. */
#pragma once

struct uint3 {
	unsigned int x, y, z;
};
typedef struct uint3 uint3;

struct dim3 {
	unsigned int x, y, z;
};
typedef struct dim3 dim3;

/* A kernel as __cudaGetKernel gives it out. */
typedef struct CUkern_st *cudaKernel_t;
typedef struct CUfunc_st *cudaFunction_t;

struct cudaKernelNodeParams {
	void *func;
	dim3 gridDim;
	dim3 blockDim;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
};

enum cudaLaunchAttributeID {
	cudaLaunchAttributeIgnore = 0,
	cudaLaunchAttributeAccessPolicyWindow = 1,
	cudaLaunchAttributeCooperative = 2,
	cudaLaunchAttributeSynchronizationPolicy = 3,
	cudaLaunchAttributeClusterDimension = 4,
	cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
	cudaLaunchAttributeProgrammaticStreamSerialization = 6,
	cudaLaunchAttributeProgrammaticEvent = 7,
	cudaLaunchAttributePriority = 8
};

typedef union cudaLaunchAttributeValue {
	char pad[64];
	int cooperative;
	int priority;
	struct {
		unsigned int x, y, z;
	} clusterDim;
} cudaLaunchAttributeValue;

typedef struct cudaLaunchAttribute_st {
	enum cudaLaunchAttributeID id;
	char pad[8 - sizeof(enum cudaLaunchAttributeID)];
	cudaLaunchAttributeValue val;
} cudaLaunchAttribute;

typedef struct cudaLaunchConfig_st {
	dim3 gridDim;
	dim3 blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	cudaLaunchAttribute *attrs;
	unsigned int numAttrs;
} cudaLaunchConfig_t;

struct cudaFuncAttributes {
	size_t sharedSizeBytes;
	size_t constSizeBytes;
	size_t localSizeBytes;
	int maxThreadsPerBlock;
	int numRegs;
	int ptxVersion;
	int binaryVersion;
	int cacheModeCA;
	int maxDynamicSharedSizeBytes;
	int preferredShmemCarveout;
	int clusterDimMustBeSet;
	int requiredClusterWidth;
	int requiredClusterHeight;
	int requiredClusterDepth;
	int clusterSchedulingPolicyPreference;
	int nonPortableClusterSizeAllowed;
	int reserved[16];
};

#define cudaOccupancyDefault 0x00
#define cudaOccupancyDisableCachingOverride 0x01

/* @func is the host's stand-in function of a registered kernel, or a cudaKernel_t.
 * cudaErrorInvalidDeviceFunction when it is neither. */
NBOX_CUDART_API cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args,
					     size_t shared_bytes, cudaStream_t stream);
NBOX_CUDART_API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
						void **args);
NBOX_CUDART_API cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block,
							void **args, size_t shared_bytes,
							cudaStream_t stream);
NBOX_CUDART_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
						   const cudaGraphNode_t *dependencies,
						   size_t n_dependencies,
						   const struct cudaKernelNodeParams *params);
/* The driver API, which takes it, refuses to launch. */
NBOX_CUDART_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol);
NBOX_CUDART_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
						  const void *func);
NBOX_CUDART_API cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attribute,
						 int value);
NBOX_CUDART_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n_blocks,
									  const void *func,
									  int block_size,
									  size_t shared_bytes);
NBOX_CUDART_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *n_blocks, const void *func, int block_size, size_t shared_bytes, unsigned int flags);

/* @symbol is the host's stand-in of a registered device variable. Each device has a copy of its
 * own, zero at first: initial values are in the device code, which is not read. */
NBOX_CUDART_API cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol);
NBOX_CUDART_API cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol);
NBOX_CUDART_API cudaError_t cudaMemcpyToSymbol(
	const void *symbol, const void *src, size_t count, size_t offset NBOX_CUDART_DEFAULT(0),
	enum cudaMemcpyKind kind NBOX_CUDART_DEFAULT(cudaMemcpyHostToDevice));
NBOX_CUDART_API cudaError_t cudaMemcpyFromSymbol(
	void *dst, const void *symbol, size_t count, size_t offset NBOX_CUDART_DEFAULT(0),
	enum cudaMemcpyKind kind NBOX_CUDART_DEFAULT(cudaMemcpyDeviceToHost));
