/* The public functions. pncclX is the function, ncclX a weak alias of it, as in NCCL. */
#include <stdlib.h>
#include <string.h>

#include "standins/nccl/comm.h"

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(ret, name, args) EXPORT __attribute__((weak, alias("p" #name))) ret name args
#define API(ret, name, args)    \
	ALIAS(ret, name, args); \
	EXPORT ret p##name args

#define NOTE(r) note(r)

static ncclResult_t note(ncclResult_t r)
{
	group_note(r);
	return r;
}

/* A mark by which libnbox recognises the library, for versions.txt. */
EXPORT const char nbox_host_nccl[] = "nbox's stand-in for NCCL";

/* --- the library ------------------------------------------------------------------------------ */

API(ncclResult_t, ncclGetVersion, (int *version))
{
	if (!version)
		return fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

API(const char *, ncclGetErrorString, (ncclResult_t result))
{
	static const char *const texts[ncclNumResults] = {
		"no error",
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error",
		"invalid argument",
		"invalid usage",
		"remote process exited or there was a network error",
		"NCCL operation in progress",
	};

	return result >= 0 && result < ncclNumResults ? texts[result] : "unknown result code";
}

API(const char *, ncclGetLastError, (ncclComm_t comm))
{
	static _Thread_local char copy[ERR_TEXT_MAX];

	if (!comm || comm->canary != COMM_CANARY || !atomic_load(&comm->error))
		return last_error();
	pthread_mutex_lock(&comm->lock);
	memcpy(copy, comm->text, sizeof(copy));
	pthread_mutex_unlock(&comm->lock);
	return copy;
}

API(void, ncclResetDebugInit, (void))
{
	debug_reset();
}

static ncclResult_t of_cuda(cudaError_t e, const char *what)
{
	return e ? fail(ncclUnhandledCudaError, "%s: %s", what, cudaGetErrorString(e))
		 : ncclSuccess;
}

API(ncclResult_t, ncclMemAlloc, (void **ptr, size_t size))
{
	if (!ptr)
		return fail(ncclInvalidArgument, "ncclMemAlloc: ptr is NULL");
	return of_cuda(cudaMalloc(ptr, size), "ncclMemAlloc");
}

API(ncclResult_t, ncclMemFree, (void *ptr))
{
	return of_cuda(cudaFree(ptr), "ncclMemFree");
}

/* --- communicators ------------------------------------------------------------------------------
 */

API(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * uniqueId))
{
	if (!uniqueId)
		return fail(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
	return boot_make_id(uniqueId);
}

API(ncclResult_t, ncclCommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank))
{
	return NOTE(comm_init_rank(comm, nranks, &commId, 1, rank, NULL, "ncclCommInitRank"));
}

API(ncclResult_t, ncclCommInitRankConfig,
    (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config))
{
	return NOTE(
		comm_init_rank(comm, nranks, &commId, 1, rank, config, "ncclCommInitRankConfig"));
}

API(ncclResult_t, ncclCommInitRankScalable,
    (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
     ncclConfig_t *config))
{
	return NOTE(comm_init_rank(newcomm, nranks, commIds, nId, myrank, config,
				   "ncclCommInitRankScalable"));
}

API(ncclResult_t, ncclCommInitAll, (ncclComm_t * comm, int ndev, const int *devlist))
{
	return NOTE(comm_init_all(comm, ndev, devlist));
}

API(ncclResult_t, ncclCommSplit,
    (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config))
{
	return NOTE(comm_split(comm, color, key, newcomm, config));
}

API(ncclResult_t, ncclCommShrink,
    (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
     ncclConfig_t *config, int shrinkFlags))
{
	return NOTE(comm_shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config,
				shrinkFlags));
}

API(ncclResult_t, ncclCommFinalize, (ncclComm_t comm))
{
	return comm_finalize(comm);
}

API(ncclResult_t, ncclCommDestroy, (ncclComm_t comm))
{
	return comm_destroy(comm);
}

API(ncclResult_t, ncclCommAbort, (ncclComm_t comm))
{
	return comm_abort(comm);
}

API(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int revokeFlags))
{
	return comm_revoke(comm, revokeFlags);
}

API(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *asyncError))
{
	return comm_async_error(comm, asyncError);
}

static ncclResult_t query(const struct ncclComm *c, int *ret, const char *what)
{
	ncclResult_t r = comm_known(c, what);

	if (r)
		return r;
	if (!ret)
		return fail(ncclInvalidArgument, "%s: no place for the answer", what);
	if (atomic_load(&c->state) == ncclInProgress && !atomic_load(&c->is_finalized))
		return fail(ncclInvalidArgument, "%s: the communicator is still being made", what);
	return ncclSuccess;
}

API(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int *count))
{
	ncclResult_t r = query(comm, count, "ncclCommCount");

	if (!r)
		*count = (int)comm->n_ranks;
	return r;
}

