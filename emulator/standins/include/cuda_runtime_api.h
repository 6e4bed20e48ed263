/* The CUDA runtime API, as far as the host CUDA runtime implements it.
 *
 * Declared by ourselves from the public documentation, with the names, values and layouts of
 * CUDA 13's ABI, so that programs built with NVIDIA's header run on libcudart.so.13 of this
 * folder and the other way round. tests/unit/standins proves it against NVIDIA's header wherever
 * that is installed. The behaviour is NVIDIA's documented one; what differs on a host without
 * a GPU is said at the function. No kernel runs here: work on the host is cudaLaunchHostFunc. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CUDART_VERSION
#define CUDART_VERSION 13000
#endif
#define CUDART_CB
#define NBOX_CUDART_API __attribute__((visibility("default")))

typedef enum cudaError {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorCudartUnloading = 4,
	cudaErrorProfilerDisabled = 5,
	cudaErrorProfilerNotInitialized = 6,
	cudaErrorProfilerAlreadyStarted = 7,
	cudaErrorProfilerAlreadyStopped = 8,
	cudaErrorInvalidConfiguration = 9,
	cudaErrorInvalidPitchValue = 12,
	cudaErrorInvalidSymbol = 13,
	cudaErrorInvalidHostPointer = 16,
	cudaErrorInvalidDevicePointer = 17,
	cudaErrorInvalidTexture = 18,
	cudaErrorInvalidTextureBinding = 19,
	cudaErrorInvalidChannelDescriptor = 20,
	cudaErrorInvalidMemcpyDirection = 21,
	cudaErrorAddressOfConstant = 22,
	cudaErrorTextureFetchFailed = 23,
	cudaErrorTextureNotBound = 24,
	cudaErrorSynchronizationError = 25,
	cudaErrorInvalidFilterSetting = 26,
	cudaErrorInvalidNormSetting = 27,
	cudaErrorMixedDeviceExecution = 28,
	cudaErrorNotYetImplemented = 31,
	cudaErrorMemoryValueTooLarge = 32,
	cudaErrorStubLibrary = 34,
	cudaErrorInsufficientDriver = 35,
	cudaErrorCallRequiresNewerDriver = 36,
	cudaErrorInvalidSurface = 37,
	cudaErrorDuplicateVariableName = 43,
	cudaErrorDuplicateTextureName = 44,
	cudaErrorDuplicateSurfaceName = 45,
	cudaErrorDevicesUnavailable = 46,
	cudaErrorIncompatibleDriverContext = 49,
	cudaErrorMissingConfiguration = 52,
	cudaErrorPriorLaunchFailure = 53,
	cudaErrorLaunchMaxDepthExceeded = 65,
	cudaErrorLaunchFileScopedTex = 66,
	cudaErrorLaunchFileScopedSurf = 67,
	cudaErrorSyncDepthExceeded = 68,
	cudaErrorLaunchPendingCountExceeded = 69,
	cudaErrorInvalidDeviceFunction = 98,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorDeviceNotLicensed = 102,
	cudaErrorSoftwareValidityNotEstablished = 103,
	cudaErrorStartupFailure = 127,
	cudaErrorInvalidKernelImage = 200,
	cudaErrorDeviceUninitialized = 201,
	cudaErrorMapBufferObjectFailed = 205,
	cudaErrorUnmapBufferObjectFailed = 206,
	cudaErrorArrayIsMapped = 207,
	cudaErrorAlreadyMapped = 208,
	cudaErrorNoKernelImageForDevice = 209,
	cudaErrorAlreadyAcquired = 210,
	cudaErrorNotMapped = 211,
	cudaErrorNotMappedAsArray = 212,
	cudaErrorNotMappedAsPointer = 213,
	cudaErrorECCUncorrectable = 214,
	cudaErrorUnsupportedLimit = 215,
	cudaErrorDeviceAlreadyInUse = 216,
	cudaErrorPeerAccessUnsupported = 217,
	cudaErrorInvalidPtx = 218,
	cudaErrorInvalidGraphicsContext = 219,
	cudaErrorNvlinkUncorrectable = 220,
	cudaErrorJitCompilerNotFound = 221,
	cudaErrorUnsupportedPtxVersion = 222,
	cudaErrorJitCompilationDisabled = 223,
	cudaErrorUnsupportedExecAffinity = 224,
	cudaErrorUnsupportedDevSideSync = 225,
	cudaErrorContained = 226,
	cudaErrorInvalidSource = 300,
	cudaErrorFileNotFound = 301,
	cudaErrorSharedObjectSymbolNotFound = 302,
	cudaErrorSharedObjectInitFailed = 303,
	cudaErrorOperatingSystem = 304,
	cudaErrorInvalidResourceHandle = 400,
	cudaErrorIllegalState = 401,
	cudaErrorLossyQuery = 402,
	cudaErrorSymbolNotFound = 500,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorLaunchOutOfResources = 701,
	cudaErrorLaunchTimeout = 702,
	cudaErrorLaunchIncompatibleTexturing = 703,
	cudaErrorPeerAccessAlreadyEnabled = 704,
	cudaErrorPeerAccessNotEnabled = 705,
	cudaErrorSetOnActiveProcess = 708,
	cudaErrorContextIsDestroyed = 709,
	cudaErrorAssert = 710,
	cudaErrorTooManyPeers = 711,
	cudaErrorHostMemoryAlreadyRegistered = 712,
	cudaErrorHostMemoryNotRegistered = 713,
	cudaErrorHardwareStackError = 714,
	cudaErrorIllegalInstruction = 715,
	cudaErrorMisalignedAddress = 716,
	cudaErrorInvalidAddressSpace = 717,
	cudaErrorInvalidPc = 718,
	cudaErrorLaunchFailure = 719,
	cudaErrorCooperativeLaunchTooLarge = 720,
	cudaErrorTensorMemoryLeak = 721,
	cudaErrorNotPermitted = 800,
	cudaErrorNotSupported = 801,
	cudaErrorSystemNotReady = 802,
	cudaErrorSystemDriverMismatch = 803,
	cudaErrorCompatNotSupportedOnDevice = 804,
	cudaErrorMpsConnectionFailed = 805,
	cudaErrorMpsRpcFailure = 806,
	cudaErrorMpsServerNotReady = 807,
	cudaErrorMpsMaxClientsReached = 808,
	cudaErrorMpsMaxConnectionsReached = 809,
	cudaErrorMpsClientTerminated = 810,
	cudaErrorCdpNotSupported = 811,
	cudaErrorCdpVersionMismatch = 812,
	cudaErrorStreamCaptureUnsupported = 900,
	cudaErrorStreamCaptureInvalidated = 901,
	cudaErrorStreamCaptureMerge = 902,
	cudaErrorStreamCaptureUnmatched = 903,
	cudaErrorStreamCaptureUnjoined = 904,
	cudaErrorStreamCaptureIsolation = 905,
	cudaErrorStreamCaptureImplicit = 906,
	cudaErrorCapturedEvent = 907,
	cudaErrorStreamCaptureWrongThread = 908,
	cudaErrorTimeout = 909,
	cudaErrorGraphExecUpdateFailure = 910,
	cudaErrorExternalDevice = 911,
	cudaErrorInvalidClusterSize = 912,
	cudaErrorFunctionNotLoaded = 913,
	cudaErrorInvalidResourceType = 914,
	cudaErrorInvalidResourceConfiguration = 915,
	cudaErrorUnknown = 999,
} cudaError_t;

enum cudaMemcpyKind {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3,
	cudaMemcpyDefault = 4
};

enum cudaMemoryType {
	cudaMemoryTypeUnregistered = 0,
	cudaMemoryTypeHost = 1,
	cudaMemoryTypeDevice = 2,
	cudaMemoryTypeManaged = 3
};

enum cudaComputeMode {
	cudaComputeModeDefault = 0,
	cudaComputeModeExclusive = 1,
	cudaComputeModeProhibited = 2,
	cudaComputeModeExclusiveProcess = 3
};

enum cudaStreamCaptureStatus {
	cudaStreamCaptureStatusNone = 0,
	cudaStreamCaptureStatusActive = 1,
	cudaStreamCaptureStatusInvalidated = 2
};

enum cudaStreamCaptureMode {
	cudaStreamCaptureModeGlobal = 0,
	cudaStreamCaptureModeThreadLocal = 1,
	cudaStreamCaptureModeRelaxed = 2
};

enum cudaStreamUpdateCaptureDependenciesFlags {
	cudaStreamAddCaptureDependencies = 0,
	cudaStreamSetCaptureDependencies = 1
};

enum cudaGraphNodeType {
	cudaGraphNodeTypeKernel = 0,
	cudaGraphNodeTypeMemcpy = 1,
	cudaGraphNodeTypeMemset = 2,
	cudaGraphNodeTypeHost = 3,
	cudaGraphNodeTypeGraph = 4,
	cudaGraphNodeTypeEmpty = 5,
	cudaGraphNodeTypeWaitEvent = 6,
	cudaGraphNodeTypeEventRecord = 7,
	cudaGraphNodeTypeExtSemaphoreSignal = 8,
	cudaGraphNodeTypeExtSemaphoreWait = 9,
	cudaGraphNodeTypeMemAlloc = 10,
	cudaGraphNodeTypeMemFree = 11,
	cudaGraphNodeTypeConditional = 13,
	cudaGraphNodeTypeCount
};

enum cudaGraphInstantiateFlags {
	cudaGraphInstantiateFlagAutoFreeOnLaunch = 1,
	cudaGraphInstantiateFlagUpload = 2,
	cudaGraphInstantiateFlagDeviceLaunch = 4,
	cudaGraphInstantiateFlagUseNodePriority = 8
};

enum cudaUserObjectFlags { cudaUserObjectNoDestructorSync = 1 };
enum cudaUserObjectRetainFlags { cudaGraphUserObjectMove = 1 };

enum cudaDriverEntryPointQueryResult {
	cudaDriverEntryPointSuccess = 0,
	cudaDriverEntryPointSymbolNotFound = 1,
	cudaDriverEntryPointVersionNotSufficent = 2 /* NVIDIA's spelling */
};

