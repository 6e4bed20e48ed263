/* Users' reductions (ncclRedOpCreatePreMulSum) on a virtual communicator: the scalar
 * times the number of ranks that each of us stands for. A host scalar is scaled at
 * once; one on the device in the stream, by a one-rank all-reduce right before it is
 * used, because the job may write it until then. */
#include <errno.h>
#include <stdlib.h>

#include "shim/data-internal.h"
#include "shim/scalar.h"

static int make_self(struct comm *c, struct err *err)
{
	ncclUniqueId id;
	int rc;

	if (c->self)
		return 0;
	rc = REAL(GetUniqueId, (&id));
	return rc ? rc : REAL(CommInitRank, (&c->self, 1, id, 0));
}

bool data_redop_is_valid(const struct comm *c, ncclRedOp_t op, ncclDataType_t dtype)
{
	uint32_t i = (uint32_t)op - ncclNumOps;

	if (op < ncclNumOps)
		return true;
	return i < c->n_redops && c->redops[i].is_used && c->redops[i].dtype == dtype;
}

static int redop_make(struct comm *c, struct redop *r, const void *scalar, struct err *err)
{
	bool is_scaled = c->data == DATA_MIRROR && c->multiplicity > 1;
	char times[8];
	void *use = (void *)(uintptr_t)scalar;
	int rc;

	if (!c->real)
		return 0;
	if (is_scaled && r->residence == ncclScalarHostImmediate) {
		scalar_times(r->dtype, scalar, c->multiplicity, times);
		use = times;
	} else if (is_scaled) {
		rc = make_self(c, err);
		if (!rc && c->dev->alloc(&r->scaled, 8))
			rc = err_set(err, ENOMEM, "no device memory");
		if (rc)
			return rc;
		use = r->scaled;
	}
	r->scalar = scalar;
	return REAL(RedOpCreatePreMulSum, (&r->real, use, r->dtype, r->residence, c->real));
}

int data_redop_new(struct comm *c, const void *scalar, ncclDataType_t dtype,
		   ncclScalarResidence_t residence, ncclRedOp_t *ret, struct err *err)
{
	struct redop r = {.is_used = true, .dtype = dtype, .residence = residence};
	uint32_t i = 0;
	int rc;

	while (i < c->n_redops && c->redops[i].is_used)
		i++;
	if (i == c->n_redops) {
		struct redop *more = realloc(c->redops, (i + 1) * sizeof(*more));

		if (!more)
			return err_set(err, ENOMEM, "no memory");
		c->redops = more;
		c->redops[c->n_redops++] = (struct redop){0};
	}
	rc = redop_make(c, &r, scalar, err);
	if (rc) {
		c->dev->free(r.scaled);
		return rc;
	}
	c->dev->free(c->redops[i].scaled); /* of the op that was in this place */
	c->redops[i] = r;
	*ret = (ncclRedOp_t)(ncclNumOps + i);
	return 0;
}

int data_redop_free(struct comm *c, ncclRedOp_t op, struct err *err)
{
	uint32_t i = (uint32_t)op - ncclNumOps;
	struct redop *r;

	if (op < ncclNumOps || i >= c->n_redops || !c->redops[i].is_used)
		return err_set(err, EINVAL, "not a reduction of this communicator");
	r = &c->redops[i];
	r->is_used = false;
	/* @scaled stays until the place is used again: ops in streams may read it */
	return c->real ? REAL(RedOpDestroy, (r->real, c->real)) : 0;
}

int data_redop_scale(const struct call *call, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	const struct redop *r;
	ncclRedOp_t times;
	char scalar[8];
	int rc;

	if (call->redop < ncclNumOps)
		return 0;
	r = &c->redops[call->redop - ncclNumOps];
	if (!r->scaled)
		return 0;
	scalar_store(call->dtype, c->multiplicity, scalar);
	rc = REAL(RedOpCreatePreMulSum,
		  (&times, scalar, call->dtype, ncclScalarHostImmediate, c->self));
	if (rc)
		return rc;
	rc = REAL(AllReduce,
		  (r->scalar, r->scaled, 1, call->dtype, times, c->self, (cudaStream_t)s));
	REAL(RedOpDestroy, (times, c->self));
	return rc;
}

void data_redop_deinit(struct comm *c)
{
	for (uint32_t i = 0; i < c->n_redops; i++) {
		c->dev->free(c->redops[i].scaled);
		c->redops[i].scaled = NULL;
	}
	if (c->self && real_get()->CommDestroy)
		real_get()->CommDestroy(c->self);
	c->self = NULL;
}
