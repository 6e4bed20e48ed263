/* See data-alone.h. */
#include "shim/data/data-alone.h"

#include <errno.h>

#include "shim/data/data-reduce.h"

static int copy(const struct call *call, device_stream s, void *to, const void *from,
		struct err *err)
{
	if (to == from)
		return 0;
	return DEVICE(call->comm, copy, (s, to, from, call->bytes));
}

static char *slot(const struct call *call, const void *base)
{
	return (char *)(uintptr_t)base + call->bytes * call->comm->rank;
}

/* A virtual root's data are what this rank broadcasts itself in the same group, else its receive
 * buffer as it is. */
static int broadcast(const struct call *call, const struct call_index *x, device_stream s,
		     struct err *err)
{
	const struct call *from = call;

	if (call->root != call->comm->rank) {
		from = comm_data(call->comm, call->kind) == DATA_MIRROR
			       ? call_index_broadcast(x, call, call->comm->rank)
			       : NULL;
	}
	return from ? copy(call, s, call->recv, from->send, err) : 0;
}

bool data_is_alone(const struct call *call)
{
	return call->comm->n_real == 1 && (!coll_reduces(call->kind) || call->real_op < ncclNumOps);
}

int data_alone(const struct call *call, const struct call_index *x, device_stream s,
	       struct err *err)
{
	bool is_root = call->root == call->comm->rank;
	const struct call *other;

	switch ((enum coll_kind)call->kind) {
	case COLL_ALLREDUCE:
	case COLL_REDUCESCATTER: /* real_send is our chunk */
		return copy(call, s, call->recv, call->real_send, err);
	case COLL_REDUCE:
		return is_root ? copy(call, s, call->recv, call->real_send, err) : 0;
	case COLL_BROADCAST:
		return broadcast(call, x, s, err);
	case COLL_ALLGATHER:
		return copy(call, s, slot(call, call->recv), call->send, err);
	case COLL_ALLTOALL:
		return copy(call, s, slot(call, call->recv), slot(call, call->send), err);
	case COLL_GATHER:
		return is_root ? copy(call, s, slot(call, call->recv), call->send, err) : 0;
	case COLL_SCATTER:
		return is_root ? copy(call, s, call->recv, slot(call, call->send), err) : 0;
	case COLL_SENDRECV:
		if (!is_root) /* the peer is virtual */
			return 0;
		other = call_index_find(x, call->comm, !call->is_send, call->root, call->nth);
		if (!other || other->bytes != call->bytes)
			return err_set(err, EINVAL,
				       "a %s itself without its other half in the same group",
				       call->is_send ? "send to" : "receive from");
		return call->is_send ? 0 : copy(call, s, call->recv, other->send, err);
	case COLL_KINDS:
		break;
	}
	return 0;
}