API(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int *device))
{
	ncclResult_t r = query(comm, device, "ncclCommCuDevice");

	if (!r)
		*device = comm->device;
	return r;
}

API(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int *rank))
{
	ncclResult_t r = query(comm, rank, "ncclCommUserRank");

	if (!r)
		*rank = (int)comm->rank;
	return r;
}

/* A registration saves a real NCCL work. Here only the handle exists. */
static ncclResult_t enroll(struct ncclComm *comm, void *buff, size_t size, void **ret,
			   const char *what)
{
	ncclResult_t r = comm_known(comm, what);
	struct window *reg;

	if (r)
		return r;
	if (!buff || !size || !ret)
		return fail(ncclInvalidArgument,
			    "%s: a buffer and a place for the handle are needed", what);
	reg = malloc(sizeof(*reg));
	if (!reg)
		return fail(ncclSystemError, "out of memory");
	*reg = (struct window){.comm = comm, .base = buff, .size = size};
	*ret = reg;
	return ncclSuccess;
}

static ncclResult_t leave(const struct ncclComm *comm, void *handle, const char *what)
{
	const struct window *reg = handle;
	ncclResult_t r = comm_known(comm, what);

	if (r || !reg)
		return r;
	if (reg->comm != comm)
		return fail(ncclInvalidArgument, "%s: a handle of another communicator", what);
	free(handle);
	return ncclSuccess;
}

API(ncclResult_t, ncclCommRegister, (const ncclComm_t comm, void *buff, size_t size, void **handle))
{
	return enroll(comm, buff, size, handle, "ncclCommRegister");
}

API(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void *handle))
{
	return leave(comm, handle, "ncclCommDeregister");
}

API(ncclResult_t, ncclCommWindowRegister,
    (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags))
{
	void *handle = NULL;
	struct window *w;
	ncclResult_t r;

	if (winFlags != NCCL_WIN_DEFAULT && winFlags != NCCL_WIN_COLL_SYMMETRIC)
		return fail(ncclInvalidArgument, "ncclCommWindowRegister: flags %#x", winFlags);
	r = enroll(comm, buff, size, win ? &handle : NULL, "ncclCommWindowRegister");
	if (r)
		return NOTE(r);
	w = handle;
	w->is_symmetric = winFlags == NCCL_WIN_COLL_SYMMETRIC;
	w->place = win;
	*win = NULL;
	group_window(w);
	return ncclSuccess;
}

API(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win))
{
	ncclResult_t r = comm_known(comm, "ncclCommWindowDeregister");

	if (!r && win)
		window_remove(comm, (struct window *)win);
	return r ? r : leave(comm, win, "ncclCommWindowDeregister");
}

/* --- one-sided calls ------------------------------------------------------------------------- */

static ncclResult_t refuse_rma(const char *what, int signal, int context, unsigned int flags)
{
	ncclResult_t r =
		fail(ncclInvalidArgument, "%s: signal %d, context %d, flags %#x: all are 0 yet",
		     what, signal, context, flags);

	group_note(r);
	return r;
}

#define RMA_CALL(n, type, peer_, what_, ...)          \
	group_call(&(struct call){.kind = COLL_KINDS, \
				  .count = n,         \
				  .dtype = type,      \
				  .root = peer_,      \
				  .comm = comm,       \
				  .stream = stream,   \
				  .name = what_,      \
				  .rma = {__VA_ARGS__}})

API(ncclResult_t, ncclPutSignal,
    (const void *localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
     size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
     cudaStream_t stream))
{
	const struct window *w = (const struct window *)peerWin;

	if (sigIdx || ctx || flags)
		return refuse_rma("ncclPutSignal", sigIdx, ctx, flags);
	if (!w || !localbuff || w->comm != comm)
		return NOTE(fail(
			ncclInvalidArgument,
			"ncclPutSignal: a buffer and a window of this communicator are needed"));
	if (!window_has(comm, localbuff))
		return NOTE(fail(ncclInvalidArgument,
				 "ncclPutSignal: the buffer is in no symmetric window"));
	return RMA_CALL(count, datatype, peer, "ncclPutSignal", RMA_PUT, localbuff,
			count * coll_dtype_bytes((uint32_t)datatype), w->number, peerWinOffset);
}

