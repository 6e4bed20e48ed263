/* The properties of a device, in the layout of CUDA 13. Included by cuda_runtime_api.h. */
#pragma once

typedef struct CUuuid_st {
	char bytes[16];
} cudaUUID_t;

/* Runs of members that stand in the layout of CUDA 12, too (../cudart/prop12.h). */
#define NBOX_PROP_MEMORY                 \
	char name[256];                  \
	cudaUUID_t uuid;                 \
	char luid[8];                    \
	unsigned int luidDeviceNodeMask; \
	size_t totalGlobalMem;           \
	size_t sharedMemPerBlock;        \
	int regsPerBlock;                \
	int warpSize;                    \
	size_t memPitch;                 \
	int maxThreadsPerBlock;          \
	int maxThreadsDim[3];            \
	int maxGridSize[3]
#define NBOX_PROP_TEXTURES                                                                        \
	int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2]; \
	int maxTexture3D[3], maxTexture3DAlt[3];                                                  \
	int maxTextureCubemap;                                                                    \
	int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];          \
	int maxSurface1D, maxSurface2D[2], maxSurface3D[3];                                       \
	int maxSurface1DLayered[2], maxSurface2DLayered[3];                                       \
	int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];                                       \
	size_t surfaceAlignment;                                                                  \
	int concurrentKernels;                                                                    \
	int ECCEnabled;                                                                           \
	int pciBusID, pciDeviceID, pciDomainID;                                                   \
	int tccDriver;                                                                            \
	int asyncEngineCount;                                                                     \
	int unifiedAddressing
#define NBOX_PROP_MULTIPROCESSOR                           \
	int memoryBusWidth;                                \
	int l2CacheSize;                                   \
	int persistingL2CacheMaxSize;                      \
	int maxThreadsPerMultiProcessor;                   \
	int streamPrioritiesSupported;                     \
	int globalL1CacheSupported, localL1CacheSupported; \
	size_t sharedMemPerMultiprocessor;                 \
	int regsPerMultiprocessor;                         \
	int managedMemory;                                 \
	int isMultiGpuBoard, multiGpuBoardGroupID;         \
	int hostNativeAtomicSupported
#define NBOX_PROP_SHARING                             \
	size_t sharedMemPerBlockOptin;                \
	int pageableMemoryAccessUsesHostPageTables;   \
	int directManagedMemAccessFromHost;           \
	int maxBlocksPerMultiProcessor;               \
	int accessPolicyMaxWindowSize;                \
	size_t reservedSharedMemPerBlock;             \
	int hostRegisterSupported;                    \
	int sparseCudaArraySupported;                 \
	int hostRegisterReadOnlySupported;            \
	int timelineSemaphoreInteropSupported;        \
	int memoryPoolsSupported;                     \
	int gpuDirectRDMASupported;                   \
	unsigned int gpuDirectRDMAFlushWritesOptions; \
	int gpuDirectRDMAWritesOrdering;              \
	unsigned int memoryPoolSupportedHandleTypes;  \
	int deferredMappingCudaArraySupported;        \
	int ipcEventSupported;                        \
	int clusterLaunch;                            \
	int unifiedFunctionPointers

struct cudaDeviceProp {
	NBOX_PROP_MEMORY;
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment;
	size_t texturePitchAlignment;
	int multiProcessorCount;
	int integrated;
	int canMapHostMemory;
	int maxTexture1D, maxTexture1DMipmap;
	NBOX_PROP_TEXTURES;
	NBOX_PROP_MULTIPROCESSOR;
	int pageableMemoryAccess;
	int concurrentManagedAccess;
	int computePreemptionSupported;
	int canUseHostPointerForRegisteredMem;
	int cooperativeLaunch;
	NBOX_PROP_SHARING;
	int deviceNumaConfig, deviceNumaId;
	int mpsEnabled;
	int hostNumaId;
	unsigned int gpuPciDeviceID, gpuPciSubsystemID;
	int hostNumaMultinodeIpcSupported;
	int reserved[56];
};

/* Numbers agree with cudaDeviceGetAttribute(); what a host has not is 0. */
NBOX_CUDART_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
