/* The public interface of NCCL 2.20 to 2.28 in our own words: the names, numbers
 * and layouts that a program needs to be compiled and linked against any
 * libnccl.so.2, host NCCL's or NVIDIA's. tests/unit/standins/nccl/test-abi.c proves
 * it against the real header wherever one is installed.
 *
 * What belongs to which version, as far as it matters: InitRankScalable 2.23,
 * GroupSimulateEnd 2.22, Shrink and windows 2.27, AlltoAll, Gather, Scatter and
 * Revoke 2.28. ncclConfig_t has only ever grown at its end; `size` tells. */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>

#ifdef __has_include
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The test against the real header takes the types from there and only the
 * functions from here. */
#ifndef NBOX_NCCL_FUNCTIONS_ONLY

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION(x, y, z) \
	(((x) < 2 || ((x) == 2 && (y) <= 8)) ? (x)*1000 + (y)*100 + (z) : (x)*10000 + (y)*100 + (z))
#define NCCL_VERSION_CODE 22809

typedef struct CUstream_st *cudaStream_t; /* also in cuda_runtime_api.h */
typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess,
	ncclUnhandledCudaError,
	ncclSystemError,
	ncclInternalError,
	ncclInvalidArgument,
	ncclInvalidUsage,
	ncclRemoteError,
	ncclInProgress,
	ncclNumResults
} ncclResult_t;

typedef enum {
	ncclInt8 = 0,
	ncclChar = ncclInt8,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = ncclInt32,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = ncclFloat16,
	ncclFloat32 = 7,
	ncclFloat = ncclFloat32,
	ncclFloat64 = 8,
	ncclDouble = ncclFloat64,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
	ncclNumTypes = 12
} ncclDataType_t;

/* Values from ncclNumOps on are those that ncclRedOpCreate*() hand out. */
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
	ncclSum,
	ncclProd,
	ncclMax,
	ncclMin,
	ncclAvg,
	ncclNumOps,
	ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

typedef enum {
	ncclScalarDevice,       /* read on the device when the op runs */
	ncclScalarHostImmediate /* read before the call returns */
} ncclScalarResidence_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

