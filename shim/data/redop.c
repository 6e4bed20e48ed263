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
	int mode = DEVICE_CAPTURE_RELAXED, r;

	if (c->self)
		return 0;
	c->dev->exchange_mode(&mode); /* NCCL allocates memory, also while a stream is captured */
	comm_id_hide();
	r = REAL(GetUniqueId, (&id));
	if (!r)
		r = REAL(CommInitRank, (&c->self, 1, id, 0));
	comm_id_show();
	c->dev->exchange_mode(&mode);
	return r;
}

bool redop_is_valid(const struct comm *c, ncclRedOp_t op, ncclDataType_t dtype)
{
	uint32_t i = (uint32_t)op - ncclNumOps;

	if (op < ncclNumOps)
		return true;
	return i < c->n_redops && c->redops[i].is_used && c->redops[i].dtype == dtype;
}

/* *ret_mirror: the policy of some reduction is mirror; *ret_other: of some it is another one but
 * none. */
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

static int make_scaled(struct comm *c, struct redop *redop, const void *scalar, ncclComm_t real,
		       struct err *err)
{
	void *use = (void *)(uintptr_t)scalar;
	char times[8];
	int r;

	if (c->multiplicity > 1 && redop->residence == ncclScalarHostImmediate) {
		scalar_times(redop->dtype, scalar, c->multiplicity, times);
		use = times;
	} else if (c->multiplicity > 1) {
		r = make_self(c, err);
		if (!r && !redop->scaled)
			r = scratch_take(&c->redop_scratch, c->dev->alloc, "device", 8,
					 &redop->scaled, err);
		if (r)
			return r;
		use = redop->scaled;
		redop->is_scaled = true;
	}
	redop->scalar = scalar;
	r = REAL(RedOpCreatePreMulSum, (&redop->real, use, redop->dtype, redop->residence, real));
	redop->has_real = !r;
	return r;
}

static int redop_make(struct comm *c, struct redop *redop, const void *scalar, struct err *err)
{
	bool is_mirror, is_other;
	ncclComm_t real;
	int r;

	look_at_policies(c, &is_mirror, &is_other);
	if (!is_mirror && !is_other)
		return 0;
	r = real_comm_get(c, &real, err);
	if (!r && is_mirror)
		r = make_scaled(c, redop, scalar, real, err);
	if (!r && is_other) {
		r = REAL(RedOpCreatePreMulSum, (&redop->plain, (void *)(uintptr_t)scalar,
						redop->dtype, redop->residence, real));
		redop->has_plain = !r;
	}
	return r;
}

int redop_new(struct comm *c, const void *scalar, ncclDataType_t dtype,
	      ncclScalarResidence_t residence, ncclRedOp_t *ret, struct err *err)
{
	struct redop made = {.is_used = true, .dtype = dtype, .residence = residence};
	int before = DEVICE_NONE, r;
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
	made.scaled = c->redops[i].scaled;
	c->dev->get(&before);
	if (device_select(c->dev,
			  c->device)) /* its memory is there; another device may be current */
		return err_set(err, EIO, "cannot select device %d", c->device);
	r = redop_make(c, &made, scalar, err);
	device_select(c->dev, before);
	c->redops[i].scaled = made.scaled;
	if (r)
		return r;
	c->redops[i] = made;
	*ret = (ncclRedOp_t)(ncclNumOps + i);
	return 0;
}

static int free_real(struct comm *c, struct redop *redop, struct err *err)
{
	int r = 0;

	if (redop->has_real)
		r = REAL(RedOpDestroy, (redop->real, c->real));
	if (!r && redop->has_plain)
		r = REAL(RedOpDestroy, (redop->plain, c->real));
	return r;
}

int redop_free(struct comm *c, ncclRedOp_t op, struct err *err)
{
	uint32_t i = (uint32_t)op - ncclNumOps;
	struct redop *redop;

	if (op < ncclNumOps || i >= c->n_redops || !c->redops[i].is_used)
		return err_set(err, EINVAL, "not a reduction of this communicator");
	redop = &c->redops[i];
	redop->is_used = false;
	return redop->n_queued ? 0 : free_real(c, redop, err);
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
	struct redop *redop;

	if (call->redop < ncclNumOps)
		return;
	redop = &c->redops[call->redop - ncclNumOps];
	if (--redop->n_queued == 0 && !redop->is_used && c->real)
		free_real(c, redop, &err);
}

int redop_scale(const struct call *call, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	const struct redop *redop;
	ncclRedOp_t times;
	char scalar[8];
	int r;

	if (call->redop < ncclNumOps)
		return 0;
	redop = &c->redops[call->redop - ncclNumOps];
	if (!redop->is_scaled || comm_data(c, call->kind) != DATA_MIRROR)
		return 0;
	scalar_store(call->dtype, c->multiplicity, scalar);
	r = REAL(RedOpCreatePreMulSum,
		 (&times, scalar, call->dtype, ncclScalarHostImmediate, c->self));
	if (r)
		return r;
	r = REAL(AllReduce,
		 (redop->scalar, redop->scaled, 1, call->dtype, times, c->self, (cudaStream_t)s));
	REAL(RedOpDestroy, (times, c->self));
	return r;
}

void redop_deinit(struct comm *c)
{
	for (uint32_t i = 0; i < c->n_redops; i++)
		c->redops[i].scaled = NULL;
	if (c->self && real_get()->CommDestroy)
		real_get()->CommDestroy(c->self);
	c->self = NULL;
}
