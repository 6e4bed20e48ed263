/* See data-reduce.h. */
#include "shim/data/data-reduce.h"

#include <errno.h>
#include <stdlib.h>

#include "schedule/coll.h"
#include "shim/data/real-comm.h"
#include "shim/data/redop.h"
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

/* The real reduction whose result is that of the virtual world. Where NCCL runs at the virtual size
 * its average is by n_ranks, and a virtual rank's part is 0. */
static int map_redop(const struct call *call, ncclRedOp_t *ret, struct err *err)
{
	struct comm *c = call->comm;
	bool is_mirror = call_policy(call) == DATA_MIRROR;
	bool is_mean = call->redop == ncclAvg && !scalar_is_int(call->dtype);

	*ret = call->redop;
	if (call->redop >= ncclNumOps) {
		*ret = is_mirror ? c->redops[call->redop - ncclNumOps].real
				 : c->redops[call->redop - ncclNumOps].plain;
		return 0;
	}
	if (c->n_real == c->n_ranks)
		return 0;
	if (!is_mirror && is_mean && c->is_full)
		return scaled_sum(c, c->share_op, &c->share_made, call->dtype, 1.0 / c->n_real, ret,
				  err);
	if (!is_mirror)
		return 0;
	if (call->redop == ncclSum && (c->multiplicity > 1 || !c->is_even))
		return scaled_sum(c, c->scale_op, &c->scale_made, call->dtype, c->multiplicity, ret,
				  err);
	if (is_mean && (c->is_full || !c->is_even))
		return scaled_sum(c, c->mean_op, &c->mean_made, call->dtype,
				  (double)c->multiplicity / c->n_ranks, ret, err);
	return 0;
}

/* A product over copies is a power of each element, a sum a multiple. */
struct power {
	ncclDataType_t dtype;
	bool is_multiple;
	uint32_t n;
	uint64_t count;
	char *buf;          /* host scratch of the communicator */
	struct power *next; /* list of those that graphs use */
};

static void run_power(void *arg)
{
	const struct power *p = arg;
	uint64_t element = coll_dtype_bytes(p->dtype);

	if (!p->is_multiple)
		scalar_power(p->dtype, p->buf, p->count, p->n);
	for (uint64_t i = 0; p->is_multiple && i < p->count; i++)
		scalar_times(p->dtype, p->buf + i * element, p->n, p->buf + i * element);
}

/* @dst = @src to the power of our multiplicity, or times it. Through pinned memory: else the copies
 * would not be asynchronous. A captured one stays for the replays. */
static int enqueue_power(const struct call *call, void *dst, const void *src, uint64_t bytes,
			 device_stream s, bool is_captured, struct err *err)
{
	struct comm *c = call->comm;
	struct power *p = malloc(sizeof(*p));
	int r;

	if (!p)
		return err_set(err, ENOMEM, "no memory for a product");
	p->dtype = call->dtype;
	p->is_multiple = call->redop == ncclAvg;
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

/* Is it a product in which virtual ranks have factors? Or NCCL's average of integers at the virtual
 * size, which no PreMulSum gives? */
static bool needs_power(const struct call *call)
{
	const struct comm *c = call->comm;
	bool is_int_mean = c->is_full && call->redop == ncclAvg && scalar_is_int(call->dtype);

	return (call->redop == ncclProd || is_int_mean) && call_policy(call) == DATA_MIRROR &&
	       c->n_real < c->n_ranks;
}

int data_reduce_before(struct call *call, device_stream s, bool is_captured, struct err *err)
{
	struct comm *c = call->comm;
	uint64_t bytes = coll_input_bytes(call->kind, call->bytes, c->n_ranks, 1);
	char *powered;
	int r = map_redop(call, &call->real_op, err);

	if (!r)
		r = redop_scale(call, s, err);
	if (r || !needs_power(call))
		return r;
	r = scratch_take(&c->scratch, c->dev->alloc, "device", bytes, &powered, err);
	if (!r)
		r = enqueue_power(call, powered, call->send, bytes, s, is_captured, err);
	if (!r)
		call->real_send = powered;
	return r;
}