typedef struct ncclConfig_v22800 {
	/* set by NCCL_CONFIG_INITIALIZER only */
	size_t size;
	unsigned int magic;
	unsigned int version;
	/* the caller's; undefined ones keep their defaults */
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_MAGIC_ 0xcafebeef
#define NCCL_CONFIG_INITIALIZER                                                                  \
	{                                                                                        \
		sizeof(ncclConfig_t), NCCL_CONFIG_MAGIC_,                                        \
			NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_CONFIG_UNDEF_INT, \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
			NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
			NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
			NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,     \
			NCCL_CONFIG_UNDEF_INT                                                    \
	}

typedef struct ncclSimInfo_v22200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_MAGIC_ 0x74685283
#define NCCL_SIM_INFO_INITIALIZER                                                          \
	{                                                                                  \
		sizeof(ncclSimInfo_t), NCCL_SIM_INFO_MAGIC_,                               \
			NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT \
	}

#endif /* NBOX_NCCL_FUNCTIONS_ONLY */

/* Every function exists twice: ncclX, weak, which a profiler may replace, and
 * pncclX, which it then calls. */
#define NCCL_API_(ret, name, ...) \
	ret name(__VA_ARGS__);    \
	ret p##name(__VA_ARGS__)

/* --- the library ----------------------------------------------------------- */
NCCL_API_(ncclResult_t, ncclGetVersion, int *version);
NCCL_API_(const char *, ncclGetErrorString, ncclResult_t result);
/* The sentence of this process' last error; @comm may be NULL. */
NCCL_API_(const char *, ncclGetLastError, ncclComm_t comm);
NCCL_API_(void, ncclResetDebugInit, void);
NCCL_API_(ncclResult_t, ncclMemAlloc, void **ptr, size_t size);
NCCL_API_(ncclResult_t, ncclMemFree, void *ptr);

/* --- communicators --------------------------------------------------------- */
NCCL_API_(ncclResult_t, ncclGetUniqueId, ncclUniqueId *uniqueId);
NCCL_API_(ncclResult_t, ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId commId,
	  int rank);
NCCL_API_(ncclResult_t, ncclCommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId commId,
	  int rank, ncclConfig_t *config);
NCCL_API_(ncclResult_t, ncclCommInitRankScalable, ncclComm_t *newcomm, int nranks, int myrank,
	  int nId, ncclUniqueId *commIds, ncclConfig_t *config);
NCCL_API_(ncclResult_t, ncclCommInitAll, ncclComm_t *comm, int ndev, const int *devlist);
/* Collective over @comm; NCCL_SPLIT_NOCOLOR takes part and gets NULL. */
NCCL_API_(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
	  ncclConfig_t *config);
NCCL_API_(ncclResult_t, ncclCommShrink, ncclComm_t comm, int *excludeRanksList,
	  int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags);
NCCL_API_(ncclResult_t, ncclCommFinalize, ncclComm_t comm);
NCCL_API_(ncclResult_t, ncclCommDestroy, ncclComm_t comm);
NCCL_API_(ncclResult_t, ncclCommAbort, ncclComm_t comm);
NCCL_API_(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags);
NCCL_API_(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *asyncError);
NCCL_API_(ncclResult_t, ncclCommCount, const ncclComm_t comm, int *count);
NCCL_API_(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int *device);
NCCL_API_(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int *rank);
NCCL_API_(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void *buff, size_t size,
	  void **handle);
NCCL_API_(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void *handle);
NCCL_API_(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void *buff, size_t size,
	  ncclWindow_t *win, int winFlags);
NCCL_API_(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win);

/* --- one-sided (NCCL 2.29): enqueued on @stream ------------------------------ */
/* @sigIdx, @ctx and @flags are 0 yet. */
NCCL_API_(ncclResult_t, ncclPutSignal, const void *localbuff, size_t count, ncclDataType_t datatype,
	  int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
	  unsigned int flags, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclSignal, int peer, int sigIdx, int ctx, unsigned int flags,
	  ncclComm_t comm, cudaStream_t stream);
typedef struct {
	int opCnt; /* signals to wait for */
	int peer;  /* that sends them */
	int sigIdx, ctx;
} ncclWaitSignalDesc_t;
NCCL_API_(ncclResult_t, ncclWaitSignal, int nDesc, ncclWaitSignalDesc_t *signalDescs,
	  ncclComm_t comm, cudaStream_t stream);

/* --- operators ------------------------------------------------------------- */
/* Sum of scalar * input; only for @datatype and @comm. */
NCCL_API_(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar,
	  ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm);
NCCL_API_(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm);

/* --- collectives: enqueued on @stream; counts in elements ------------------- */
NCCL_API_(ncclResult_t, ncclAllReduce, const void *sendbuff, void *recvbuff, size_t count,
	  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclReduce, const void *sendbuff, void *recvbuff, size_t count,
	  ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclBcast, void *buff, size_t count, ncclDataType_t datatype, int root,
	  ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclBroadcast, const void *sendbuff, void *recvbuff, size_t count,
	  ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
/* @recvcount, @sendcount and, below, @count: elements per rank */
NCCL_API_(ncclResult_t, ncclReduceScatter, const void *sendbuff, void *recvbuff, size_t recvcount,
	  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclAllGather, const void *sendbuff, void *recvbuff, size_t sendcount,
	  ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclAlltoAll, const void *sendbuff, void *recvbuff, size_t count,
	  ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclGather, const void *sendbuff, void *recvbuff, size_t count,
	  ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclScatter, const void *sendbuff, void *recvbuff, size_t count,
	  ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclSend, const void *sendbuff, size_t count, ncclDataType_t datatype,
	  int peer, ncclComm_t comm, cudaStream_t stream);
NCCL_API_(ncclResult_t, ncclRecv, void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	  ncclComm_t comm, cudaStream_t stream);

/* --- groups: calls between the outermost pair are one operation ------------- */
NCCL_API_(ncclResult_t, ncclGroupStart, void);
NCCL_API_(ncclResult_t, ncclGroupEnd, void);
NCCL_API_(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t *simInfo);

#ifdef __cplusplus
}
#endif

#endif /* NCCL_H_ */
