/* libnbox.so as NCCL's plug-in of networks and profilers, for the mode in which NCCL itself runs at
 * the virtual size (--nccl full): what NCCL's proxies send and receive goes to nboxd as messages
 * with their identity. NCCL finds the tables by their names (ncclNetPlugin_v11, ncclProfiler_v5,
 * ...); this is what the rest of libnbox tells the room.
 *
 * NCCL's functions of a network never block: connect and accept answer at once, isend and irecv
 * post a note to the progress thread, test looks at a flag. When a communicator has failed,
 * everything completes at once, so that NCCL's kernels end, as gates open then. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "shim/progress/comm.h"

/* A call that the real NCCL is about to get: its profiler tells of which one a message is. */
struct plugin_call {
	uint32_t kind; /* enum coll_kind; COLL_SENDRECV: one send or receive */
	bool is_send;
	const void *send; /* NULL: not known */
	void *recv;
	uint64_t count;
	ncclDataType_t dtype;
	ncclRedOp_t redop; /* as the job meant it: what an identity is by */
	uint32_t root;     /* or peer */
	uint64_t seq;      /* of its op, as in frames */
	struct op *op;     /* borrowed until it passes, which is after NCCL's event; NULL: nobody
			      asks what NCCL takes for it */
};

/* Once, before the first real communicator. */
void plugin_start(void);
/* NCCL is about to make @c's real communicator. @ret_name: what its config is to call it (since
 * 2.27), so that NCCL's profiler says which one it is; until plugin_unbind(). Return: 0;
 * -ENOMEM. */
int plugin_bind(struct comm *c, const char **ret_name, struct err *err);
/* How many channels a decision file says that communicator has: to NCCL here it may have fewer.
 * @ret: 0: it does not say, or NCCL has a tuner of the user's. Return: 0; negative errno with the
 * sentence. */
int plugin_channels(const struct comm *c, uint32_t *ret, struct err *err);
/* That one is gone, or was not made. */
void plugin_unbind(struct comm *c);
/* Before the real call, by the thread that makes it. Return: 0; -ENOMEM. */
int plugin_expect(struct comm *c, const struct plugin_call *call, struct err *err);