enum cudaDeviceP2PAttr {
	cudaDevP2PAttrPerformanceRank = 1,
	cudaDevP2PAttrAccessSupported = 2,
	cudaDevP2PAttrNativeAtomicSupported = 3,
	cudaDevP2PAttrCudaArrayAccessSupported = 4
};

enum cudaFuncAttribute {
	cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
	cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

enum cudaDeviceAttr {
	cudaDevAttrMaxThreadsPerBlock = 1,
	cudaDevAttrMaxBlockDimX = 2,
	cudaDevAttrMaxBlockDimY = 3,
	cudaDevAttrMaxBlockDimZ = 4,
	cudaDevAttrMaxGridDimX = 5,
	cudaDevAttrMaxGridDimY = 6,
	cudaDevAttrMaxGridDimZ = 7,
	cudaDevAttrMaxSharedMemoryPerBlock = 8,
	cudaDevAttrTotalConstantMemory = 9,
	cudaDevAttrWarpSize = 10,
	cudaDevAttrMaxPitch = 11,
	cudaDevAttrMaxRegistersPerBlock = 12,
	cudaDevAttrClockRate = 13,
	cudaDevAttrTextureAlignment = 14,
	cudaDevAttrGpuOverlap = 15,
	cudaDevAttrMultiProcessorCount = 16,
	cudaDevAttrKernelExecTimeout = 17,
	cudaDevAttrIntegrated = 18,
	cudaDevAttrCanMapHostMemory = 19,
	cudaDevAttrComputeMode = 20,
	cudaDevAttrMaxTexture1DWidth = 21,
	cudaDevAttrMaxTexture2DWidth = 22,
	cudaDevAttrMaxTexture2DHeight = 23,
	cudaDevAttrMaxTexture3DWidth = 24,
	cudaDevAttrMaxTexture3DHeight = 25,
	cudaDevAttrMaxTexture3DDepth = 26,
	cudaDevAttrMaxTexture2DLayeredWidth = 27,
	cudaDevAttrMaxTexture2DLayeredHeight = 28,
	cudaDevAttrMaxTexture2DLayeredLayers = 29,
	cudaDevAttrSurfaceAlignment = 30,
	cudaDevAttrConcurrentKernels = 31,
	cudaDevAttrEccEnabled = 32,
	cudaDevAttrPciBusId = 33,
	cudaDevAttrPciDeviceId = 34,
	cudaDevAttrTccDriver = 35,
	cudaDevAttrMemoryClockRate = 36,
	cudaDevAttrGlobalMemoryBusWidth = 37,
	cudaDevAttrL2CacheSize = 38,
	cudaDevAttrMaxThreadsPerMultiProcessor = 39,
	cudaDevAttrAsyncEngineCount = 40,
	cudaDevAttrUnifiedAddressing = 41,
	cudaDevAttrMaxTexture1DLayeredWidth = 42,
	cudaDevAttrMaxTexture1DLayeredLayers = 43,
	cudaDevAttrMaxTexture2DGatherWidth = 45,
	cudaDevAttrMaxTexture2DGatherHeight = 46,
	cudaDevAttrMaxTexture3DWidthAlt = 47,
	cudaDevAttrMaxTexture3DHeightAlt = 48,
	cudaDevAttrMaxTexture3DDepthAlt = 49,
	cudaDevAttrPciDomainId = 50,
	cudaDevAttrTexturePitchAlignment = 51,
	cudaDevAttrMaxTextureCubemapWidth = 52,
	cudaDevAttrMaxTextureCubemapLayeredWidth = 53,
	cudaDevAttrMaxTextureCubemapLayeredLayers = 54,
	cudaDevAttrMaxSurface1DWidth = 55,
	cudaDevAttrMaxSurface2DWidth = 56,
	cudaDevAttrMaxSurface2DHeight = 57,
	cudaDevAttrMaxSurface3DWidth = 58,
	cudaDevAttrMaxSurface3DHeight = 59,
	cudaDevAttrMaxSurface3DDepth = 60,
	cudaDevAttrMaxSurface1DLayeredWidth = 61,
	cudaDevAttrMaxSurface1DLayeredLayers = 62,
	cudaDevAttrMaxSurface2DLayeredWidth = 63,
	cudaDevAttrMaxSurface2DLayeredHeight = 64,
	cudaDevAttrMaxSurface2DLayeredLayers = 65,
	cudaDevAttrMaxSurfaceCubemapWidth = 66,
	cudaDevAttrMaxSurfaceCubemapLayeredWidth = 67,
	cudaDevAttrMaxSurfaceCubemapLayeredLayers = 68,
	cudaDevAttrMaxTexture1DLinearWidth = 69,
	cudaDevAttrMaxTexture2DLinearWidth = 70,
	cudaDevAttrMaxTexture2DLinearHeight = 71,
	cudaDevAttrMaxTexture2DLinearPitch = 72,
	cudaDevAttrMaxTexture2DMipmappedWidth = 73,
	cudaDevAttrMaxTexture2DMipmappedHeight = 74,
	cudaDevAttrComputeCapabilityMajor = 75,
	cudaDevAttrComputeCapabilityMinor = 76,
	cudaDevAttrMaxTexture1DMipmappedWidth = 77,
	cudaDevAttrStreamPrioritiesSupported = 78,
	cudaDevAttrGlobalL1CacheSupported = 79,
	cudaDevAttrLocalL1CacheSupported = 80,
	cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
	cudaDevAttrMaxRegistersPerMultiprocessor = 82,
	cudaDevAttrManagedMemory = 83,
	cudaDevAttrIsMultiGpuBoard = 84,
	cudaDevAttrMultiGpuBoardGroupID = 85,
	cudaDevAttrHostNativeAtomicSupported = 86,
	cudaDevAttrSingleToDoublePrecisionPerfRatio = 87,
	cudaDevAttrPageableMemoryAccess = 88,
	cudaDevAttrConcurrentManagedAccess = 89,
	cudaDevAttrComputePreemptionSupported = 90,
	cudaDevAttrCanUseHostPointerForRegisteredMem = 91,
	cudaDevAttrCooperativeLaunch = 95,
	cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
	cudaDevAttrCanFlushRemoteWrites = 98,
	cudaDevAttrHostRegisterSupported = 99,
	cudaDevAttrPageableMemoryAccessUsesHostPageTables = 100,
	cudaDevAttrDirectManagedMemAccessFromHost = 101,
	cudaDevAttrMaxBlocksPerMultiprocessor = 106,
	cudaDevAttrMaxPersistingL2CacheSize = 108,
	cudaDevAttrMaxAccessPolicyWindowSize = 109,
	cudaDevAttrReservedSharedMemoryPerBlock = 111,
	cudaDevAttrSparseCudaArraySupported = 112,
	cudaDevAttrHostRegisterReadOnlySupported = 113,
	cudaDevAttrTimelineSemaphoreInteropSupported = 114,
	cudaDevAttrMemoryPoolsSupported = 115,
	cudaDevAttrGPUDirectRDMASupported = 116,
	cudaDevAttrGPUDirectRDMAFlushWritesOptions = 117,
	cudaDevAttrGPUDirectRDMAWritesOrdering = 118,
	cudaDevAttrMemoryPoolSupportedHandleTypes = 119,
	cudaDevAttrClusterLaunch = 120,
	cudaDevAttrDeferredMappingCudaArraySupported = 121,
	cudaDevAttrIpcEventSupport = 125,
	cudaDevAttrMemSyncDomainCount = 126,
	cudaDevAttrNumaConfig = 130,
	cudaDevAttrNumaId = 131,
	cudaDevAttrMpsEnabled = 133,
	cudaDevAttrHostNumaId = 134,
	cudaDevAttrD3D12CigSupported = 135,
	cudaDevAttrVulkanCigSupported = 138,
	cudaDevAttrGpuPciDeviceId = 139,
	cudaDevAttrGpuPciSubsystemId = 140,
	cudaDevAttrHostNumaMemoryPoolsSupported = 142,
	cudaDevAttrHostNumaMultinodeIpcSupported = 143,
	cudaDevAttrHostMemoryPoolsSupported = 144,
	cudaDevAttrOnlyPartialHostNativeAtomicSupported = 147,
	cudaDevAttrMax
};

#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaHostRegisterDefault 0x00
#define cudaHostRegisterPortable 0x01
#define cudaHostRegisterMapped 0x02
#define cudaHostRegisterIoMemory 0x04
#define cudaHostRegisterReadOnly 0x08
#define cudaMemAttachGlobal 0x01
#define cudaMemAttachHost 0x02
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaEventInterprocess 0x04
#define cudaEventRecordDefault 0x00
#define cudaEventRecordExternal 0x01
#define cudaEventWaitDefault 0x00
#define cudaEventWaitExternal 0x01
#define cudaCpuDeviceId (-1)
#define cudaInvalidDeviceId (-2)

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUuserObject_st *cudaUserObject_t;

typedef void(CUDART_CB *cudaHostFn_t)(void *userData);
typedef void(CUDART_CB *cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status,
					      void *userData);

struct cudaPointerAttributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer;
	void *hostPointer;
	long reserved[8];
};

