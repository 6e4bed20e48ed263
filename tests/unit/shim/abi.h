/* Names that both headers know. */
#pragma once

#include <stddef.h>

#define ABI_NUMBERS                                                                                \
	ncclSuccess, ncclUnhandledCudaError, ncclSystemError, ncclInternalError,                   \
		ncclInvalidArgument, ncclInvalidUsage, ncclRemoteError, ncclInProgress, ncclSum,   \
		ncclProd, ncclMax, ncclMin, ncclAvg, ncclNumOps, ncclMaxRedOp, ncclInt8,           \
		ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64, ncclFloat16, ncclFloat32, \
		ncclFloat64, ncclBfloat16, ncclScalarDevice, ncclScalarHostImmediate,              \
		NCCL_SPLIT_NOCOLOR, sizeof(ncclUniqueId), sizeof(ncclResult_t),                    \
		sizeof(ncclRedOp_t), sizeof(ncclDataType_t)

extern const long abi_stock[];
extern const size_t abi_stock_blocking, abi_stock_config,
	abi_stock_names[3]; /* names: 0 where it has none */