API(ncclResult_t, ncclSignal,
    (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
{
	if (sigIdx || ctx || flags)
		return refuse_rma("ncclSignal", sigIdx, ctx, flags);
	return RMA_CALL(0, ncclInt8, peer, "ncclSignal", .what = RMA_SIGNAL);
}

API(ncclResult_t, ncclWaitSignal,
    (int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream))
{
	ncclResult_t r = ncclSuccess, e;

	if (nDesc <= 0 || !signalDescs)
		return NOTE(fail(ncclInvalidArgument, "ncclWaitSignal: for nothing"));
	for (int i = 0; i < nDesc; i++)
		if (signalDescs[i].opCnt <= 0 || signalDescs[i].sigIdx || signalDescs[i].ctx)
			return refuse_rma("ncclWaitSignal", signalDescs[i].sigIdx,
					  signalDescs[i].ctx, 0);
	group_start();
	for (int i = 0; i < nDesc && !r; i++)
		r = RMA_CALL((size_t)signalDescs[i].opCnt, ncclInt8, signalDescs[i].peer,
			     "ncclWaitSignal", .what = RMA_WAIT);
	e = group_end();
	return r ? r : e;
}

/* --- operators and collectives --------------------------------------------------------------- */

API(ncclResult_t, ncclRedOpCreatePreMulSum,
    (ncclRedOp_t * op, void *scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,
     ncclComm_t comm))
{
	return NOTE(comm_make_redop(comm, scalar, datatype, residence, op));
}

API(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm))
{
	return NOTE(comm_drop_redop(comm, op));
}

#define CALL(k, sendbuff, recvbuff, n, type, redop, root_, what) \
	group_call(&(struct call){.kind = k,                     \
				  .send = sendbuff,              \
				  .recv = recvbuff,              \
				  .count = n,                    \
				  .dtype = type,                 \
				  .op = redop,                   \
				  .root = root_,                 \
				  .comm = comm,                  \
				  .stream = stream,              \
				  .name = what})

API(ncclResult_t, ncclAllReduce,
    (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
     ncclComm_t comm, cudaStream_t stream))
{
	return CALL(COLL_ALLREDUCE, sendbuff, recvbuff, count, datatype, op, 0, "ncclAllReduce");
}

API(ncclResult_t, ncclReduce,
    (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
     int root, ncclComm_t comm, cudaStream_t stream))
{
	return CALL(COLL_REDUCE, sendbuff, recvbuff, count, datatype, op, root, "ncclReduce");
}

API(ncclResult_t, ncclBcast,
    (void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
     cudaStream_t stream))
{
	return CALL(COLL_BROADCAST, buff, buff, count, datatype, ncclSum, root, "ncclBcast");
}

API(ncclResult_t, ncclBroadcast,
    (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
     ncclComm_t comm, cudaStream_t stream))
{
	return CALL(COLL_BROADCAST, sendbuff, recvbuff, count, datatype, ncclSum, root,
		    "ncclBroadcast");
}

API(ncclResult_t, ncclReduceScatter,
    (const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))
{
	return CALL(COLL_REDUCESCATTER, sendbuff, recvbuff, recvcount, datatype, op, 0,
		    "ncclReduceScatter");
}

API(ncclResult_t, ncclAllGather,
    (const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
     ncclComm_t comm, cudaStream_t stream))
{
	return CALL(COLL_ALLGATHER, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0,
		    "ncclAllGather");
}

API(ncclResult_t, ncclAlltoAll,
    (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
     cudaStream_t stream))
{
	return CALL(COLL_ALLTOALL, sendbuff, recvbuff, count, datatype, ncclSum, 0, "ncclAlltoAll");
}

API(ncclResult_t, ncclGather,
    (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
     ncclComm_t comm, cudaStream_t stream))
{
	return CALL(COLL_GATHER, sendbuff, recvbuff, count, datatype, ncclSum, root, "ncclGather");
}

API(ncclResult_t, ncclScatter,
    (const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
     ncclComm_t comm, cudaStream_t stream))
{
	return CALL(COLL_SCATTER, sendbuff, recvbuff, count, datatype, ncclSum, root,
		    "ncclScatter");
}

API(ncclResult_t, ncclSend,
    (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
     cudaStream_t stream))
{
	return group_call(&(struct call){.kind = COLL_SENDRECV,
					 .send = sendbuff,
					 .count = count,
					 .dtype = datatype,
					 .root = peer,
					 .is_send = true,
					 .comm = comm,
					 .stream = stream,
					 .name = "ncclSend"});
}

API(ncclResult_t, ncclRecv,
    (void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
     cudaStream_t stream))
{
	return group_call(&(struct call){.kind = COLL_SENDRECV,
					 .recv = recvbuff,
					 .count = count,
					 .dtype = datatype,
					 .root = peer,
					 .is_send = false,
					 .comm = comm,
					 .stream = stream,
					 .name = "ncclRecv"});
}

/* --- groups -------------------------------------------------------------------------------------
 */

API(ncclResult_t, ncclGroupStart, (void))
{
	return group_start();
}

API(ncclResult_t, ncclGroupEnd, (void))
{
	return group_end();
}

/* Drops the group and estimates nothing: the times of host NCCL depend on what else the machine
 * does. */
API(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t * simInfo))
{
	if (simInfo &&
	    (simInfo->magic != NCCL_SIM_INFO_MAGIC_ || simInfo->size < sizeof(ncclSimInfo_t)))
		return fail(ncclInvalidArgument, "ncclGroupSimulateEnd: simInfo was not made by "
						 "NCCL_SIM_INFO_INITIALIZER");
	group_discard();
	return fail(ncclInvalidUsage, "ncclGroupSimulateEnd: host NCCL does not estimate times");
}
