/* The public ABI of CUDA 13's runtime as a list: names of constants, layouts, types of functions.
 * It is compiled with our header and with NVIDIA's; a function whose type differs from the list
 * does not compile with the one that differs, values are compared by the test. */
#pragma once

struct abi_row {
	const char *name;
	unsigned long long value;
};

extern const struct abi_row abi_ours[], abi_theirs[];
extern const unsigned abi_n_ours, abi_n_theirs;

/* clang-format off */
#define ABI_CONSTANTS(X) \
	X(cudaSuccess) X(cudaErrorInvalidValue) X(cudaErrorMemoryAllocation) \
	X(cudaErrorInitializationError) X(cudaErrorCudartUnloading) \
	X(cudaErrorProfilerDisabled) X(cudaErrorProfilerNotInitialized) \
	X(cudaErrorProfilerAlreadyStarted) X(cudaErrorProfilerAlreadyStopped) \
	X(cudaErrorInvalidConfiguration) X(cudaErrorInvalidPitchValue) \
	X(cudaErrorInvalidSymbol) X(cudaErrorInvalidHostPointer) \
	X(cudaErrorInvalidDevicePointer) X(cudaErrorInvalidTexture) \
	X(cudaErrorInvalidTextureBinding) X(cudaErrorInvalidChannelDescriptor) \
	X(cudaErrorInvalidMemcpyDirection) X(cudaErrorAddressOfConstant) \
	X(cudaErrorTextureFetchFailed) X(cudaErrorTextureNotBound) \
	X(cudaErrorSynchronizationError) X(cudaErrorInvalidFilterSetting) \
	X(cudaErrorInvalidNormSetting) X(cudaErrorMixedDeviceExecution) \
	X(cudaErrorNotYetImplemented) X(cudaErrorMemoryValueTooLarge) X(cudaErrorStubLibrary) \
	X(cudaErrorInsufficientDriver) X(cudaErrorCallRequiresNewerDriver) \
	X(cudaErrorInvalidSurface) X(cudaErrorDuplicateVariableName) \
	X(cudaErrorDuplicateTextureName) X(cudaErrorDuplicateSurfaceName) \
	X(cudaErrorDevicesUnavailable) X(cudaErrorIncompatibleDriverContext) \
	X(cudaErrorMissingConfiguration) X(cudaErrorPriorLaunchFailure) \
	X(cudaErrorLaunchMaxDepthExceeded) X(cudaErrorLaunchFileScopedTex) \
	X(cudaErrorLaunchFileScopedSurf) X(cudaErrorSyncDepthExceeded) \
	X(cudaErrorLaunchPendingCountExceeded) X(cudaErrorInvalidDeviceFunction) \
	X(cudaErrorNoDevice) X(cudaErrorInvalidDevice) X(cudaErrorDeviceNotLicensed) \
	X(cudaErrorSoftwareValidityNotEstablished) X(cudaErrorStartupFailure) \
	X(cudaErrorInvalidKernelImage) X(cudaErrorDeviceUninitialized) \
	X(cudaErrorMapBufferObjectFailed) X(cudaErrorUnmapBufferObjectFailed) \
	X(cudaErrorArrayIsMapped) X(cudaErrorAlreadyMapped) X(cudaErrorNoKernelImageForDevice) \
	X(cudaErrorAlreadyAcquired) X(cudaErrorNotMapped) X(cudaErrorNotMappedAsArray) \
	X(cudaErrorNotMappedAsPointer) X(cudaErrorECCUncorrectable) \
	X(cudaErrorUnsupportedLimit) X(cudaErrorDeviceAlreadyInUse) \
	X(cudaErrorPeerAccessUnsupported) X(cudaErrorInvalidPtx) \
	X(cudaErrorInvalidGraphicsContext) X(cudaErrorNvlinkUncorrectable) \
	X(cudaErrorJitCompilerNotFound) X(cudaErrorUnsupportedPtxVersion) \
	X(cudaErrorJitCompilationDisabled) X(cudaErrorUnsupportedExecAffinity) \
	X(cudaErrorUnsupportedDevSideSync) X(cudaErrorContained) X(cudaErrorInvalidSource) \
	X(cudaErrorFileNotFound) X(cudaErrorSharedObjectSymbolNotFound) \
	X(cudaErrorSharedObjectInitFailed) X(cudaErrorOperatingSystem) \
	X(cudaErrorInvalidResourceHandle) X(cudaErrorIllegalState) X(cudaErrorLossyQuery) \
	X(cudaErrorSymbolNotFound) X(cudaErrorNotReady) X(cudaErrorIllegalAddress) \
	X(cudaErrorLaunchOutOfResources) X(cudaErrorLaunchTimeout) \
	X(cudaErrorLaunchIncompatibleTexturing) X(cudaErrorPeerAccessAlreadyEnabled) \
	X(cudaErrorPeerAccessNotEnabled) X(cudaErrorSetOnActiveProcess) \
	X(cudaErrorContextIsDestroyed) X(cudaErrorAssert) X(cudaErrorTooManyPeers) \
	X(cudaErrorHostMemoryAlreadyRegistered) X(cudaErrorHostMemoryNotRegistered) \
	X(cudaErrorHardwareStackError) X(cudaErrorIllegalInstruction) \
	X(cudaErrorMisalignedAddress) X(cudaErrorInvalidAddressSpace) X(cudaErrorInvalidPc) \
	X(cudaErrorLaunchFailure) X(cudaErrorCooperativeLaunchTooLarge) \
	X(cudaErrorTensorMemoryLeak) X(cudaErrorNotPermitted) X(cudaErrorNotSupported) \
	X(cudaErrorSystemNotReady) X(cudaErrorSystemDriverMismatch) \
	X(cudaErrorCompatNotSupportedOnDevice) X(cudaErrorMpsConnectionFailed) \
	X(cudaErrorMpsRpcFailure) X(cudaErrorMpsServerNotReady) \
	X(cudaErrorMpsMaxClientsReached) X(cudaErrorMpsMaxConnectionsReached) \
	X(cudaErrorMpsClientTerminated) X(cudaErrorCdpNotSupported) \
	X(cudaErrorCdpVersionMismatch) X(cudaErrorStreamCaptureUnsupported) \
	X(cudaErrorStreamCaptureInvalidated) X(cudaErrorStreamCaptureMerge) \
	X(cudaErrorStreamCaptureUnmatched) X(cudaErrorStreamCaptureUnjoined) \
	X(cudaErrorStreamCaptureIsolation) X(cudaErrorStreamCaptureImplicit) \
	X(cudaErrorCapturedEvent) X(cudaErrorStreamCaptureWrongThread) X(cudaErrorTimeout) \
	X(cudaErrorGraphExecUpdateFailure) X(cudaErrorExternalDevice) \
	X(cudaErrorInvalidClusterSize) X(cudaErrorFunctionNotLoaded) \
	X(cudaErrorInvalidResourceType) X(cudaErrorInvalidResourceConfiguration) \
	X(cudaErrorUnknown) X(cudaMemcpyHostToHost) X(cudaMemcpyHostToDevice) \
	X(cudaMemcpyDeviceToHost) X(cudaMemcpyDeviceToDevice) X(cudaMemcpyDefault) \
	X(cudaMemoryTypeUnregistered) X(cudaMemoryTypeHost) X(cudaMemoryTypeDevice) \
	X(cudaMemoryTypeManaged) X(cudaComputeModeDefault) X(cudaComputeModeExclusive) \
	X(cudaComputeModeProhibited) X(cudaComputeModeExclusiveProcess) \
	X(cudaStreamCaptureStatusNone) X(cudaStreamCaptureStatusActive) \
	X(cudaStreamCaptureStatusInvalidated) X(cudaStreamCaptureModeGlobal) \
	X(cudaStreamCaptureModeThreadLocal) X(cudaStreamCaptureModeRelaxed) \
	X(cudaStreamAddCaptureDependencies) X(cudaStreamSetCaptureDependencies) \
	X(cudaGraphNodeTypeKernel) X(cudaGraphNodeTypeMemcpy) X(cudaGraphNodeTypeMemset) \
	X(cudaGraphNodeTypeHost) X(cudaGraphNodeTypeGraph) X(cudaGraphNodeTypeEmpty) \
	X(cudaGraphNodeTypeWaitEvent) X(cudaGraphNodeTypeEventRecord) \
	X(cudaGraphNodeTypeExtSemaphoreSignal) X(cudaGraphNodeTypeExtSemaphoreWait) \
	X(cudaGraphNodeTypeMemAlloc) X(cudaGraphNodeTypeMemFree) \
	X(cudaGraphNodeTypeConditional) X(cudaGraphInstantiateFlagAutoFreeOnLaunch) \
	X(cudaGraphInstantiateFlagUpload) X(cudaGraphInstantiateFlagDeviceLaunch) \
	X(cudaGraphInstantiateFlagUseNodePriority) X(cudaUserObjectNoDestructorSync) \
	X(cudaGraphUserObjectMove) X(cudaDriverEntryPointSuccess) \
	X(cudaDriverEntryPointSymbolNotFound) X(cudaDriverEntryPointVersionNotSufficent) \
	X(cudaDevP2PAttrPerformanceRank) X(cudaDevP2PAttrAccessSupported) \
	X(cudaDevP2PAttrNativeAtomicSupported) X(cudaDevP2PAttrCudaArrayAccessSupported) \
	X(cudaFuncAttributeMaxDynamicSharedMemorySize) \
	X(cudaFuncAttributePreferredSharedMemoryCarveout) X(cudaDevAttrMaxThreadsPerBlock) \
	X(cudaDevAttrMaxBlockDimX) X(cudaDevAttrMaxBlockDimY) X(cudaDevAttrMaxBlockDimZ) \
	X(cudaDevAttrMaxGridDimX) X(cudaDevAttrMaxGridDimY) X(cudaDevAttrMaxGridDimZ) \
	X(cudaDevAttrMaxSharedMemoryPerBlock) X(cudaDevAttrTotalConstantMemory) \
	X(cudaDevAttrWarpSize) X(cudaDevAttrMaxPitch) X(cudaDevAttrMaxRegistersPerBlock) \
	X(cudaDevAttrClockRate) X(cudaDevAttrTextureAlignment) X(cudaDevAttrGpuOverlap) \
	X(cudaDevAttrMultiProcessorCount) X(cudaDevAttrKernelExecTimeout) \
	X(cudaDevAttrIntegrated) X(cudaDevAttrCanMapHostMemory) X(cudaDevAttrComputeMode) \
	X(cudaDevAttrMaxTexture1DWidth) X(cudaDevAttrMaxTexture2DWidth) \
	X(cudaDevAttrMaxTexture2DHeight) X(cudaDevAttrMaxTexture3DWidth) \
	X(cudaDevAttrMaxTexture3DHeight) X(cudaDevAttrMaxTexture3DDepth) \
	X(cudaDevAttrMaxTexture2DLayeredWidth) X(cudaDevAttrMaxTexture2DLayeredHeight) \
	X(cudaDevAttrMaxTexture2DLayeredLayers) X(cudaDevAttrSurfaceAlignment) \
	X(cudaDevAttrConcurrentKernels) X(cudaDevAttrEccEnabled) X(cudaDevAttrPciBusId) \
	X(cudaDevAttrPciDeviceId) X(cudaDevAttrTccDriver) X(cudaDevAttrMemoryClockRate) \
	X(cudaDevAttrGlobalMemoryBusWidth) X(cudaDevAttrL2CacheSize) \
	X(cudaDevAttrMaxThreadsPerMultiProcessor) X(cudaDevAttrAsyncEngineCount) \
	X(cudaDevAttrUnifiedAddressing) X(cudaDevAttrMaxTexture1DLayeredWidth) \
	X(cudaDevAttrMaxTexture1DLayeredLayers) X(cudaDevAttrMaxTexture2DGatherWidth) \
	X(cudaDevAttrMaxTexture2DGatherHeight) X(cudaDevAttrMaxTexture3DWidthAlt) \
	X(cudaDevAttrMaxTexture3DHeightAlt) X(cudaDevAttrMaxTexture3DDepthAlt) \
	X(cudaDevAttrPciDomainId) X(cudaDevAttrTexturePitchAlignment) \
	X(cudaDevAttrMaxTextureCubemapWidth) X(cudaDevAttrMaxTextureCubemapLayeredWidth) \
	X(cudaDevAttrMaxTextureCubemapLayeredLayers) X(cudaDevAttrMaxSurface1DWidth) \
	X(cudaDevAttrMaxSurface2DWidth) X(cudaDevAttrMaxSurface2DHeight) \
	X(cudaDevAttrMaxSurface3DWidth) X(cudaDevAttrMaxSurface3DHeight) \
	X(cudaDevAttrMaxSurface3DDepth) X(cudaDevAttrMaxSurface1DLayeredWidth) \
	X(cudaDevAttrMaxSurface1DLayeredLayers) X(cudaDevAttrMaxSurface2DLayeredWidth) \
	X(cudaDevAttrMaxSurface2DLayeredHeight) X(cudaDevAttrMaxSurface2DLayeredLayers) \
	X(cudaDevAttrMaxSurfaceCubemapWidth) X(cudaDevAttrMaxSurfaceCubemapLayeredWidth) \
	X(cudaDevAttrMaxSurfaceCubemapLayeredLayers) X(cudaDevAttrMaxTexture1DLinearWidth) \
	X(cudaDevAttrMaxTexture2DLinearWidth) X(cudaDevAttrMaxTexture2DLinearHeight) \
	X(cudaDevAttrMaxTexture2DLinearPitch) X(cudaDevAttrMaxTexture2DMipmappedWidth) \
	X(cudaDevAttrMaxTexture2DMipmappedHeight) X(cudaDevAttrComputeCapabilityMajor) \
	X(cudaDevAttrComputeCapabilityMinor) X(cudaDevAttrMaxTexture1DMipmappedWidth) \
	X(cudaDevAttrStreamPrioritiesSupported) X(cudaDevAttrGlobalL1CacheSupported) \
	X(cudaDevAttrLocalL1CacheSupported) X(cudaDevAttrMaxSharedMemoryPerMultiprocessor) \
	X(cudaDevAttrMaxRegistersPerMultiprocessor) X(cudaDevAttrManagedMemory) \
	X(cudaDevAttrIsMultiGpuBoard) X(cudaDevAttrMultiGpuBoardGroupID) \
	X(cudaDevAttrHostNativeAtomicSupported) X(cudaDevAttrSingleToDoublePrecisionPerfRatio) \
	X(cudaDevAttrPageableMemoryAccess) X(cudaDevAttrConcurrentManagedAccess) \
	X(cudaDevAttrComputePreemptionSupported) \
	X(cudaDevAttrCanUseHostPointerForRegisteredMem) X(cudaDevAttrCooperativeLaunch) \
	X(cudaDevAttrMaxSharedMemoryPerBlockOptin) X(cudaDevAttrCanFlushRemoteWrites) \
	X(cudaDevAttrHostRegisterSupported) \
	X(cudaDevAttrPageableMemoryAccessUsesHostPageTables) \
	X(cudaDevAttrDirectManagedMemAccessFromHost) X(cudaDevAttrMaxBlocksPerMultiprocessor) \
	X(cudaDevAttrMaxPersistingL2CacheSize) X(cudaDevAttrMaxAccessPolicyWindowSize) \
	X(cudaDevAttrReservedSharedMemoryPerBlock) X(cudaDevAttrSparseCudaArraySupported) \
	X(cudaDevAttrHostRegisterReadOnlySupported) \
	X(cudaDevAttrTimelineSemaphoreInteropSupported) X(cudaDevAttrMemoryPoolsSupported) \
	X(cudaDevAttrGPUDirectRDMASupported) X(cudaDevAttrGPUDirectRDMAFlushWritesOptions) \
	X(cudaDevAttrGPUDirectRDMAWritesOrdering) X(cudaDevAttrMemoryPoolSupportedHandleTypes) \
	X(cudaDevAttrClusterLaunch) X(cudaDevAttrDeferredMappingCudaArraySupported) \
	X(cudaDevAttrIpcEventSupport) X(cudaDevAttrMemSyncDomainCount) X(cudaDevAttrNumaConfig) \
	X(cudaDevAttrNumaId) X(cudaDevAttrMpsEnabled) X(cudaDevAttrHostNumaId) \
	X(cudaDevAttrD3D12CigSupported) X(cudaDevAttrVulkanCigSupported) \
	X(cudaDevAttrGpuPciDeviceId) X(cudaDevAttrGpuPciSubsystemId) \
	X(cudaDevAttrHostNumaMemoryPoolsSupported) X(cudaDevAttrHostNumaMultinodeIpcSupported) \
	X(cudaDevAttrHostMemoryPoolsSupported) \
	X(cudaDevAttrOnlyPartialHostNativeAtomicSupported) X(cudaHostAllocDefault) \
	X(cudaHostAllocPortable) X(cudaHostAllocMapped) X(cudaHostAllocWriteCombined) \
	X(cudaHostRegisterDefault) X(cudaHostRegisterPortable) X(cudaHostRegisterMapped) \
	X(cudaHostRegisterIoMemory) X(cudaHostRegisterReadOnly) X(cudaMemAttachGlobal) \
	X(cudaMemAttachHost) X(cudaStreamDefault) X(cudaStreamNonBlocking) X(cudaEventDefault) \
	X(cudaEventBlockingSync) X(cudaEventDisableTiming) X(cudaEventInterprocess) \
	X(cudaEventRecordDefault) X(cudaEventRecordExternal) X(cudaEventWaitDefault) \
	X(cudaEventWaitExternal) X(cudaCpuDeviceId) X(cudaInvalidDeviceId)

