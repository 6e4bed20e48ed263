/* The real communicator behind a virtual one: the communicator of its real members in the real
 * library.
 *
 * Several real members make it together with the virtual one: then all of them are here, and none
 * is in a stream or a capture. The first op that needs it would be too late. Members get there in
 * different orders and with kernels in their streams, and a rank that waits for the others in
 * ncclAllReduce may itself be the one for which they wait.
 *
 * A single real member has nobody to meet. It makes one when something needs it (scaled sums,
 * users' reductions, registration of windows), also during a capture; copies do everything else
 * (data-alone.h). In a job of many axes most communicators are of this kind.
 *
 * Where NCCL runs at the virtual size (c->is_full) it is NCCL's communicator of all ranks, and each
 * real member makes it together with the virtual one, by an id of nboxd's. */
#pragma once

#include <stdbool.h>

#include "shim/progress/comm.h"

/* Is it made together with the virtual one? */
bool real_comm_is_together(const struct comm *c);
/* Before a promise to make it: can the real library do it? Return: 0; negative errno with the
 * sentence. */
int real_comm_check(struct comm *c, struct err *err);
/* Makes c->real_made by c->local_id. Blocks (see real-group.h). @config: the
 * job's, blocking, or NULL. Return: 0; negative errno or ncclResult_t > 0, with the
 * sentence. */
int real_comm_make(struct comm *c, void *config, struct err *err);
/* Its number of ranks. */
uint32_t real_comm_size(const struct comm *c);
/* Of the lowest real member: makes the id and sends it to the others; the others do nothing, nor
 * does anybody where the id is nboxd's. Where it fails the caller tells them why, and then that
 * there is no id. */
int real_comm_offer_id(struct comm *c, struct err *err);

/* c->real, made now when there is one real member. Any thread that may call NCCL.
 * Return: as above; -ENOENT when the data policies have none. */
int real_comm_get(struct comm *c, ncclComm_t *ret, struct err *err);
/* @real, which was @c's, or NULL: ends it in the real library. */
ncclResult_t real_comm_destroy(struct comm *c, ncclComm_t real);
ncclResult_t real_comm_abort(struct comm *c, ncclComm_t real);
