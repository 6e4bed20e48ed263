/* Between the data*.c and redop.c. */
#pragma once

#include "shim/data/data.h"
#include "shim/real/real.h"

/* What a call of the real library answered. Return: 0; ncclResult_t > 0 with the
 * sentence. */
int data_check(ncclResult_t result, const char *what, struct err *err);

/* Use @err of the function they are in. */
#define REAL(fn, args) data_check(real_get()->fn ? real_get()->fn args : ncclInvalidUsage, #fn, err)
#define DEVICE(c, fn, args)                                                                        \
	((c)->dev->fn args ? err_set(err, EIO, "the device refused to enqueue work (" #fn "): %s", \
				     (c)->dev->why())                                              \
			   : 0)

static inline uint32_t data_policy(const struct call *call)
{
	return comm_data(call->comm, call->kind);
}

static inline bool data_is_int(ncclDataType_t dtype)
{
	return dtype <= ncclUint64;
}

/* --- data-reduce.c --------------------------------------------------------------------- */

bool data_is_reduction(uint32_t kind);
/* The real reduction that gives what the virtual world would. Return: 0; as data_check(). */
int data_map_redop(const struct call *call, ncclRedOp_t *ret, struct err *err);
/* Whether it is a product that copies take part in. */
bool data_needs_power(const struct call *call);
/* @dst = @src to the power of our multiplicity, through pinned host memory. One that is captured
 * stays for the replays. Return: 0; negative errno with the sentence. */
int data_enqueue_power(const struct call *call, void *dst, const void *src, uint64_t bytes,
		       device_stream s, bool is_captured, struct err *err);

/* --- redop.c ------------------------------------------------------------------------------ */

/* A device scalar of a user's op: scaled in the stream, right before it is used. */
int data_redop_scale(const struct call *call, device_stream s, struct err *err);
/* Once no stream uses them. */
void data_redop_deinit(struct comm *c);

/* The broadcast of the same group whose root is the real rank @root, of the same size as
 * @call: an all-gather of uneven parts is a group of one broadcast from every rank. NULL:
 * there is none. */
const struct call *data_find_broadcast(const struct call *call, const struct call *all, uint32_t n,
				       uint32_t root);

/* data-alone.c. @call has a real member, us, which can do it all by copies. */
bool data_is_alone(const struct call *call);
int data_alone(const struct call *call, const struct p2p_index *x, device_stream s,
	       struct err *err);

/* Policy fill. */
int data_fill_byte(ncclDataType_t dtype);
