/* Memory pools, handles between processes, the profiler, limits. Included by cuda_runtime_api.h.
 *
 * Device memory is host memory: a pool has nothing to keep. Each device's default pool counts;
 * pools that a program creates do not, and say so. Handles between processes are refused
 * (cudaErrorNotSupported). */
#pragma once

typedef struct CUmemPoolHandle_st *cudaMemPool_t;

enum cudaMemPoolAttr {
	cudaMemPoolReuseFollowEventDependencies = 0x1,
	cudaMemPoolReuseAllowOpportunistic = 0x2,
	cudaMemPoolReuseAllowInternalDependencies = 0x3,
	cudaMemPoolAttrReleaseThreshold = 0x4,
	cudaMemPoolAttrReservedMemCurrent = 0x5,
	cudaMemPoolAttrReservedMemHigh = 0x6,
	cudaMemPoolAttrUsedMemCurrent = 0x7,
	cudaMemPoolAttrUsedMemHigh = 0x8
};

enum cudaMemLocationType {
	cudaMemLocationTypeInvalid = 0,
	cudaMemLocationTypeDevice = 1,
	cudaMemLocationTypeHost = 2,
	cudaMemLocationTypeHostNuma = 3,
	cudaMemLocationTypeHostNumaCurrent = 4
};

struct cudaMemLocation {
	enum cudaMemLocationType type;
	int id;
};

enum cudaMemAccessFlags {
	cudaMemAccessFlagsProtNone = 0,
	cudaMemAccessFlagsProtRead = 1,
	cudaMemAccessFlagsProtReadWrite = 3
};

struct cudaMemAccessDesc {
	struct cudaMemLocation location;
	enum cudaMemAccessFlags flags;
};

enum cudaMemAllocationType {
	cudaMemAllocationTypeInvalid = 0,
	cudaMemAllocationTypePinned = 1,
	cudaMemAllocationTypeManaged = 2
};

enum cudaMemAllocationHandleType {
	cudaMemHandleTypeNone = 0,
	cudaMemHandleTypePosixFileDescriptor = 1,
	cudaMemHandleTypeWin32 = 2,
	cudaMemHandleTypeWin32Kmt = 4,
	cudaMemHandleTypeFabric = 8
};

struct cudaMemPoolProps {
	enum cudaMemAllocationType allocType;
	enum cudaMemAllocationHandleType handleTypes;
	struct cudaMemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
};

NBOX_CUDART_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool,
					      const struct cudaMemPoolProps *props);
NBOX_CUDART_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
NBOX_CUDART_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
NBOX_CUDART_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
NBOX_CUDART_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
/* Reserved and used are both what cudaMalloc and cudaMallocAsync gave out and did not get back.
 * The highest values can be set to 0, which makes them what they are now. */
NBOX_CUDART_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr,
						    void *value);
NBOX_CUDART_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr,
						    void *value);
NBOX_CUDART_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t min_bytes);
NBOX_CUDART_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
						 const struct cudaMemAccessDesc *descs, size_t n);
NBOX_CUDART_API cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
						 struct cudaMemLocation *location);
NBOX_CUDART_API cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool,
						    cudaStream_t stream);

enum cudaGraphMemAttributeType {
	cudaGraphMemAttrUsedMemCurrent = 0x0,
	cudaGraphMemAttrUsedMemHigh = 0x1,
	cudaGraphMemAttrReservedMemCurrent = 0x2,
	cudaGraphMemAttrReservedMemHigh = 0x3
};

/* Graphs own no memory here (a captured allocation is refused): all are 0. */
NBOX_CUDART_API cudaError_t cudaDeviceGetGraphMemAttribute(int device,
							   enum cudaGraphMemAttributeType attr,
							   void *value);
NBOX_CUDART_API cudaError_t cudaDeviceSetGraphMemAttribute(int device,
							   enum cudaGraphMemAttributeType attr,
							   void *value);
NBOX_CUDART_API cudaError_t cudaDeviceGraphMemTrim(int device);

typedef struct cudaIpcMemHandle_st {
	char reserved[64];
} cudaIpcMemHandle_t;

typedef struct cudaIpcEventHandle_st {
	char reserved[64];
} cudaIpcEventHandle_t;

#define cudaIpcMemLazyEnablePeerAccess 0x01

NBOX_CUDART_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr);
NBOX_CUDART_API cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle,
						 unsigned int flags);
NBOX_CUDART_API cudaError_t cudaIpcCloseMemHandle(void *ptr);
NBOX_CUDART_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event);
NBOX_CUDART_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle);

enum cudaLimit {
	cudaLimitStackSize = 0,
	cudaLimitPrintfFifoSize = 1,
	cudaLimitMallocHeapSize = 2,
	cudaLimitDevRuntimeSyncDepth = 3,
	cudaLimitDevRuntimePendingLaunchCount = 4,
	cudaLimitMaxL2FetchGranularity = 5,
	cudaLimitPersistingL2CacheSize = 6
};

/* They limit device code, which does not run: any value is taken. */
NBOX_CUDART_API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);

/* There is no profiler to switch: both succeed, as NVIDIA's do without one. */
NBOX_CUDART_API cudaError_t cudaProfilerStart(void);
NBOX_CUDART_API cudaError_t cudaProfilerStop(void);
