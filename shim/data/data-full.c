/* See data-full.h. */
#include "shim/data/data-full.h"

#include <errno.h>

#include "schedule/coll.h"
#include "shim/data/data-reduce.h"
#include "shim/data/data-slots.h"
#include "shim/gate/scratch.h"
#include "shim/plugin/plugin.h"
#include "shim/real/real.h"

static bool root_is_real(const struct call *call)
{
	return comm_member(call->comm, call->root) >= 0;
}

/* Under mirror a virtual root's template broadcasts in its place: nboxd takes it for the root, too
 * (nboxd/full/release.c). */
static bool is_templates(const struct call *call)
{
	return call->kind == COLL_BROADCAST && call_policy(call) == DATA_MIRROR &&
	       !root_is_real(call);
}

/* What a virtual root sends means nothing then: it goes to scratch memory, and the buffer stays as
 * it was. */
static bool keeps_buffer(const struct call *call)
{
	return (call->kind == COLL_BROADCAST || call->kind == COLL_SCATTER) &&
	       !root_is_real(call) && !is_templates(call);
}

int data_full_before(struct call *call, device_stream s, bool is_captured, struct err *err)
{
	struct comm *c = call->comm;

	call->real_op = call->redop < ncclNumOps ? call->redop : ncclSum;
	if (call_policy(call) == DATA_NONE || !call->bytes)
		return 0;
	if (keeps_buffer(call))
		return scratch_take(&c->scratch, c->dev->alloc, "device", call->bytes,
				    &call->scratch, err);
	/* at a virtual root no real rank sees the result */
	if (!coll_reduces(call->kind) || (call->kind == COLL_REDUCE && !root_is_real(call)))
		return 0;
	return data_reduce_before(call, s, is_captured, err);
}

/* --- the real calls ----------------------------------------------------------------------- */

static int expect(const struct call *call, const void *send, void *recv, uint32_t root,
		  struct err *err)
{
	struct plugin_call p = {
		.kind = call->kind,
		.send = send,
		.recv = recv,
		.count = call->count,
		.dtype = call->dtype,
		.redop = call->redop < ncclNumOps ? call->redop : ncclSum,
		.root = root,
		.seq = call->seq,
		.op = call->op,
	};

	return plugin_expect(call->comm, &p, err);
}

static int expect_p2p(const struct call *call, bool is_send, void *at, uint32_t peer,
		      struct err *err)
{
	struct plugin_call p = {
		.kind = COLL_SENDRECV,
		.is_send = is_send,
		.send = is_send ? at : NULL,
		.recv = is_send ? NULL : at,
		.count = call->count,
		.dtype = call->dtype,
		.root = peer,
		.seq = call->seq,
		.op = call->op,
	};

	return plugin_expect(call->comm, &p, err);
}

static int send_to(const struct call *call, const void *from, uint32_t peer, cudaStream_t stream,
		   struct err *err)
{
	int r = expect_p2p(call, true, (void *)(uintptr_t)from, peer, err);

	return r ? r
		 : REAL(Send,
			(from, call->count, call->dtype, (int)peer, call->comm->real, stream));
}

static int receive_from(const struct call *call, void *to, uint32_t peer, cudaStream_t stream,
			struct err *err)
{
	int r = expect_p2p(call, false, to, peer, err);

	return r ? r
		 : REAL(Recv, (to, call->count, call->dtype, (int)peer, call->comm->real, stream));
}

/* With each rank its slot. */
static int exchange_slots(const struct call *call, bool sends, bool receives, cudaStream_t stream,
			  struct err *err)
{
	int r = 0;

	for (uint32_t rank = 0; !r && rank < call->comm->n_ranks; rank++) {
		if (sends)
			r = send_to(call, slot_at(call->send, call->bytes, rank), rank, stream,
				    err);
		if (!r && receives)
			r = receive_from(call, slot_at(call->recv, call->bytes, rank), rank, stream,
					 err);
	}
	return r;
}

/* The template's data are what it broadcasts itself in this group, else its receive buffer, the
 * only one that is sure to exist. */
static const void *templates_data(const struct call *call, const struct call_index *x)
{
	const struct call *own = call_index_broadcast(x, call, call->comm->rank);

	return own ? own->send : call->recv;
}

/* A collective that NCCL has a call of in all versions. */
static int call_collective(const struct call *call, const struct call_index *x, cudaStream_t stream,
			   struct err *err)
{
	struct comm *c = call->comm;
	ncclComm_t real = c->real;
	const void *send = call->real_send;
	void *to = call->scratch ? call->scratch : call->recv;
	uint32_t root = call->root;
	int r;

	if (is_templates(call)) {
		root = c->members[template_of(&c->templates, root)].rank;
		send = root == c->rank ? templates_data(call, x) : send;
	}
	r = expect(call, send, to, root, err);
	if (r)
		return r;
	switch ((enum coll_kind)call->kind) {
	case COLL_ALLREDUCE:
		return REAL(AllReduce, (call->real_send, to, call->count, call->dtype,
					call->real_op, real, stream));
	case COLL_REDUCESCATTER:
		return REAL(ReduceScatter, (call->real_send, to, call->count, call->dtype,
					    call->real_op, real, stream));
	case COLL_ALLGATHER:
		return REAL(AllGather,
			    (call->real_send, to, call->count, call->dtype, real, stream));
	case COLL_BROADCAST:
		return REAL(Broadcast,
			    (send, to, call->count, call->dtype, (int)root, real, stream));
	case COLL_REDUCE:
		return REAL(Reduce, (call->real_send, to, call->count, call->dtype, call->real_op,
				     (int)call->root, real, stream));
	case COLL_ALLTOALL:
	case COLL_GATHER:
	case COLL_SCATTER:
	case COLL_SENDRECV:
	case COLL_KINDS:
		break;
	}
	return err_set(err, EINVAL, "unknown kind of call");
}

int data_full_during(const struct call *call, const struct call_index *x, device_stream s,
		     struct err *err)
{
	bool is_root = call->root == call->comm->rank;
	cudaStream_t stream = (cudaStream_t)s;
	int r;

	switch ((enum coll_kind)call->kind) {
	case COLL_ALLTOALL:
		return exchange_slots(call, true, true, stream, err);
	case COLL_GATHER:
		r = send_to(call, call->send, call->root, stream, err);
		return r || !is_root ? r : exchange_slots(call, false, true, stream, err);
	case COLL_SCATTER:
		r = receive_from(call, call->scratch ? call->scratch : call->recv, call->root,
				 stream, err);
		return r || !is_root ? r : exchange_slots(call, true, false, stream, err);
	case COLL_SENDRECV:
		return call->is_send ? send_to(call, call->send, call->root, stream, err)
				     : receive_from(call, call->recv, call->root, stream, err);
	case COLL_ALLREDUCE:
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
	case COLL_BROADCAST:
	case COLL_REDUCE:
	case COLL_KINDS:
		break;
	}
	return call_collective(call, x, stream, err);
}

/* --- what comes from virtual ranks ---------------------------------------------------------- */

int data_full_after(const struct call *call, device_stream s, struct err *err)
{
	if (call->kind == COLL_ALLGATHER || call->kind == COLL_ALLTOALL ||
	    (call->kind == COLL_GATHER && call->root == call->comm->rank))
		return slots_replicate(call, NULL, s, err);
	return 0; /* sends and receives: data_p2p_after() */
}
