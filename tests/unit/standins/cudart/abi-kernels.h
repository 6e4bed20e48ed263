/* The second half of the list in abi-table.h: properties, kernels, pools, handles between
 * processes, devices and pointers in the driver API. */
#pragma once

/* clang-format off */
#define ABI_CONSTANTS_2(X) \
	X(cudaLaunchAttributeIgnore) X(cudaLaunchAttributeAccessPolicyWindow) \
	X(cudaLaunchAttributeCooperative) X(cudaLaunchAttributeSynchronizationPolicy) \
	X(cudaLaunchAttributeClusterDimension) \
	X(cudaLaunchAttributeClusterSchedulingPolicyPreference) \
	X(cudaLaunchAttributeProgrammaticStreamSerialization) \
	X(cudaLaunchAttributeProgrammaticEvent) X(cudaLaunchAttributePriority) \
	X(cudaOccupancyDefault) X(cudaOccupancyDisableCachingOverride) \
	X(cudaMemPoolReuseFollowEventDependencies) X(cudaMemPoolReuseAllowOpportunistic) \
	X(cudaMemPoolReuseAllowInternalDependencies) X(cudaMemPoolAttrReleaseThreshold) \
	X(cudaMemPoolAttrReservedMemCurrent) X(cudaMemPoolAttrReservedMemHigh) \
	X(cudaMemPoolAttrUsedMemCurrent) X(cudaMemPoolAttrUsedMemHigh) \
	X(cudaMemLocationTypeInvalid) X(cudaMemLocationTypeDevice) X(cudaMemLocationTypeHost) \
	X(cudaMemLocationTypeHostNuma) X(cudaMemLocationTypeHostNumaCurrent) \
	X(cudaMemAccessFlagsProtNone) X(cudaMemAccessFlagsProtRead) \
	X(cudaMemAllocationTypeInvalid) X(cudaMemAllocationTypePinned) \
	X(cudaMemAllocationTypeManaged) X(cudaMemHandleTypeNone) \
	X(cudaMemHandleTypePosixFileDescriptor) X(cudaMemHandleTypeWin32) \
	X(cudaMemHandleTypeWin32Kmt) X(cudaMemHandleTypeFabric) X(cudaLimitStackSize) \
	X(cudaLimitPrintfFifoSize) X(cudaLimitMallocHeapSize) X(cudaLimitDevRuntimeSyncDepth) \
	X(cudaLimitDevRuntimePendingLaunchCount) X(cudaLimitMaxL2FetchGranularity) \
	X(cudaLimitPersistingL2CacheSize) \
	X(cudaGraphMemAttrUsedMemCurrent) X(cudaGraphMemAttrUsedMemHigh) \
	X(cudaGraphMemAttrReservedMemCurrent) X(cudaGraphMemAttrReservedMemHigh) \
	X(cudaMemAccessFlagsProtReadWrite) X(cudaIpcMemLazyEnablePeerAccess) \
	X(CUDA_ERROR_NOT_FOUND) X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) \
	X(CU_DEVICE_ATTRIBUTE_WARP_SIZE) X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) X(CU_MEMORYTYPE_HOST) \
	X(CU_MEMORYTYPE_DEVICE) X(CU_MEMORYTYPE_ARRAY) X(CU_MEMORYTYPE_UNIFIED) \
	X(CU_POINTER_ATTRIBUTE_CONTEXT) X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE) \
	X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER) X(CU_POINTER_ATTRIBUTE_HOST_POINTER) \
	X(CU_POINTER_ATTRIBUTE_BUFFER_ID) X(CU_POINTER_ATTRIBUTE_IS_MANAGED) \
	X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) \
	X(CU_POINTER_ATTRIBUTE_RANGE_SIZE) X(CU_POINTER_ATTRIBUTE_MAPPED)

#define ABI_SIZES_2(X) \
	X(struct cudaDeviceProp) X(struct cudaFuncAttributes) X(dim3) X(cudaLaunchAttribute) \
	X(cudaLaunchAttributeValue) X(cudaLaunchConfig_t) X(struct cudaMemAccessDesc) \
	X(struct cudaMemLocation) X(cudaIpcMemHandle_t) X(cudaIpcEventHandle_t) X(CUdevice) \
	X(CUcontext) X(CUuuid) X(struct cudaMemPoolProps) X(struct cudaKernelNodeParams)

