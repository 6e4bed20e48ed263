/* See redop.h. */
#include "shim/data/redop.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "shim/data/real-comm.h"
#include "shim/data/scalar.h"
#include "shim/real/comm-id.h"
#include "shim/real/real.h"

static int make_self(struct comm *c, struct err *err)
{
	ncclUniqueId id;
	int mode = DEVICE_CAPTURE_RELAXED, rc;

	if (c->self)
		return 0;
	c->dev->exchange_mode(&mode); /* NCCL allocates memory, also while a stream is captured */
	comm_id_hide();
	rc = REAL(GetUniqueId, (&id));
	if (!rc)
		rc = REAL(CommInitRank, (&c->self, 1, id, 0));
	comm_id_show();
	c->dev->exchange_mode(&mode);
	return rc;
}

bool redop_is_valid(const struct comm *c, ncclRedOp_t op, ncclDataType_t dtype)
{
	uint32_t i = (uint32_t)op - ncclNumOps;

	if (op < ncclNumOps)
		return true;
	return i < c->n_redops && c->redops[i].is_used && c->redops[i].dtype == dtype;
}

/* Is any reduction's policy mirror, any another one (but none)? */
static void look_at_policies(const struct comm *c, bool *ret_mirror, bool *ret_other)
{
	static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_REDUCE, COLL_REDUCESCATTER};

	*ret_mirror = *ret_other = false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		uint32_t data = comm_data(c, kinds[i]);

		*ret_mirror = *ret_mirror || data == DATA_MIRROR;
		*ret_other = *ret_other || (data != DATA_MIRROR && data != DATA_NONE);
	}
}

static int make_scaled(struct comm *c, struct redop *r, const void *scalar, ncclComm_t real,
		       struct err *err)
{
	void *use = (void *)(uintptr_t)scalar;
	char times[8];
	int rc;

	if (c->multiplicity > 1 && r->residence == ncclScalarHostImmediate) {
		scalar_times(r->dtype, scalar, c->multiplicity, times);
		use = times;
	} else if (c->multiplicity > 1) {
		rc = make_self(c, err);
		if (!rc && !r->scaled)
			rc = scratch_take(&c->redop_scratch, c->dev->alloc, "device", 8, &r->scaled,
					  err);
		if (rc)
			return rc;
		use = r->scaled;
		r->is_scaled = true;
	}
	r->scalar = scalar;
	rc = REAL(RedOpCreatePreMulSum, (&r->real, use, r->dtype, r->residence, real));
	r->has_real = !rc;
	return rc;
}

static int redop_make(struct comm *c, struct redop *r, const void *scalar, struct err *err)
{
	bool is_mirror, is_other;
	ncclComm_t real;
	int rc;

	look_at_policies(c, &is_mirror, &is_other);
	if (!is_mirror && !is_other)
		return 0;
	rc = real_comm_get(c, &real, err);
	if (!rc && is_mirror)
		rc = make_scaled(c, r, scalar, real, err);
	if (!rc && is_other) {
		rc = REAL(RedOpCreatePreMulSum,
			  (&r->plain, (void *)(uintptr_t)scalar, r->dtype, r->residence, real));
		r->has_plain = !rc;
	}
	return rc;
}

int redop_new(struct comm *c, const void *scalar, ncclDataType_t dtype,
	      ncclScalarResidence_t residence, ncclRedOp_t *ret, struct err *err)
{
	struct redop r = {.is_used = true, .dtype = dtype, .residence = residence};
	int before = DEVICE_NONE, rc;
	uint32_t i = 0;

	while (i < c->n_redops && (c->redops[i].is_used || c->redops[i].n_queued))
		i++;
	if (i == c->n_redops) {
		struct redop *more = realloc(c->redops, (i + 1) * sizeof(*more));

		if (!more)
			return err_set(err, ENOMEM, "no memory");
		c->redops = more;
		c->redops[c->n_redops++] = (struct redop){0};
	}
	r.scaled = c->redops[i].scaled;
	c->dev->get(&before);
	if (device_select(c->dev,
			  c->device)) /* what it takes is there, and another one may be current */
		return err_set(err, EIO, "cannot select device %d", c->device);
	rc = redop_make(c, &r, scalar, err);
	device_select(c->dev, before);
	c->redops[i].scaled = r.scaled;
	if (rc)
		return rc;
	c->redops[i] = r;
	*ret = (ncclRedOp_t)(ncclNumOps + i);
	return 0;
}

static int free_real(struct comm *c, struct redop *r, struct err *err)
{
	int rc = 0;

	if (r->has_real)
		rc = REAL(RedOpDestroy, (r->real, c->real));
	if (!rc && r->has_plain)
		rc = REAL(RedOpDestroy, (r->plain, c->real));
	return rc;
}

int redop_free(struct comm *c, ncclRedOp_t op, struct err *err)
{
	uint32_t i = (uint32_t)op - ncclNumOps;
	struct redop *r;

	if (op < ncclNumOps || i >= c->n_redops || !c->redops[i].is_used)
		return err_set(err, EINVAL, "not a reduction of this communicator");
	r = &c->redops[i];
	r->is_used = false;
	return r->n_queued ? 0 : free_real(c, r, err);
}

void redop_hold(const struct call *call)
{
	if (call->redop >= ncclNumOps)
		call->comm->redops[call->redop - ncclNumOps].n_queued++;
}

void redop_drop(const struct call *call)
{
	struct comm *c = call->comm;
	struct err err = {""};
	struct redop *r;

	if (call->redop < ncclNumOps)
		return;
	r = &c->redops[call->redop - ncclNumOps];
	if (--r->n_queued == 0 && !r->is_used && c->real)
		free_real(c, r, &err);
}

int redop_scale(const struct call *call, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	const struct redop *r;
	ncclRedOp_t times;
	char scalar[8];
	int rc;

	if (call->redop < ncclNumOps)
		return 0;
	r = &c->redops[call->redop - ncclNumOps];
	if (!r->is_scaled || comm_data(c, call->kind) != DATA_MIRROR)
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

void redop_deinit(struct comm *c)
{
	for (uint32_t i = 0; i < c->n_redops; i++)
		c->redops[i].scaled = NULL;
	if (c->self && real_get()->CommDestroy)
		real_get()->CommDestroy(c->self);
	c->self = NULL;
}