#define ABI_DRIVER_CONSTANTS(X) \
	X(CUDA_SUCCESS) X(CUDA_ERROR_INVALID_VALUE) X(CUDA_ERROR_OUT_OF_MEMORY) \
	X(CUDA_ERROR_NOT_INITIALIZED) X(CUDA_ERROR_DEINITIALIZED) X(CUDA_ERROR_NO_DEVICE) \
	X(CUDA_ERROR_INVALID_DEVICE) X(CUDA_ERROR_INVALID_CONTEXT) \
	X(CUDA_ERROR_OPERATING_SYSTEM) X(CUDA_ERROR_INVALID_HANDLE) X(CUDA_ERROR_NOT_READY) \
	X(CUDA_ERROR_NOT_PERMITTED) X(CUDA_ERROR_NOT_SUPPORTED) \
	X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) \
	X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) X(CUDA_ERROR_UNKNOWN) X(CU_STREAM_WAIT_VALUE_GEQ) \
	X(CU_STREAM_WAIT_VALUE_EQ) X(CU_STREAM_WAIT_VALUE_AND) X(CU_STREAM_WAIT_VALUE_NOR) \
	X(CU_STREAM_WAIT_VALUE_FLUSH) X(CU_STREAM_WRITE_VALUE_DEFAULT) \
	X(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)

