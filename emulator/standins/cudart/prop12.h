/* The properties of a device in the layout of CUDA 12: between the fields that stayed are those
 * that CUDA 13 dropped. From the public documentation of CUDA 12's struct cudaDeviceProp. */
#pragma once

#include <cuda_runtime_api.h>

struct prop12 {
	NBOX_PROP_MEMORY;
	int clockRate;
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment;
	size_t texturePitchAlignment;
	int deviceOverlap;
	int multiProcessorCount;
	int kernelExecTimeoutEnabled;
	int integrated;
	int canMapHostMemory;
	int computeMode;
	int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear;
	NBOX_PROP_TEXTURES;
	int memoryClockRate;
	NBOX_PROP_MULTIPROCESSOR;
	int singleToDoublePrecisionPerfRatio;
	int pageableMemoryAccess;
	int concurrentManagedAccess;
	int computePreemptionSupported;
	int canUseHostPointerForRegisteredMem;
	int cooperativeLaunch;
	int cooperativeMultiDeviceLaunch;
	NBOX_PROP_SHARING;
	int reserved2[2], reserved1[1];
	int reserved[60];
};

_Static_assert(sizeof(struct prop12) == 1032, "CUDA 12's programs have room for 1032 bytes");
