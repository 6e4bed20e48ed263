/* See data.h. */
#include "shim/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/coll.h"
#include "shim/data/data-alone.h"
#include "shim/data/data-full.h"
#include "shim/data/data-onesided.h"
#include "shim/data/data-reduce.h"
#include "shim/data/data-slots.h"
#include "shim/data/redop.h"
#include "shim/gate/scratch.h"
#include "shim/real/real.h"

static int scratch_get(struct comm *c, uint64_t bytes, char **ret, struct err *err)
{
	return scratch_take(&c->scratch, c->dev->alloc, "device", bytes, ret, err);
}

void data_begin(struct comm *c)
{
	c->scratch.used = c->host_scratch.used = 0;
}

void data_deinit(struct comm *c)
{
	redop_deinit(c);
	if (c->has_graphs) /* a replay may stand behind other work in its stream */
		return;
	scratch_give(&c->scratch);
	scratch_give(&c->host_scratch);
	scratch_give(&c->redop_scratch);
}

static bool root_is_real(const struct call *call)
{
	return comm_member(call->comm, call->root) >= 0;
}

/* The reduce-scatter's chunks of the real members, in one piece. */
static int gather_chunks(struct call *call, const void *from, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	int r = 0;

	if (slots_are_contiguous(c)) {
		call->real_send = slot_at(from, call->bytes, c->members[0].rank);
		return 0;
	}
	if (!call->scratch)
		r = scratch_get(c, call->bytes * c->n_real, &call->scratch, err);
	for (uint32_t i = 0; !r && i < c->n_real; i++)
		r = DEVICE(c, copy,
			   (s, slot_at(call->scratch, call->bytes, i),
			    slot_at(from, call->bytes, c->members[i].rank), call->bytes));
	call->real_send = call->scratch;
	return r;
}

int data_before(struct call *call, device_stream s, bool is_captured, struct err *err)
{
	struct comm *c = call->comm;
	int r;

	call->real_send = call->send;
	call->real_op = ncclSum;
	call->scratch = NULL;
	if (c->is_full)
		return data_full_before(call, s, is_captured, err);
	if (call_policy(call) == DATA_NONE || !call->bytes)
		return 0;
	if (call->kind == COLL_ALLGATHER && !slots_are_contiguous(c))
		return scratch_get(c, call->bytes * c->n_real, &call->scratch, err);
	if (!coll_reduces(call->kind) || (call->kind == COLL_REDUCE && !root_is_real(call)))
		return 0;
	r = data_reduce_before(call, s, is_captured, err);
	if (!r && call->kind == COLL_REDUCESCATTER)
		r = gather_chunks(call, call->real_send, s, err);
	return r;
}

/* --- the real calls ----------------------------------------------------------------------- */

/* Each pair of real members exchanges its chunk; a root only sends, or only receives. */
static int exchange_chunks(struct call *call, bool sends, bool receives, device_stream s,
			   struct err *err)
{
	struct comm *c = call->comm;
	cudaStream_t stream = (cudaStream_t)s;
	int r = 0;

	for (uint32_t i = 0; !r && i < c->n_real; i++) {
		uint32_t rank = c->members[i].rank;

		if (sends)
			r = REAL(Send, (slot_at(call->send, call->bytes, rank), call->count,
					call->dtype, (int)i, c->real, stream));
		if (!r && receives)
			r = REAL(Recv, (slot_at(call->recv, call->bytes, rank), call->count,
					call->dtype, (int)i, c->real, stream));
	}
	return r;
}

/* A virtual root's data come from its template: what that broadcasts itself in this group, else its
 * receive buffer, the only one that is sure to exist. */
static int during_broadcast(struct call *call, const struct call_index *x, cudaStream_t stream,
			    struct err *err)
{
	struct comm *c = call->comm;
	int root = comm_member(c, call->root);
	const void *send = c->rank == call->root ? call->send : call->recv;
	const struct call *other;

	if (root < 0 && call_policy(call) != DATA_MIRROR)
		return 0;
	if (root < 0) {
		root = (int)template_of(&c->templates, call->root);
		if ((uint32_t)root == c->index) {
			other = call_index_broadcast(x, call, c->rank);
			send = other ? other->send : send;
		}
	}
	return REAL(Broadcast, (send, call->recv, call->count, call->dtype, root, c->real, stream));
}

