/* A table of everything in nccl.h that has a number. Compiled twice, once with
 * our header and once with NVIDIA's; test-abi.c compares the two. With ours after
 * NVIDIA's (functions only) the compiler itself compares the prototypes. */
#include <nccl.h>
#if defined(ABI_THEIRS) && defined(ABI_HAS_228)
#undef NCCL_H_
#define NBOX_NCCL_FUNCTIONS_ONLY
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Wredundant-decls"
#include "../../../../emulator/standins/include/nccl.h"
#endif

#include "abi-table.h"

#define NUMBER(x)                  \
	{                          \
#x, (long long)(x) \
	}
#define SIZE(t)                                    \
	{                                          \
		"sizeof " #t, (long long)sizeof(t) \
	}
#define FIELD(t, f)                                                                          \
	{                                                                                    \
#t "." #f, (long long)offsetof(t, f) * 1000 + (long long)sizeof(((t *)0)->f) \
	}

static ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
static ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;

const struct abi_row ABI_TABLE[] = {
	NUMBER(NCCL_MAJOR),
	NUMBER(NCCL_UNIQUE_ID_BYTES),
	NUMBER(NCCL_VERSION(2, 8, 3)),
	NUMBER(NCCL_VERSION(2, 20, 5)),
	SIZE(ncclUniqueId),
	SIZE(ncclComm_t),
	SIZE(ncclResult_t),
	NUMBER(ncclSuccess),
	NUMBER(ncclUnhandledCudaError),
	NUMBER(ncclSystemError),
	NUMBER(ncclInternalError),
	NUMBER(ncclInvalidArgument),
	NUMBER(ncclInvalidUsage),
	NUMBER(ncclRemoteError),
	NUMBER(ncclInProgress),
	NUMBER(ncclNumResults),
	SIZE(ncclDataType_t),
	NUMBER(ncclInt8),
	NUMBER(ncclChar),
	NUMBER(ncclUint8),
	NUMBER(ncclInt32),
	NUMBER(ncclInt),
	NUMBER(ncclUint32),
	NUMBER(ncclInt64),
	NUMBER(ncclUint64),
	NUMBER(ncclFloat16),
	NUMBER(ncclHalf),
	NUMBER(ncclFloat32),
	NUMBER(ncclFloat),
	NUMBER(ncclFloat64),
	NUMBER(ncclDouble),
	NUMBER(ncclBfloat16),
#ifdef ABI_HAS_228
	NUMBER(NCCL_MINOR),
	SIZE(ncclWindow_t),
	NUMBER(ncclFloat8e4m3),
	NUMBER(ncclFloat8e5m2),
	NUMBER(ncclNumTypes),
	NUMBER(NCCL_CTA_POLICY_DEFAULT),
	NUMBER(NCCL_CTA_POLICY_EFFICIENCY),
	NUMBER(NCCL_CTA_POLICY_ZERO),
	NUMBER(NCCL_SHRINK_DEFAULT),
	NUMBER(NCCL_SHRINK_ABORT),
	NUMBER(NCCL_REVOKE_DEFAULT),
	NUMBER(NCCL_WIN_DEFAULT),
	NUMBER(NCCL_WIN_COLL_SYMMETRIC),
	NUMBER(NCCL_WIN_REQUIRED_ALIGNMENT),
	SIZE(ncclConfig_t),
	FIELD(ncclConfig_t, trafficClass),
	FIELD(ncclConfig_t, commName),
	FIELD(ncclConfig_t, collnetEnable),
	FIELD(ncclConfig_t, CTAPolicy),
	FIELD(ncclConfig_t, shrinkShare),
	FIELD(ncclConfig_t, nvlsCTAs),
	FIELD(ncclConfig_t, nChannelsPerNetPeer),
	FIELD(ncclConfig_t, nvlinkCentricSched),
	SIZE(ncclSimInfo_t),
	FIELD(ncclSimInfo_t, size),
	FIELD(ncclSimInfo_t, magic),
	FIELD(ncclSimInfo_t, version),
	FIELD(ncclSimInfo_t, estimatedTime),
#endif
	SIZE(ncclRedOp_t),
	NUMBER(ncclSum),
	NUMBER(ncclProd),
	NUMBER(ncclMax),
	NUMBER(ncclMin),
	NUMBER(ncclAvg),
	NUMBER(ncclNumOps),
	NUMBER(ncclMaxRedOp),
	SIZE(ncclScalarResidence_t),
	NUMBER(ncclScalarDevice),
	NUMBER(ncclScalarHostImmediate),
	NUMBER(NCCL_CONFIG_UNDEF_INT),
	NUMBER(NCCL_SPLIT_NOCOLOR),
	NUMBER(NCCL_UNDEF_FLOAT),
	FIELD(ncclConfig_t, size),
	FIELD(ncclConfig_t, magic),
	FIELD(ncclConfig_t, version),
	FIELD(ncclConfig_t, blocking),
	FIELD(ncclConfig_t, cgaClusterSize),
	FIELD(ncclConfig_t, minCTAs),
	FIELD(ncclConfig_t, maxCTAs),
	FIELD(ncclConfig_t, netName),
	FIELD(ncclConfig_t, splitShare),
	{NULL, 0},
};

const void *const ABI_CONFIG = &config;
const void *const ABI_SIM = &sim;