#define ABI_SIZES(X) \
	X(cudaError_t) X(struct cudaPointerAttributes) X(struct cudaHostNodeParams) \
	X(cudaGraphEdgeData) X(cudaStream_t) X(CUdeviceptr) X(cuuint32_t) X(cuuint64_t) X(CUresult)

#define ABI_OFFSETS(X) \
	X(struct cudaPointerAttributes, type) X(struct cudaPointerAttributes, device) \
	X(struct cudaPointerAttributes, devicePointer) \
	X(struct cudaPointerAttributes, hostPointer) X(struct cudaPointerAttributes, reserved) \
	X(struct cudaHostNodeParams, fn) X(struct cudaHostNodeParams, userData) \
	X(cudaGraphEdgeData, from_port) X(cudaGraphEdgeData, to_port) X(cudaGraphEdgeData, type)

#define ABI_FUNCTIONS(X) \
	X(cudaRuntimeGetVersion, cudaError_t, int *) \
	X(cudaDriverGetVersion, cudaError_t, int *) \
	X(cudaGetErrorName, const char *, cudaError_t) \
	X(cudaGetErrorString, const char *, cudaError_t) \
	X(cudaGetLastError, cudaError_t, void) \
	X(cudaPeekAtLastError, cudaError_t, void) \
	X(cudaGetDriverEntryPoint, cudaError_t, const char *, void **, unsigned long long, \
		enum cudaDriverEntryPointQueryResult *) \
	X(cudaGetDriverEntryPointByVersion, cudaError_t, const char *, void **, unsigned int, \
		unsigned long long, enum cudaDriverEntryPointQueryResult *) \
	X(cudaGetDeviceCount, cudaError_t, int *) \
	X(cudaGetDevice, cudaError_t, int *) \
	X(cudaSetDevice, cudaError_t, int) \
	X(cudaDeviceSynchronize, cudaError_t, void) \
	X(cudaDeviceReset, cudaError_t, void) \
	X(cudaDeviceGetAttribute, cudaError_t, int *, enum cudaDeviceAttr, int) \
	X(cudaDeviceGetPCIBusId, cudaError_t, char *, int, int) \
	X(cudaDeviceGetByPCIBusId, cudaError_t, int *, const char *) \
	X(cudaDeviceGetStreamPriorityRange, cudaError_t, int *, int *) \
	X(cudaDeviceCanAccessPeer, cudaError_t, int *, int, int) \
	X(cudaDeviceEnablePeerAccess, cudaError_t, int, unsigned int) \
	X(cudaDeviceDisablePeerAccess, cudaError_t, int) \
	X(cudaDeviceGetP2PAttribute, cudaError_t, int *, enum cudaDeviceP2PAttr, int, int) \
	X(cudaMalloc, cudaError_t, void **, size_t) \
	X(cudaMallocPitch, cudaError_t, void **, size_t *, size_t, size_t) \
	X(cudaMallocManaged, cudaError_t, void **, size_t, unsigned int) \
	X(cudaFree, cudaError_t, void *) \
	X(cudaMallocAsync, cudaError_t, void **, size_t, cudaStream_t) \
	X(cudaFreeAsync, cudaError_t, void *, cudaStream_t) \
	X(cudaMallocHost, cudaError_t, void **, size_t) \
	X(cudaHostAlloc, cudaError_t, void **, size_t, unsigned int) \
	X(cudaFreeHost, cudaError_t, void *) \
	X(cudaHostRegister, cudaError_t, void *, size_t, unsigned int) \
	X(cudaHostUnregister, cudaError_t, void *) \
	X(cudaHostGetDevicePointer, cudaError_t, void **, void *, unsigned int) \
	X(cudaHostGetFlags, cudaError_t, unsigned int *, void *) \
	X(cudaPointerGetAttributes, cudaError_t, struct cudaPointerAttributes *, const void *) \
	X(cudaMemGetInfo, cudaError_t, size_t *, size_t *) \
	X(cudaMemcpy, cudaError_t, void *, const void *, size_t, enum cudaMemcpyKind) \
	X(cudaMemcpyAsync, cudaError_t, void *, const void *, size_t, enum cudaMemcpyKind, \
		cudaStream_t) \
	X(cudaMemcpy2D, cudaError_t, void *, size_t, const void *, size_t, size_t, size_t, \
		enum cudaMemcpyKind) \
	X(cudaMemcpy2DAsync, cudaError_t, void *, size_t, const void *, size_t, size_t, \
		size_t, enum cudaMemcpyKind, cudaStream_t) \
	X(cudaMemcpyPeer, cudaError_t, void *, int, const void *, int, size_t) \
	X(cudaMemcpyPeerAsync, cudaError_t, void *, int, const void *, int, size_t, \
		cudaStream_t) \
	X(cudaMemset, cudaError_t, void *, int, size_t) \
	X(cudaMemsetAsync, cudaError_t, void *, int, size_t, cudaStream_t) \
	X(cudaMemset2D, cudaError_t, void *, size_t, int, size_t, size_t) \
	X(cudaStreamCreate, cudaError_t, cudaStream_t *) \
	X(cudaStreamCreateWithFlags, cudaError_t, cudaStream_t *, unsigned int) \
	X(cudaStreamCreateWithPriority, cudaError_t, cudaStream_t *, unsigned int, int) \
	X(cudaStreamDestroy, cudaError_t, cudaStream_t) \
	X(cudaStreamQuery, cudaError_t, cudaStream_t) \
	X(cudaStreamSynchronize, cudaError_t, cudaStream_t) \
	X(cudaStreamGetFlags, cudaError_t, cudaStream_t, unsigned int *) \
	X(cudaStreamGetPriority, cudaError_t, cudaStream_t, int *) \
	X(cudaStreamGetId, cudaError_t, cudaStream_t, unsigned long long *) \
	X(cudaStreamGetDevice, cudaError_t, cudaStream_t, int *) \
	X(cudaStreamWaitEvent, cudaError_t, cudaStream_t, cudaEvent_t, unsigned int) \
	X(cudaLaunchHostFunc, cudaError_t, cudaStream_t, cudaHostFn_t, void *) \
	X(cudaStreamAddCallback, cudaError_t, cudaStream_t, cudaStreamCallback_t, void *, \
		unsigned int) \
	X(cudaEventCreate, cudaError_t, cudaEvent_t *) \
	X(cudaEventCreateWithFlags, cudaError_t, cudaEvent_t *, unsigned int) \
	X(cudaEventDestroy, cudaError_t, cudaEvent_t) \
	X(cudaEventRecord, cudaError_t, cudaEvent_t, cudaStream_t) \
	X(cudaEventRecordWithFlags, cudaError_t, cudaEvent_t, cudaStream_t, unsigned int) \
	X(cudaEventQuery, cudaError_t, cudaEvent_t) \
	X(cudaEventSynchronize, cudaError_t, cudaEvent_t) \
	X(cudaEventElapsedTime, cudaError_t, float *, cudaEvent_t, cudaEvent_t) \
	X(cudaStreamBeginCapture, cudaError_t, cudaStream_t, enum cudaStreamCaptureMode) \
	X(cudaStreamEndCapture, cudaError_t, cudaStream_t, cudaGraph_t *) \
	X(cudaStreamIsCapturing, cudaError_t, cudaStream_t, enum cudaStreamCaptureStatus *) \
	X(cudaStreamGetCaptureInfo, cudaError_t, cudaStream_t, \
		enum cudaStreamCaptureStatus *, unsigned long long *, cudaGraph_t *, \
		const cudaGraphNode_t **, const cudaGraphEdgeData **, size_t *) \
	X(cudaStreamUpdateCaptureDependencies, cudaError_t, cudaStream_t, cudaGraphNode_t *, \
		const cudaGraphEdgeData *, size_t, unsigned int) \
	X(cudaThreadExchangeStreamCaptureMode, cudaError_t, enum cudaStreamCaptureMode *) \
	X(cudaGraphCreate, cudaError_t, cudaGraph_t *, unsigned int) \
	X(cudaGraphDestroy, cudaError_t, cudaGraph_t) \
	X(cudaGraphAddHostNode, cudaError_t, cudaGraphNode_t *, cudaGraph_t, \
		const cudaGraphNode_t *, size_t, const struct cudaHostNodeParams *) \
	X(cudaGraphAddEventRecordNode, cudaError_t, cudaGraphNode_t *, cudaGraph_t, \
		const cudaGraphNode_t *, size_t, cudaEvent_t) \
	X(cudaGraphAddEventWaitNode, cudaError_t, cudaGraphNode_t *, cudaGraph_t, \
		const cudaGraphNode_t *, size_t, cudaEvent_t) \
	X(cudaGraphAddDependencies, cudaError_t, cudaGraph_t, const cudaGraphNode_t *, \
		const cudaGraphNode_t *, const cudaGraphEdgeData *, size_t) \
	X(cudaGraphGetNodes, cudaError_t, cudaGraph_t, cudaGraphNode_t *, size_t *) \
	X(cudaGraphNodeGetType, cudaError_t, cudaGraphNode_t, enum cudaGraphNodeType *) \
	X(cudaGraphNodeGetDependencies, cudaError_t, cudaGraphNode_t, cudaGraphNode_t *, \
		cudaGraphEdgeData *, size_t *) \
	X(cudaGraphInstantiate, cudaError_t, cudaGraphExec_t *, cudaGraph_t, unsigned long long) \
	X(cudaGraphInstantiateWithFlags, cudaError_t, cudaGraphExec_t *, cudaGraph_t, \
		unsigned long long) \
	X(cudaGraphLaunch, cudaError_t, cudaGraphExec_t, cudaStream_t) \
	X(cudaGraphExecDestroy, cudaError_t, cudaGraphExec_t) \
	X(cudaUserObjectCreate, cudaError_t, cudaUserObject_t *, void *, cudaHostFn_t, \
		unsigned int, unsigned int) \
	X(cudaUserObjectRelease, cudaError_t, cudaUserObject_t, unsigned int) \
	X(cudaGraphRetainUserObject, cudaError_t, cudaGraph_t, cudaUserObject_t, \
		unsigned int, unsigned int) \
	X(cuStreamWriteValue32, CUresult, CUstream, CUdeviceptr, cuuint32_t, unsigned int) \
	X(cuStreamWriteValue64, CUresult, CUstream, CUdeviceptr, cuuint64_t, unsigned int) \
	X(cuStreamWaitValue32, CUresult, CUstream, CUdeviceptr, cuuint32_t, unsigned int) \
	X(cuStreamWaitValue64, CUresult, CUstream, CUdeviceptr, cuuint64_t, unsigned int)
/* clang-format on */