struct cudaHostNodeParams {
	cudaHostFn_t fn;
	void *userData;
};

typedef struct cudaGraphEdgeData_st {
	unsigned char from_port;
	unsigned char to_port;
	unsigned char type;
	unsigned char reserved[5];
} cudaGraphEdgeData;

#ifndef __cplusplus
#define NBOX_CUDART_DEFAULT(value)
#else
#define NBOX_CUDART_DEFAULT(value) = value
#endif

/* --- versions and errors -------------------------------------------------------------------- */

NBOX_CUDART_API cudaError_t cudaRuntimeGetVersion(int *version);
NBOX_CUDART_API cudaError_t cudaDriverGetVersion(int *version);
NBOX_CUDART_API const char *cudaGetErrorName(cudaError_t error);
NBOX_CUDART_API const char *cudaGetErrorString(cudaError_t error);
/* The last error of this thread; cudaGetLastError() also forgets it. */
NBOX_CUDART_API cudaError_t cudaGetLastError(void);
NBOX_CUDART_API cudaError_t cudaPeekAtLastError(void);
/* The address of one of the driver functions in cuda.h, by its name. */
NBOX_CUDART_API cudaError_t
cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
			enum cudaDriverEntryPointQueryResult *status NBOX_CUDART_DEFAULT(NULL));