#define PROP(X, field) X(struct cudaDeviceProp, field)
#define ABI_OFFSETS_2(X) \
	X(struct cudaMemPoolProps, location) X(struct cudaMemPoolProps, maxSize) \
	X(struct cudaMemPoolProps, usage) X(struct cudaKernelNodeParams, gridDim) \
	X(struct cudaKernelNodeParams, sharedMemBytes) X(struct cudaKernelNodeParams, extra) \
	X(cudaLaunchAttribute, val) X(cudaLaunchConfig_t, gridDim) \
	X(cudaLaunchConfig_t, blockDim) X(cudaLaunchConfig_t, dynamicSmemBytes) \
	X(cudaLaunchConfig_t, stream) X(cudaLaunchConfig_t, attrs) \
	X(cudaLaunchConfig_t, numAttrs) X(struct cudaMemAccessDesc, flags) \
	X(struct cudaFuncAttributes, sharedSizeBytes) X(struct cudaFuncAttributes, numRegs) \
	X(struct cudaFuncAttributes, maxThreadsPerBlock) \
	X(struct cudaFuncAttributes, ptxVersion) X(struct cudaFuncAttributes, binaryVersion) \
	X(struct cudaFuncAttributes, maxDynamicSharedSizeBytes) \
	X(struct cudaFuncAttributes, nonPortableClusterSizeAllowed) \
	PROP(X, name) PROP(X, uuid) PROP(X, luid) PROP(X, luidDeviceNodeMask) \
	PROP(X, totalGlobalMem) PROP(X, sharedMemPerBlock) PROP(X, regsPerBlock) \
	PROP(X, warpSize) PROP(X, memPitch) PROP(X, maxThreadsPerBlock) PROP(X, maxThreadsDim) \
	PROP(X, maxGridSize) PROP(X, totalConstMem) PROP(X, major) PROP(X, minor) \
	PROP(X, textureAlignment) PROP(X, texturePitchAlignment) PROP(X, multiProcessorCount) \
	PROP(X, integrated) PROP(X, canMapHostMemory) PROP(X, maxTexture1D) \
	PROP(X, maxTexture2D) PROP(X, maxTexture3D) PROP(X, maxTexture3DAlt) \
	PROP(X, maxTextureCubemap) PROP(X, maxTexture1DLayered) PROP(X, maxTexture2DLayered) \
	PROP(X, maxTextureCubemapLayered) PROP(X, maxSurface1D) PROP(X, maxSurface3D) \
	PROP(X, maxSurfaceCubemapLayered) PROP(X, surfaceAlignment) PROP(X, concurrentKernels) \
	PROP(X, ECCEnabled) PROP(X, pciBusID) PROP(X, pciDeviceID) PROP(X, pciDomainID) \
	PROP(X, tccDriver) PROP(X, asyncEngineCount) PROP(X, unifiedAddressing) \
	PROP(X, memoryBusWidth) PROP(X, l2CacheSize) PROP(X, persistingL2CacheMaxSize) \
	PROP(X, maxThreadsPerMultiProcessor) PROP(X, streamPrioritiesSupported) \
	PROP(X, globalL1CacheSupported) PROP(X, sharedMemPerMultiprocessor) \
	PROP(X, regsPerMultiprocessor) PROP(X, managedMemory) PROP(X, isMultiGpuBoard) \
	PROP(X, hostNativeAtomicSupported) PROP(X, pageableMemoryAccess) \
	PROP(X, concurrentManagedAccess) PROP(X, computePreemptionSupported) \
	PROP(X, canUseHostPointerForRegisteredMem) PROP(X, cooperativeLaunch) \
	PROP(X, sharedMemPerBlockOptin) PROP(X, pageableMemoryAccessUsesHostPageTables) \
	PROP(X, directManagedMemAccessFromHost) PROP(X, maxBlocksPerMultiProcessor) \
	PROP(X, accessPolicyMaxWindowSize) PROP(X, reservedSharedMemPerBlock) \
	PROP(X, hostRegisterSupported) PROP(X, sparseCudaArraySupported) \
	PROP(X, hostRegisterReadOnlySupported) PROP(X, timelineSemaphoreInteropSupported) \
	PROP(X, memoryPoolsSupported) PROP(X, gpuDirectRDMASupported) \
	PROP(X, gpuDirectRDMAFlushWritesOptions) PROP(X, gpuDirectRDMAWritesOrdering) \
	PROP(X, memoryPoolSupportedHandleTypes) PROP(X, deferredMappingCudaArraySupported) \
	PROP(X, ipcEventSupported) PROP(X, clusterLaunch) PROP(X, unifiedFunctionPointers) \
	PROP(X, deviceNumaConfig) PROP(X, deviceNumaId) PROP(X, mpsEnabled) PROP(X, hostNumaId) \
	PROP(X, gpuPciDeviceID) PROP(X, gpuPciSubsystemID) PROP(X, hostNumaMultinodeIpcSupported)

