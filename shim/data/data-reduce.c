/* See data-reduce.h. */
#include "shim/data/data-reduce.h"

#include <errno.h>
#include <stdlib.h>

#include "schedule/coll.h"
#include "shim/data/real-comm.h"
#include "shim/data/scalar.h"
#include "shim/gate/scratch.h"
#include "shim/real/real.h"

/* A real PreMulSum made once per type. */
static int scaled_sum(struct comm *c, ncclRedOp_t *ops, uint32_t *made, ncclDataType_t dtype,
		      double factor, ncclRedOp_t *ret, struct err *err)
{
	ncclComm_t real;
	char scalar[8];
	int r;

	if (!(*made & 1u << dtype)) {
		scalar_store(dtype, factor, scalar);
		r = real_comm_get(c, &real, err);
		if (!r)
			r = REAL(RedOpCreatePreMulSum,
				 (&ops[dtype], scalar, dtype, ncclScalarHostImmediate, real));
		if (r)
			return r;
		*made |= 1u << dtype;
	}
	*ret = ops[dtype];
	return 0;
}

int data_map_redop(const struct call *call, ncclRedOp_t *ret, struct err *err)
{
	struct comm *c = call->comm;

	*ret = call->redop;
	if (call->redop >= ncclNumOps) {
		*ret = call_policy(call) == DATA_MIRROR ? c->redops[call->redop - ncclNumOps].real
							: c->redops[call->redop - ncclNumOps].plain;
		return 0;
	}
	if (call_policy(call) != DATA_MIRROR || c->n_real == c->n_ranks)
		return 0;
	if (call->redop == ncclSum && (c->multiplicity > 1 || !c->is_even))
		return scaled_sum(c, c->scale_op, &c->scale_made, call->dtype, c->multiplicity, ret,
				  err);
	if (call->redop == ncclAvg && !c->is_even && !scalar_is_int(call->dtype))
		return scaled_sum(c, c->mean_op, &c->mean_made, call->dtype,
				  (double)c->multiplicity / c->n_ranks, ret, err);
	return 0;
}

/* A product over copies is a power of each element. */
struct power {
	ncclDataType_t dtype;
	uint32_t n;
	uint64_t count;
	char *buf;          /* host scratch of the communicator */
	struct power *next; /* list of those that graphs use */
};

static void run_power(void *arg)
{
	const struct power *p = arg;

	scalar_power(p->dtype, p->buf, p->count, p->n);
}

/* Through pinned memory: else the copies would not be asynchronous. */
int data_enqueue_power(const struct call *call, void *dst, const void *src, uint64_t bytes,
		       device_stream s, bool is_captured, struct err *err)
{
	struct comm *c = call->comm;
	struct power *p = malloc(sizeof(*p));
	int r;

	if (!p)
		return err_set(err, ENOMEM, "no memory for a product");
	p->dtype = call->dtype;
	p->n = c->multiplicity;
	p->count = bytes / coll_dtype_bytes(call->dtype);
	r = scratch_take(&c->host_scratch, c->dev->alloc_host, "pinned", bytes, &p->buf, err);
	if (r) {
		free(p);
		return r;
	}
	r = DEVICE(c, copy, (s, p->buf, src, bytes));
	if (!r)
		r = DEVICE(c, call, (s, run_power, p));
	if (!r)
		r = DEVICE(c, copy, (s, dst, p->buf, bytes));
	if (is_captured) {
		p->next = c->captured_powers;
		c->captured_powers = p;
	} else if (!r) {
		r = DEVICE(c, call, (s, free, p));
	}
	return r;
}

bool data_needs_power(const struct call *call)
{
	const struct comm *c = call->comm;

	return call->redop == ncclProd && call_policy(call) == DATA_MIRROR &&
	       c->n_real < c->n_ranks;
}