NBOX_CUDART_API cudaError_t cudaGetDriverEntryPointByVersion(
	const char *symbol, void **function, unsigned int version, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *status NBOX_CUDART_DEFAULT(NULL));

/* --- devices: NBOX_HOST_DEVICES of them, 8 unless set ------------------------------------------
 */

NBOX_CUDART_API cudaError_t cudaGetDeviceCount(int *count);
NBOX_CUDART_API cudaError_t cudaGetDevice(int *device);
NBOX_CUDART_API cudaError_t cudaSetDevice(int device);
NBOX_CUDART_API cudaError_t cudaDeviceSynchronize(void);
/* Waits for the device and frees nothing: handles and memory stay valid here. */
NBOX_CUDART_API cudaError_t cudaDeviceReset(void);
NBOX_CUDART_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr,
						   int device);
NBOX_CUDART_API cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device);
NBOX_CUDART_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id);
NBOX_CUDART_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
NBOX_CUDART_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
NBOX_CUDART_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
NBOX_CUDART_API cudaError_t cudaDeviceDisablePeerAccess(int peer);
NBOX_CUDART_API cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr,
						      int src_device, int dst_device);

/* --- memory --------------------------------------------------------------------------------- */

/* Device memory is host memory that is known to belong to the current device. */
NBOX_CUDART_API cudaError_t cudaMalloc(void **ptr, size_t size);
NBOX_CUDART_API cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height);
NBOX_CUDART_API cudaError_t cudaMallocManaged(
	void **ptr, size_t size, unsigned int flags NBOX_CUDART_DEFAULT(cudaMemAttachGlobal));