#define ABI_FUNCTIONS_2(X) \
	X(cudaGetDeviceProperties, cudaError_t, struct cudaDeviceProp *, int) \
	X(cudaLaunchKernel, cudaError_t, const void *, dim3, dim3, void **, size_t, \
		cudaStream_t) \
	X(cudaLaunchKernelExC, cudaError_t, const cudaLaunchConfig_t *, const void *, void **) \
	X(cudaLaunchCooperativeKernel, cudaError_t, const void *, dim3, dim3, void **, size_t, \
		cudaStream_t) \
	X(cudaGraphAddKernelNode, cudaError_t, cudaGraphNode_t *, cudaGraph_t, \
		const cudaGraphNode_t *, size_t, const struct cudaKernelNodeParams *) \
	X(cudaGetFuncBySymbol, cudaError_t, cudaFunction_t *, const void *) \
	X(cudaFuncGetAttributes, cudaError_t, struct cudaFuncAttributes *, const void *) \
	X(cudaFuncSetAttribute, cudaError_t, const void *, enum cudaFuncAttribute, int) \
	X(cudaOccupancyMaxActiveBlocksPerMultiprocessor, cudaError_t, int *, const void *, int, \
		size_t) \
	X(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cudaError_t, int *, \
		const void *, int, size_t, unsigned int) \
	X(cudaGetSymbolAddress, cudaError_t, void **, const void *) \
	X(cudaGetSymbolSize, cudaError_t, size_t *, const void *) \
	X(cudaMemcpyToSymbol, cudaError_t, const void *, const void *, size_t, size_t, \
		enum cudaMemcpyKind) \
	X(cudaMemcpyFromSymbol, cudaError_t, void *, const void *, size_t, size_t, \
		enum cudaMemcpyKind) \
	X(cudaMemPoolCreate, cudaError_t, cudaMemPool_t *, const struct cudaMemPoolProps *) \
	X(cudaMemPoolDestroy, cudaError_t, cudaMemPool_t) \
	X(cudaDeviceSetLimit, cudaError_t, enum cudaLimit, size_t) \
	X(cudaDeviceGetDefaultMemPool, cudaError_t, cudaMemPool_t *, int) \
	X(cudaDeviceGetMemPool, cudaError_t, cudaMemPool_t *, int) \
	X(cudaDeviceSetMemPool, cudaError_t, int, cudaMemPool_t) \
	X(cudaMemPoolGetAttribute, cudaError_t, cudaMemPool_t, enum cudaMemPoolAttr, void *) \
	X(cudaMemPoolSetAttribute, cudaError_t, cudaMemPool_t, enum cudaMemPoolAttr, void *) \
	X(cudaMemPoolTrimTo, cudaError_t, cudaMemPool_t, size_t) \
	X(cudaMemPoolSetAccess, cudaError_t, cudaMemPool_t, const struct cudaMemAccessDesc *, \
		size_t) \
	X(cudaMemPoolGetAccess, cudaError_t, enum cudaMemAccessFlags *, cudaMemPool_t, \
		struct cudaMemLocation *) \
	X(cudaMallocFromPoolAsync, cudaError_t, void **, size_t, cudaMemPool_t, cudaStream_t) \
	X(cudaDeviceGetGraphMemAttribute, cudaError_t, int, enum cudaGraphMemAttributeType, \
		void *) \
	X(cudaDeviceSetGraphMemAttribute, cudaError_t, int, enum cudaGraphMemAttributeType, \
		void *) \
	X(cudaDeviceGraphMemTrim, cudaError_t, int) \
	X(cudaIpcGetMemHandle, cudaError_t, cudaIpcMemHandle_t *, void *) \
	X(cudaIpcOpenMemHandle, cudaError_t, void **, cudaIpcMemHandle_t, unsigned int) \
	X(cudaIpcCloseMemHandle, cudaError_t, void *) \
	X(cudaIpcGetEventHandle, cudaError_t, cudaIpcEventHandle_t *, cudaEvent_t) \
	X(cudaIpcOpenEventHandle, cudaError_t, cudaEvent_t *, cudaIpcEventHandle_t) \
	X(cudaProfilerStart, cudaError_t, void) \
	X(cudaProfilerStop, cudaError_t, void) \
	X(cudaGraphDebugDotPrint, cudaError_t, cudaGraph_t, const char *, unsigned int) \
	X(cuInit, CUresult, unsigned int) \
	X(cuDriverGetVersion, CUresult, int *) \
	X(cuGetErrorString, CUresult, CUresult, const char **) \
	X(cuGetErrorName, CUresult, CUresult, const char **) \
	X(cuDeviceGetCount, CUresult, int *) \
	X(cuDeviceGet, CUresult, CUdevice *, int) \
	X(cuDeviceGetName, CUresult, char *, int, CUdevice) \
	X(cuDeviceGetUuid, CUresult, CUuuid *, CUdevice) \
	X(cuDeviceGetAttribute, CUresult, int *, CUdevice_attribute, CUdevice) \
	X(cuDeviceTotalMem, CUresult, size_t *, CUdevice) \
	X(cuDevicePrimaryCtxGetState, CUresult, CUdevice, unsigned int *, int *) \
	X(cuDevicePrimaryCtxRetain, CUresult, CUcontext *, CUdevice) \
	X(cuDevicePrimaryCtxRelease, CUresult, CUdevice) \
	X(cuCtxGetCurrent, CUresult, CUcontext *) \
	X(cuCtxSetCurrent, CUresult, CUcontext) \
	X(cuCtxGetDevice, CUresult, CUdevice *) \
	X(cuCtxSynchronize, CUresult, void) \
	X(cuMemGetAddressRange, CUresult, CUdeviceptr *, size_t *, CUdeviceptr) \
	X(cuPointerGetAttribute, CUresult, void *, CUpointer_attribute, CUdeviceptr)
/* clang-format on */
