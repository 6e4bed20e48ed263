/* Entry points of the collectives and of send and receive: check the arguments,
 * hand the call to the thread's group. */
#include "schedule/coll.h"
#include "shim/data/redop.h"
#include "shim/entry/entry.h"
#include "shim/entry/group.h"
#include "shim/entry/result.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

static bool has_root(uint32_t kind)
{
	return kind == COLL_BROADCAST || kind == COLL_REDUCE || kind == COLL_GATHER ||
	       kind == COLL_SCATTER || kind == COLL_SENDRECV;
}

/* Which buffers this rank must have. */
static bool buffers_are_there(const struct call *call, bool is_root)
{
	bool needs_send = true, needs_recv = true;

	switch ((enum coll_kind)call->kind) {
	case COLL_BROADCAST:
	case COLL_SCATTER:
		needs_send = is_root;
		break;
	case COLL_REDUCE:
	case COLL_GATHER:
		needs_recv = is_root;
		break;
	case COLL_SENDRECV:
		needs_send = call->is_send;
		needs_recv = !call->is_send;
		break;
	case COLL_ALLREDUCE:
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
	case COLL_ALLTOALL:
	case COLL_KINDS:
		break;
	}
	return !call->bytes || ((call->send || !needs_send) && (call->recv || !needs_recv));
}

static ncclResult_t check_and_call(const char *what, struct call *call, int root)
{
	struct comm *c = call->comm;
	ncclResult_t result = result_check(c, what);
	uint64_t elem = coll_dtype_bytes(call->dtype);

	if (result != ncclSuccess)
		return group_failed(result);
	if (!elem || call->dtype < 0)
		return group_fail(ncclInvalidArgument, "%s: unknown data type %d", what,
				  (int)call->dtype);
	if (call->count > SCHED_MAX_BYTES / elem / c->n_ranks)
		return group_fail(ncclInvalidArgument, "%s: count %llu", what,
				  (unsigned long long)call->count);
	if (has_root(call->kind) && (root < 0 || (uint32_t)root >= c->n_ranks))
		return group_fail(ncclInvalidArgument, "%s: rank %d of a communicator of %u ranks",
				  what, root, c->n_ranks);
	if (coll_reduces(call->kind) && !redop_is_valid(c, call->redop, call->dtype))
		return group_fail(ncclInvalidArgument, "%s: unknown reduction %d", what,
				  (int)call->redop);
	call->root = (uint32_t)root;
	call->bytes = call->count * elem;
	if (!buffers_are_there(call, has_root(call->kind) && call->root == c->rank))
		return group_fail(ncclInvalidArgument, "%s: a buffer is NULL", what);
	/* As in NCCL a collective of nothing is no op, and no other rank has to call it. A send or
	 * receive of nothing has its other end. */
	if (!call->count && call->kind != COLL_SENDRECV)
		return ncclSuccess;
	return group_call(call);
}

/* Gives up the reference of @call. */
static ncclResult_t submit(const char *what, struct call *call, int root)
{
	ncclResult_t result = check_and_call(what, call, root);

	comm_unref(call->comm);
	return result;
}

/* An entry point: @params and @args are NCCL's; @peer is 0 where the call has none; what follows is
 * what its call has besides. */
#define COLLECTIVE(name, params, args, peer, ...)                                           \
	ncclResult_t nccl##name params                                                      \
	{                                                                                   \
		ENTER();                                                                    \
		struct call call = {.comm = comm_find(comm),                                \
				    .count = count,                                         \
				    .dtype = dtype,                                         \
				    .stream = stream,                                       \
				    __VA_ARGS__};                                           \
                                                                                            \
		return call.comm ? submit("nccl" #name, &call, peer) : FORWARD(name, args); \
	}                                                                                   \
	ALSO_PNCCL(name);

COLLECTIVE(AllReduce,
	   (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	    ncclComm_t comm, cudaStream_t stream),
	   (send, recv, count, dtype, op, comm, stream), 0, .kind = COLL_ALLREDUCE, .send = send,
	   .recv = recv, .redop = op)

COLLECTIVE(ReduceScatter,
	   (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	    ncclComm_t comm, cudaStream_t stream),
	   (send, recv, count, dtype, op, comm, stream), 0, .kind = COLL_REDUCESCATTER,
	   .send = send, .recv = recv, .redop = op)

COLLECTIVE(AllGather,
	   (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclComm_t comm,
	    cudaStream_t stream),
	   (send, recv, count, dtype, comm, stream), 0, .kind = COLL_ALLGATHER, .send = send,
	   .recv = recv)

COLLECTIVE(Reduce,
	   (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	    int root, ncclComm_t comm, cudaStream_t stream),
	   (send, recv, count, dtype, op, root, comm, stream), root, .kind = COLL_REDUCE,
	   .send = send, .recv = recv, .redop = op)

COLLECTIVE(Broadcast,
	   (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	    ncclComm_t comm, cudaStream_t stream),
	   (send, recv, count, dtype, root, comm, stream), root, .kind = COLL_BROADCAST,
	   .send = send, .recv = recv)

COLLECTIVE(Bcast,
	   (void *buff, size_t count, ncclDataType_t dtype, int root, ncclComm_t comm,
	    cudaStream_t stream),
	   (buff, count, dtype, root, comm, stream), root, .kind = COLL_BROADCAST, .send = buff,
	   .recv = buff)

COLLECTIVE(AlltoAll,
	   (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclComm_t comm,
	    cudaStream_t stream),
	   (send, recv, count, dtype, comm, stream), 0, .kind = COLL_ALLTOALL, .send = send,
	   .recv = recv)

COLLECTIVE(Gather,
	   (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	    ncclComm_t comm, cudaStream_t stream),
	   (send, recv, count, dtype, root, comm, stream), root, .kind = COLL_GATHER, .send = send,
	   .recv = recv)

COLLECTIVE(Scatter,
	   (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	    ncclComm_t comm, cudaStream_t stream),
	   (send, recv, count, dtype, root, comm, stream), root, .kind = COLL_SCATTER, .send = send,
	   .recv = recv)

COLLECTIVE(Send,
	   (const void *send, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
	    cudaStream_t stream),
	   (send, count, dtype, peer, comm, stream), peer, .kind = COLL_SENDRECV, .is_send = true,
	   .send = send)

COLLECTIVE(Recv,
	   (void *recv, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
	    cudaStream_t stream),
	   (recv, count, dtype, peer, comm, stream), peer, .kind = COLL_SENDRECV, .recv = recv)
