/* The words of a collective call: kinds, data types, reductions, and how many
 * bytes each rank puts in and gets out. Numbers equal NCCL's public enums. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum coll_kind {
	COLL_ALLREDUCE,
	COLL_ALLGATHER,
	COLL_REDUCESCATTER,
	COLL_BROADCAST,
	COLL_REDUCE,
	COLL_ALLTOALL,
	COLL_GATHER,
	COLL_SCATTER,
	COLL_SENDRECV, /* a group of point-to-point calls */
	COLL_KINDS
};

enum coll_dtype { /* ncclDataType_t */
		  COLL_INT8,
		  COLL_UINT8,
		  COLL_INT32,
		  COLL_UINT32,
		  COLL_INT64,
		  COLL_UINT64,
		  COLL_FLOAT16,
		  COLL_FLOAT32,
		  COLL_FLOAT64,
		  COLL_BFLOAT16,
		  COLL_FLOAT8E4M3,
		  COLL_FLOAT8E5M2,
		  COLL_DTYPES
};

enum coll_redop { COLL_SUM, COLL_PROD, COLL_MAX, COLL_MIN, COLL_AVG, COLL_REDOPS };

const char *coll_kind_name(uint32_t kind); /* "AllReduce"; "?" */
/* Case, '-', '_' do not matter: "all_reduce", "AllReduce". -1 when unknown. */
int coll_kind_parse(const char *name);
bool coll_has_root(uint32_t kind);           /* Broadcast, Reduce, Gather, Scatter */
bool coll_reduces(uint32_t kind);            /* AllReduce, Reduce, ReduceScatter */
const char *coll_dtype_name(uint32_t dtype); /* "float"; nccl-tests' names */
size_t coll_dtype_bytes(uint32_t dtype);     /* 0 when unknown */

/* Bytes of the send and of the receive buffer of rank @rank, for a call with
 * @count elements of @dtype as NCCL's call takes it (AllGather: sendcount,
 * ReduceScatter: recvcount, AllToAll/Gather/Scatter: count per peer). */
uint64_t coll_input_bytes(uint32_t kind, uint64_t bytes, uint32_t n_ranks, int is_root);
uint64_t coll_output_bytes(uint32_t kind, uint64_t bytes, uint32_t n_ranks, int is_root);

/* nccl-tests' bus-bandwidth factor. */
double coll_busbw_factor(uint32_t kind, uint32_t n_ranks);
