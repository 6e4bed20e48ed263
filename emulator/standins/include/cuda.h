/* The few driver functions that the host CUDA runtime offers: stream memory operations, and what
 * programs ask of devices, contexts and pointers.
 *
 * Written from the public documentation; tests/unit/standins proves names, values and function
 * types against NVIDIA's header wherever that is installed. */
#pragma once

#include <stdint.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CUDA_VERSION
#define CUDA_VERSION 13000
#endif

typedef enum cudaError_enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_OPERATING_SYSTEM = 304,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_NOT_PERMITTED = 800,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
	CUDA_ERROR_UNKNOWN = 999
} CUresult;

typedef struct CUstream_st *CUstream;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef unsigned long long CUdeviceptr_v2;
typedef CUdeviceptr_v2 CUdeviceptr;

typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUuuid_st CUuuid;

/* The numbers are those of enum cudaDeviceAttr, under other names. */
typedef enum CUdevice_attribute_enum {
	CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
	CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
} CUdevice_attribute;

typedef enum CUmemorytype_enum {
	CU_MEMORYTYPE_HOST = 1,
	CU_MEMORYTYPE_DEVICE = 2,
	CU_MEMORYTYPE_ARRAY = 3,
	CU_MEMORYTYPE_UNIFIED = 4
} CUmemorytype;

typedef enum CUpointer_attribute_enum {
	CU_POINTER_ATTRIBUTE_CONTEXT = 1,
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
	CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
	CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
	CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
	CU_POINTER_ATTRIBUTE_MAPPED = 13
} CUpointer_attribute;

typedef enum CUstreamWaitValue_flags_enum {
	CU_STREAM_WAIT_VALUE_GEQ = 0x0, /* cyclic: (int32_t)(*addr - value) >= 0 */
	CU_STREAM_WAIT_VALUE_EQ = 0x1,
	CU_STREAM_WAIT_VALUE_AND = 0x2, /* (*addr & value) != 0 */
	CU_STREAM_WAIT_VALUE_NOR = 0x3, /* ~(*addr | value) != 0 */
	CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30
} CUstreamWaitValue_flags;

typedef enum CUstreamWriteValue_flags_enum {
	CU_STREAM_WRITE_VALUE_DEFAULT = 0x0,
	CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 0x1
} CUstreamWriteValue_flags;

/* In CUDA 12 and later the plain names mean the _v2 symbols. */
#ifndef CUDA_NO_V2_NAMES
#define cuStreamWriteValue32 cuStreamWriteValue32_v2
#define cuStreamWriteValue64 cuStreamWriteValue64_v2
#define cuStreamWaitValue32 cuStreamWaitValue32_v2
#define cuStreamWaitValue64 cuStreamWaitValue64_v2
#endif

/* Writes @value to @addr when the stream gets there, after everything before it, and wakes
 * streams that wait on @addr. */
NBOX_CUDART_API CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					      unsigned int flags);
NBOX_CUDART_API CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
					      unsigned int flags);
/* Holds the stream until *@addr and @value compare as @flags say. A writer other than
 * cuStreamWriteValue is seen within 50 us, or at once when it does a (shared) FUTEX_WAKE on the
 * low word. */
NBOX_CUDART_API CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
					     unsigned int flags);
NBOX_CUDART_API CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
					     unsigned int flags);

/* --- devices, contexts, pointers: NVIDIA's documented behaviour, where a device's only context is
 * its primary one -------------------------------------------------------------------------- */

#ifndef CUDA_NO_V2_NAMES
#define cuDeviceGetUuid cuDeviceGetUuid_v2
#define cuDeviceTotalMem cuDeviceTotalMem_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuMemGetAddressRange cuMemGetAddressRange_v2
#endif

NBOX_CUDART_API CUresult cuInit(unsigned int flags);
NBOX_CUDART_API CUresult cuDriverGetVersion(int *version);
NBOX_CUDART_API CUresult cuGetErrorString(CUresult error, const char **text);
NBOX_CUDART_API CUresult cuGetErrorName(CUresult error, const char **name);
NBOX_CUDART_API CUresult cuDeviceGetCount(int *count);
NBOX_CUDART_API CUresult cuDeviceGet(CUdevice *device, int ordinal);
NBOX_CUDART_API CUresult cuDeviceGetName(char *name, int len, CUdevice device);
NBOX_CUDART_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
NBOX_CUDART_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
					      CUdevice device);
NBOX_CUDART_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
NBOX_CUDART_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags,
						    int *active);
NBOX_CUDART_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
NBOX_CUDART_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
NBOX_CUDART_API CUresult cuCtxGetCurrent(CUcontext *context);
NBOX_CUDART_API CUresult cuCtxSetCurrent(CUcontext context);
NBOX_CUDART_API CUresult cuCtxGetDevice(CUdevice *device);
NBOX_CUDART_API CUresult cuCtxSynchronize(void);
NBOX_CUDART_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr);
NBOX_CUDART_API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
					       CUdeviceptr ptr);

#ifdef __cplusplus
}
#endif
