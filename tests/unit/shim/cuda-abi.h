/* Names that shim/gate/cuda-driver.h and the vendor's cuda.h both know. */
#pragma once

#include <stddef.h>

#define CUDA_ABI_NUMBERS                                                                          \
	CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT, CU_MEMHOSTALLOC_PORTABLE,                       \
		CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP,                        \
		CU_EVENT_DISABLE_TIMING, CU_STREAM_CAPTURE_STATUS_NONE,                           \
		CU_STREAM_CAPTURE_STATUS_ACTIVE, CU_STREAM_CAPTURE_MODE_RELAXED,                  \
		CU_STREAM_MEM_OP_WAIT_VALUE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32,                  \
		CU_STREAM_WAIT_VALUE_GEQ, CU_STREAM_WRITE_VALUE_DEFAULT,                          \
		CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,                                    \
		CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,       \
		(long)(size_t)CU_STREAM_PER_THREAD, sizeof(CUmemRangeHandleType),                 \
		CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, \
		sizeof(CUresult), sizeof(CUdevice), sizeof(CUdevice_attribute),                   \
		sizeof(CUstreamCaptureStatus), sizeof(CUstreamCaptureMode), sizeof(CUdeviceptr),  \
		sizeof(CUstreamBatchMemOpParams),                                                 \
		offsetof(CUstreamBatchMemOpParams, waitValue.operation),                          \
		offsetof(CUstreamBatchMemOpParams, waitValue.address),                            \
		offsetof(CUstreamBatchMemOpParams, waitValue.value),                              \
		offsetof(CUstreamBatchMemOpParams, waitValue.flags),                              \
		offsetof(CUstreamBatchMemOpParams, writeValue.address),                           \
		offsetof(CUstreamBatchMemOpParams, writeValue.value),                             \
		offsetof(CUstreamBatchMemOpParams, writeValue.flags)

extern const long cuda_abi_ours[], cuda_abi_stock[];
extern const size_t n_cuda_abi_ours, n_cuda_abi_stock;