/* Waits for the work of the memory's device, as NVIDIA's does in practice. */
NBOX_CUDART_API cudaError_t cudaFree(void *ptr);
NBOX_CUDART_API cudaError_t cudaMallocAsync(void **ptr, size_t size, cudaStream_t stream);
NBOX_CUDART_API cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream);
NBOX_CUDART_API cudaError_t cudaMallocHost(void **ptr, size_t size);
NBOX_CUDART_API cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags);
NBOX_CUDART_API cudaError_t cudaFreeHost(void *ptr);
NBOX_CUDART_API cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags);
NBOX_CUDART_API cudaError_t cudaHostUnregister(void *ptr);
NBOX_CUDART_API cudaError_t cudaHostGetDevicePointer(void **device_ptr, void *host_ptr,
						     unsigned int flags);
NBOX_CUDART_API cudaError_t cudaHostGetFlags(unsigned int *flags, void *ptr);
NBOX_CUDART_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
						     const void *ptr);
/* Each device's memory is as large as the machine's. */
NBOX_CUDART_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

/* A direction that contradicts what is known of a pointer is cudaErrorInvalidValue. */
NBOX_CUDART_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
				       enum cudaMemcpyKind kind);
NBOX_CUDART_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
					    enum cudaMemcpyKind kind,
					    cudaStream_t stream NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
					 size_t width, size_t height, enum cudaMemcpyKind kind);