static int during_rooted(struct call *call, cudaStream_t stream, struct err *err)
{
	struct comm *c = call->comm;
	int root = comm_member(c, call->root), r = 0;
	bool is_root = c->rank == call->root;

	if (root < 0)
		return 0; /* no real rank gets anything; a scatter's source is not known */
	if (call->kind == COLL_REDUCE)
		return REAL(Reduce, (call->real_send, call->recv, call->count, call->dtype,
				     call->real_op, root, c->real, stream));
	if (call->kind == COLL_GATHER) {
		r = REAL(Send, (call->send, call->count, call->dtype, root, c->real, stream));
		return r || !is_root ? r : exchange_chunks(call, false, true, stream, err);
	}
	r = REAL(Recv, (call->recv, call->count, call->dtype, root, c->real, stream));
	return r || !is_root ? r : exchange_chunks(call, true, false, stream, err);
}

int data_during_alone(struct call *call, const struct call_index *x, device_stream s,
		      struct err *err)
{
	if (call_policy(call) == DATA_NONE || !call->bytes || call->is_onesided ||
	    call->comm->is_full || !data_is_alone(call))
		return 0;
	return data_alone(call, x, s, err);
}

bool data_needs_real(const struct call *call)
{
	if (call->is_onesided)
		return data_onesided_needs_real(call);
	if (call->comm->is_full)
		return true;
	return call_policy(call) != DATA_NONE && call->bytes && !data_is_alone(call);
}

int data_during(struct call *call, const struct call_index *x, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	cudaStream_t stream = (cudaStream_t)s;
	void *to;
	int peer;

	if (!data_needs_real(call))
		return 0;
	if (c->is_full)
		return data_full_during(call, x, s, err);
	switch ((enum coll_kind)call->kind) {
	case COLL_ALLREDUCE:
		return REAL(AllReduce, (call->real_send, call->recv, call->count, call->dtype,
					call->real_op, c->real, stream));
	case COLL_REDUCESCATTER:
		return REAL(ReduceScatter, (call->real_send, call->recv, call->count, call->dtype,
					    call->real_op, c->real, stream));
	case COLL_ALLGATHER:
		to = call->scratch ? call->scratch
				   : slot_at(call->recv, call->bytes, c->members[0].rank);
		return REAL(AllGather, (call->send, to, call->count, call->dtype, c->real, stream));
	case COLL_ALLTOALL:
		return exchange_chunks(call, true, true, s, err);
	case COLL_BROADCAST:
		return during_broadcast(call, x, stream, err);
	case COLL_REDUCE:
	case COLL_GATHER:
	case COLL_SCATTER:
		return during_rooted(call, stream, err);
	case COLL_SENDRECV:
		if (call->is_onesided)
			return data_onesided_during(call, s, err);
		peer = comm_member(c, call->root);
		if (peer < 0)
			return 0;
		if (call->is_send)
			return REAL(Send,
				    (call->send, call->count, call->dtype, peer, c->real, stream));
		return REAL(Recv, (call->recv, call->count, call->dtype, peer, c->real, stream));
	case COLL_KINDS:
		break;
	}
	return err_set(err, EINVAL, "unknown kind of call");
}

int data_after(struct call *call, device_stream s, struct err *err)
{
	struct comm *c = call->comm;

	if (call_policy(call) == DATA_NONE || !call->bytes || c->n_real == c->n_ranks)
		return 0;
	if (c->is_full)
		return data_full_after(call, s, err);
	switch ((enum coll_kind)call->kind) {
	case COLL_ALLGATHER:
		return slots_replicate(call, call->scratch, s, err);
	case COLL_ALLTOALL:
		return slots_replicate(call, NULL, s, err);
	case COLL_GATHER:
		return c->rank == call->root ? slots_replicate(call, NULL, s, err) : 0;
	case COLL_BROADCAST:
	case COLL_SCATTER:
		if (call_policy(call) == DATA_FILL && !root_is_real(call))
			return slots_fill(call, call->recv, call->bytes, s, err);
		return 0;
	case COLL_SENDRECV:
		break; /* data_p2p_after(), for all of them */
	case COLL_ALLREDUCE:
	case COLL_REDUCESCATTER:
	case COLL_REDUCE:
	case COLL_KINDS:
		break;
	}
	return 0;
}
