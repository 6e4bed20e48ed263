/* The NCCL ABI as far as libnbox needs it: public types and numbers, declared
 * here from NCCL's documentation, so that nothing of NCCL is needed to build.
 * tests/unit/shim/test-abi.c compares them with the real nccl.h where one is
 * installed. Functions: nccl-symbols.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct ncclWindow *ncclWindow_t; /* opaque; a pointer in every version */

typedef struct {
	char internal[128];
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
	ncclSum,
	ncclProd,
	ncclMax,
	ncclMin,
	ncclAvg,
	ncclNumOps,
	ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

typedef enum {
	ncclInt8,
	ncclUint8,
	ncclInt32,
	ncclUint32,
	ncclInt64,
	ncclUint64,
	ncclFloat16,
	ncclFloat32,
	ncclFloat64,
	ncclBfloat16,
	ncclFloat8e4m3,
	ncclFloat8e5m2,
	ncclNumTypes
} ncclDataType_t;

typedef enum { ncclScalarDevice, ncclScalarHostImmediate } ncclScalarResidence_t;

/* The head of NCCL's ncclConfig_t; @size says how much of it there is. The names are the
 * caller's, and NULL where not set: @net_name since 2.17, @comm_name since 2.27. */
typedef struct {
	size_t size;
	unsigned int magic, version;
	int blocking;
	int cga_cluster_size; /* up to here since 2.14 */
	int min_ctas, max_ctas;
	const char *net_name;
	int split_share, traffic_class;
	const char *comm_name;
	int collnet_enable, cta_policy, shrink_share, nvls_ctas;
	/* ... */
} ncclConfig_t;
#define NCCL_CONFIG_HEAD offsetof(ncclConfig_t, min_ctas)

#define NCCL_CONFIG_MAGIC 0xcafebeefu
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_WIN_COLL_SYMMETRIC 1
#define NCCL_CONFIG_UNDEF_INT INT32_MIN

/* A team of the device API: passed and returned by value. */
typedef struct {
	int nRanks, rank, stride;
} ncclTeam_t;

typedef struct {
	void *base;
} ncclMultimemHandle_t;

/* Signals to wait for: so many, of that rank. Since 2.29. */
typedef struct {
	int count, peer, signal, context;
} ncclWaitSignalDesc_t;