NBOX_CUDART_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src,
					      size_t spitch, size_t width, size_t height,
					      enum cudaMemcpyKind kind,
					      cudaStream_t stream NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src,
					   int src_device, size_t count);
NBOX_CUDART_API cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src,
						int src_device, size_t count,
						cudaStream_t stream NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaMemset(void *ptr, int value, size_t count);
NBOX_CUDART_API cudaError_t cudaMemsetAsync(void *ptr, int value, size_t count,
					    cudaStream_t stream NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaMemset2D(void *ptr, size_t pitch, int value, size_t width,
					 size_t height);

/* --- streams -------------------------------------------------------------------------------- */

NBOX_CUDART_API cudaError_t cudaStreamCreate(cudaStream_t *stream);
NBOX_CUDART_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
/* Priorities are clamped and reported; the host's scheduler is not told of them. */
NBOX_CUDART_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags,
							 int priority);
/* Returns at once; what is queued still runs. */
NBOX_CUDART_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
NBOX_CUDART_API cudaError_t cudaStreamQuery(cudaStream_t stream);
NBOX_CUDART_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
NBOX_CUDART_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
NBOX_CUDART_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
NBOX_CUDART_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
NBOX_CUDART_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
NBOX_CUDART_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
						unsigned int flags NBOX_CUDART_DEFAULT(0));
