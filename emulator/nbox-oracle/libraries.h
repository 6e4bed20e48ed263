/* NCCL and the CUDA runtime, opened when the program runs: they are the user's, and nbox builds
 * without them. */
#pragma once

#include "base/err.h"
#include "shim/real/nccl-api.h"

struct libraries {
	char nccl_path[2048]; /* of what was opened */
	int version;
	int n_gpus;
	char gpu_name[64]; /* of the first one; "": not known */
	/* NCCL */
	ncclResult_t (*GetVersion)(int *);
	ncclResult_t (*CommInitRank)(ncclComm_t *, int, ncclUniqueId, int);
	ncclResult_t (*CommDestroy)(ncclComm_t);
	ncclResult_t (*GroupStart)(void);
	ncclResult_t (*GroupEnd)(void);
	const char *(*GetErrorString)(ncclResult_t);
	const char *(*GetLastError)(ncclComm_t);
	ncclResult_t (*AllReduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
				  ncclComm_t, cudaStream_t);
	ncclResult_t (*AllGather)(const void *, void *, size_t, ncclDataType_t, ncclComm_t,
				  cudaStream_t);
	ncclResult_t (*ReduceScatter)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
				      ncclComm_t, cudaStream_t);
	ncclResult_t (*Broadcast)(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t,
				  cudaStream_t);
	ncclResult_t (*Reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int,
			       ncclComm_t, cudaStream_t);
	/* the CUDA runtime */
	int (*cudaGetDeviceCount)(int *);
	int (*cudaSetDevice)(int);
	int (*cudaMalloc)(void **, size_t);
	int (*cudaFree)(void *);
	int (*cudaMemGetInfo)(size_t *, size_t *);
	const char *(*cudaGetErrorString)(int);
};

/* @nccl, @cudart: files; NULL: as the dynamic linker finds them, the runtime then also where the
 * packages of PyPI have it, beside NCCL. They stay open.
 * Return: 0; -ENOENT, -ENODEV, -ENOSYS with the sentence. */
int libraries_open(const char *nccl, const char *cudart, struct libraries *ret, struct err *err);
