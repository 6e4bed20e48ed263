/* cudaGetDeviceProperties in the layouts of CUDA 12 and 13. */
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "prop12.h"
#include "runtime.h"

static int attribute(enum cudaDeviceAttr attr, int device)
{
	int value = 0;

	cudaDeviceGetAttribute(&value, attr, device);
	return value;
}

/* The fields that both layouts have. A macro: the two types have their names in common, no more. */
#define FILL(p, d)                                                                                 \
	do {                                                                                       \
		memset((p), 0, sizeof(*(p)));                                                      \
		snprintf((p)->name, sizeof((p)->name), DEVICE_NAME);                               \
		device_uuid((d), &(p)->uuid);                                                      \
		(p)->totalGlobalMem = device_memory();                                             \
		(p)->sharedMemPerBlock = (size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlock, d); \
		(p)->sharedMemPerBlockOptin =                                                      \
			(size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, d);             \
		(p)->sharedMemPerMultiprocessor =                                                  \
			(size_t)attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, d);         \
		(p)->regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock, d);                 \
		(p)->regsPerMultiprocessor =                                                       \
			attribute(cudaDevAttrMaxRegistersPerMultiprocessor, d);                    \
		(p)->warpSize = attribute(cudaDevAttrWarpSize, d);                                 \
		(p)->memPitch = (size_t)attribute(cudaDevAttrMaxPitch, d);                         \
		(p)->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock, d);             \
		(p)->maxThreadsDim[0] = attribute(cudaDevAttrMaxBlockDimX, d);                     \
		(p)->maxThreadsDim[1] = attribute(cudaDevAttrMaxBlockDimY, d);                     \
		(p)->maxThreadsDim[2] = attribute(cudaDevAttrMaxBlockDimZ, d);                     \
		(p)->maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX, d);                        \
		(p)->maxGridSize[1] = attribute(cudaDevAttrMaxGridDimY, d);                        \
		(p)->maxGridSize[2] = attribute(cudaDevAttrMaxGridDimZ, d);                        \
		(p)->totalConstMem = (size_t)attribute(cudaDevAttrTotalConstantMemory, d);         \
		(p)->major = attribute(cudaDevAttrComputeCapabilityMajor, d);                      \
		(p)->minor = attribute(cudaDevAttrComputeCapabilityMinor, d);                      \
		(p)->textureAlignment = (size_t)attribute(cudaDevAttrTextureAlignment, d);         \
		(p)->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount, d);           \
		(p)->integrated = attribute(cudaDevAttrIntegrated, d);                             \
		(p)->canMapHostMemory = attribute(cudaDevAttrCanMapHostMemory, d);                 \
		(p)->concurrentKernels = attribute(cudaDevAttrConcurrentKernels, d);               \
		(p)->pciBusID = attribute(cudaDevAttrPciBusId, d);                                 \
		(p)->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount, d);                 \
		(p)->unifiedAddressing = attribute(cudaDevAttrUnifiedAddressing, d);               \
		(p)->l2CacheSize = attribute(cudaDevAttrL2CacheSize, d);                           \
		(p)->maxThreadsPerMultiProcessor =                                                 \
			attribute(cudaDevAttrMaxThreadsPerMultiProcessor, d);                      \
		(p)->maxBlocksPerMultiProcessor =                                                  \
			attribute(cudaDevAttrMaxBlocksPerMultiprocessor, d);                       \
		(p)->streamPrioritiesSupported =                                                   \
			attribute(cudaDevAttrStreamPrioritiesSupported, d);                        \
		(p)->managedMemory = attribute(cudaDevAttrManagedMemory, d);                       \
		(p)->hostNativeAtomicSupported =                                                   \
			attribute(cudaDevAttrHostNativeAtomicSupported, d);                        \
		(p)->pageableMemoryAccess = attribute(cudaDevAttrPageableMemoryAccess, d);         \
		(p)->concurrentManagedAccess = attribute(cudaDevAttrConcurrentManagedAccess, d);   \
		(p)->canUseHostPointerForRegisteredMem =                                           \
			attribute(cudaDevAttrCanUseHostPointerForRegisteredMem, d);                \
		(p)->cooperativeLaunch = attribute(cudaDevAttrCooperativeLaunch, d);               \
		(p)->pageableMemoryAccessUsesHostPageTables =                                      \
			attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables, d);           \
		(p)->directManagedMemAccessFromHost =                                              \
			attribute(cudaDevAttrDirectManagedMemAccessFromHost, d);                   \
		(p)->hostRegisterSupported = attribute(cudaDevAttrHostRegisterSupported, d);       \
		(p)->hostRegisterReadOnlySupported =                                               \
			attribute(cudaDevAttrHostRegisterReadOnlySupported, d);                    \
		(p)->memoryPoolsSupported = attribute(cudaDevAttrMemoryPoolsSupported, d);         \
	} while (0)

#if NBOX_CUDART_MAJOR == 13

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	if (!prop)
		return runtime_return(cudaErrorInvalidValue);
	if (!device_get(device))
		return runtime_return(cudaErrorInvalidDevice);
	FILL(prop, device);
	return cudaSuccess;
}

#else

cudaError_t properties_v2(struct prop12 *prop, int device) __asm__("cudaGetDeviceProperties_v2")
	__attribute__((visibility("default")));

cudaError_t properties_v2(struct prop12 *prop, int device)
{
	if (!prop)
		return runtime_return(cudaErrorInvalidValue);
	if (!device_get(device))
		return runtime_return(cudaErrorInvalidDevice);
	FILL(prop, device);
	prop->deviceOverlap = attribute(cudaDevAttrGpuOverlap, device);
	prop->computeMode = attribute(cudaDevAttrComputeMode, device);
	return cudaSuccess;
}

#endif