/* @fn may take any time and block. Calls of the runtime API from it that would queue, wait,
 * allocate or free return cudaErrorNotPermitted. */
NBOX_CUDART_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn,
					       void *user_data);
NBOX_CUDART_API cudaError_t cudaStreamAddCallback(cudaStream_t stream,
						  cudaStreamCallback_t callback, void *user_data,
						  unsigned int flags);

/* --- events --------------------------------------------------------------------------------- */

NBOX_CUDART_API cudaError_t cudaEventCreate(cudaEvent_t *event);
NBOX_CUDART_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
NBOX_CUDART_API cudaError_t cudaEventDestroy(cudaEvent_t event);
NBOX_CUDART_API cudaError_t cudaEventRecord(cudaEvent_t event,
					    cudaStream_t stream NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
						     cudaStream_t stream NBOX_CUDART_DEFAULT(0),
						     unsigned int flags NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaEventQuery(cudaEvent_t event);
NBOX_CUDART_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
/* Milliseconds between two records; the clock counts nanoseconds. */
NBOX_CUDART_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

/* --- capture and graphs --------------------------------------------------------------------- */

NBOX_CUDART_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
						   enum cudaStreamCaptureMode mode);
NBOX_CUDART_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
NBOX_CUDART_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
						  enum cudaStreamCaptureStatus *status);
/* Every output may be NULL. *dependencies stays valid until the next call on the stream. */
NBOX_CUDART_API cudaError_t
cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
			 unsigned long long *id NBOX_CUDART_DEFAULT(NULL),
			 cudaGraph_t *graph NBOX_CUDART_DEFAULT(NULL),
			 const cudaGraphNode_t **dependencies NBOX_CUDART_DEFAULT(NULL),
			 const cudaGraphEdgeData **edges NBOX_CUDART_DEFAULT(NULL),
			 size_t *n_dependencies NBOX_CUDART_DEFAULT(NULL));
NBOX_CUDART_API cudaError_t cudaStreamUpdateCaptureDependencies(
	cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
	size_t n_dependencies, unsigned int flags NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);

NBOX_CUDART_API cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
NBOX_CUDART_API cudaError_t cudaGraphDestroy(cudaGraph_t graph);
NBOX_CUDART_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
						 const cudaGraphNode_t *dependencies,
						 size_t n_dependencies,
						 const struct cudaHostNodeParams *params);
NBOX_CUDART_API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
							const cudaGraphNode_t *dependencies,
							size_t n_dependencies, cudaEvent_t event);
NBOX_CUDART_API cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
						      const cudaGraphNode_t *dependencies,
						      size_t n_dependencies, cudaEvent_t event);
/* Only edges to nodes that were added later than the one they come from. */
NBOX_CUDART_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
						     const cudaGraphNode_t *to,
						     const cudaGraphEdgeData *edges, size_t n);
NBOX_CUDART_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
					      size_t *n_nodes);
NBOX_CUDART_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node,
						 enum cudaGraphNodeType *type);
NBOX_CUDART_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
							 cudaGraphNode_t *dependencies,
							 cudaGraphEdgeData *edges,
							 size_t *n_dependencies);
NBOX_CUDART_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
						 unsigned long long flags NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaGraphInstantiateWithFlags(
	cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags NBOX_CUDART_DEFAULT(0));
NBOX_CUDART_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
NBOX_CUDART_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
/* Writes the nodes' types and the edges to the file @path; @flags say nothing more here. */
NBOX_CUDART_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path,
						   unsigned int flags);

NBOX_CUDART_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *ptr,
						 cudaHostFn_t destroy, unsigned int n_refs,
						 unsigned int flags);
NBOX_CUDART_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object,
						  unsigned int count NBOX_CUDART_DEFAULT(1));
NBOX_CUDART_API cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
						      unsigned int count NBOX_CUDART_DEFAULT(1),
						      unsigned int flags NBOX_CUDART_DEFAULT(0));

#include "cudart/launch.h"
#include "cudart/pool.h"
#include "cudart/prop.h"

#ifdef __cplusplus
}
#endif
