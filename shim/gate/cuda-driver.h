/* The functions of NVIDIA's driver (libcuda.so.1) that the device cuda needs: found at run time,
 * never linked. Written from the public documentation. A unit test proves names, types, values and
 * layouts against the vendor's cuda.h where that is installed: it includes that header first, and
 * then its types are used here. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifndef CUDA_VERSION  /* no vendor's header: our own declarations */
typedef int CUresult; /* an enum of int's size; 0 is success */
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUstreamCaptureStatus;
typedef int CUstreamCaptureMode;
typedef int CUmemRangeHandleType;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef void (*CUhostFn)(void *arg);

/* One stream memory operation. */
typedef union CUstreamBatchMemOpParams_union {
	struct {
		uint32_t operation;
		CUdeviceptr address;
		union {
			uint32_t value;
			uint64_t value64;
		};
		unsigned int flags;
		CUdeviceptr alias;
	} waitValue, writeValue;
	uint64_t pad[6];
} CUstreamBatchMemOpParams;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CU_MEMHOSTALLOC_PORTABLE = 1,
	CU_MEMHOSTREGISTER_PORTABLE = 1,
	CU_MEMHOSTREGISTER_DEVICEMAP = 2,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_STREAM_NON_BLOCKING = 1,
	CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
	CU_STREAM_CAPTURE_MODE_RELAXED = 2,
	CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
	CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
	CU_STREAM_WAIT_VALUE_GEQ = 0,      /* (int32_t)(*address - value) >= 0 */
	CU_STREAM_WRITE_VALUE_DEFAULT = 0, /* after a fence for all that came before */
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116, /* by nvidia-peermem */
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
	CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
};
#define CU_STREAM_PER_THREAD ((CUstream)2)
#endif

/* X(field, exported name, parameters) */
#define CUDA_DRIVER_FUNCTIONS(X)                                                                  \
	X(Init, cuInit, (unsigned int flags))                                                     \
	X(DriverGetVersion, cuDriverGetVersion, (int *ret))                                       \
	X(GetErrorName, cuGetErrorName, (CUresult error, const char **ret))                       \
	X(DeviceGetCount, cuDeviceGetCount, (int *ret))                                           \
	X(DeviceGet, cuDeviceGet, (CUdevice * ret, int ordinal))                                  \
	X(DeviceGetAttribute, cuDeviceGetAttribute,                                               \
	  (int *ret, CUdevice_attribute what, CUdevice device))                                   \
	X(DeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *ret, int size, CUdevice device))         \
	X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext * ret, CUdevice device))   \
	X(CtxGetDevice, cuCtxGetDevice, (CUdevice * ret))                                         \
	X(CtxSetCurrent, cuCtxSetCurrent, (CUcontext context))                                    \
	X(MemAlloc, cuMemAlloc_v2, (CUdeviceptr * ret, size_t bytes))                             \
	X(MemFree, cuMemFree_v2, (CUdeviceptr ptr))                                               \
	X(MemHostAlloc, cuMemHostAlloc, (void **ret, size_t bytes, unsigned int flags))           \
	X(MemHostRegister, cuMemHostRegister_v2, (void *ptr, size_t bytes, unsigned int flags))   \
	X(MemHostUnregister, cuMemHostUnregister, (void *ptr))                                    \
	X(MemHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                  \
	  (CUdeviceptr * ret, void *ptr, unsigned int flags))                                     \
	X(MemGetHandleForAddressRange, cuMemGetHandleForAddressRange,                             \
	  (void *ret, CUdeviceptr ptr, size_t bytes, CUmemRangeHandleType type,                   \
	   unsigned long long flags))                                                             \
	X(MemcpyAsync, cuMemcpyAsync,                                                             \
	  (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))                      \
	X(MemsetD8Async, cuMemsetD8Async,                                                         \
	  (CUdeviceptr dst, unsigned char byte, size_t n, CUstream stream))                       \
	X(LaunchHostFunc, cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *arg))            \
	X(StreamCreate, cuStreamCreate, (CUstream * ret, unsigned int flags))                     \
	X(StreamGetFlags, cuStreamGetFlags, (CUstream stream, unsigned int *ret))                 \
	X(EventCreate, cuEventCreate, (CUevent * ret, unsigned int flags))                        \
	X(EventDestroy, cuEventDestroy_v2, (CUevent event))                                       \
	X(EventRecord, cuEventRecord, (CUevent event, CUstream stream))                           \
	X(StreamSynchronize, cuStreamSynchronize, (CUstream stream))                              \
	X(StreamWaitEvent, cuStreamWaitEvent,                                                     \
	  (CUstream stream, CUevent event, unsigned int flags))                                   \
	X(StreamIsCapturing, cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * ret)) \
	X(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,                     \
	  (CUstreamCaptureMode * mode))                                                           \
	X(StreamBatchMemOp, cuStreamBatchMemOp_v2,                                                \
	  (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops, unsigned int flags))   \
	/* for the footprint kernel */                                                            \
	X(ModuleLoadData, cuModuleLoadData, (CUmodule * ret, const void *image))                  \
	X(ModuleGetFunction, cuModuleGetFunction,                                                 \
	  (CUfunction * ret, CUmodule module, const char *name))                                  \
	X(LaunchKernel, cuLaunchKernel,                                                           \
	  (CUfunction fn, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,          \
	   unsigned int block_x, unsigned int block_y, unsigned int block_z,                      \
	   unsigned int shared_bytes, CUstream stream, void **args, void **extra))

struct cuda_driver {
#define CUDA_DRIVER_POINTER(field, name, params) CUresult(*field) params;
	CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_POINTER)
#undef CUDA_DRIVER_POINTER
	CUresult (*StreamGetDevice)(CUstream stream, CUdevice *ret); /* NULL before CUDA 12.8 */
	/* _v3 has 7 parameters, _v2 6: the first three are the same and all we ask for. */
	CUresult (*StreamGetCaptureInfo)(CUstream stream, CUstreamCaptureStatus *ret_status,
					 uint64_t *ret_id, void *graph, void *dependencies,
					 void *edges, void *n_dependencies);
};

/* Finds the driver that this process uses: one that is loaded already, else libcuda.so.1. Refuses a
 * driver on which the process's CUDA runtime does not stand: the runtime's streams would mean
 * nothing to it. Return: 0; -ENOENT, -ENOTSUP, -ENXIO (nbox's stand-in) with the sentence. */
int cuda_driver_find(struct cuda_driver *ret, struct err *err);

/* "CUDA_ERROR_INVALID_VALUE", or "error 1" */
const char *cuda_driver_error(const struct cuda_driver *d, CUresult error);
