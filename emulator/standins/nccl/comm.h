/* Communicators as api.c sees them; impl.h has the structure. */
#pragma once

#include "standins/nccl/impl.h"

ncclResult_t comm_known(const struct ncclComm *c, const char *what);
ncclResult_t comm_finalize(struct ncclComm *c);
ncclResult_t comm_destroy(struct ncclComm *c);
ncclResult_t comm_abort(struct ncclComm *c);
ncclResult_t comm_revoke(struct ncclComm *c, int flags);
ncclResult_t comm_async_error(struct ncclComm *c, ncclResult_t *ret);
ncclResult_t comm_make_redop(struct ncclComm *c, void *scalar, ncclDataType_t dtype,
			     ncclScalarResidence_t where, ncclRedOp_t *ret);
ncclResult_t comm_drop_redop(struct ncclComm *c, ncclRedOp_t op);
ncclResult_t comm_spawn(void *(*fn)(void *), void *arg);
void comm_stop(struct ncclComm *c, const char *why);

ncclResult_t comm_init_rank(struct ncclComm **ret, int n_ranks, const ncclUniqueId *ids, int n_ids,
			    int rank, const ncclConfig_t *config, const char *what);
ncclResult_t comm_init_all(struct ncclComm **comms, int n, const int *devices);
ncclResult_t comm_split(struct ncclComm *parent, int color, int key, struct ncclComm **ret,
			const ncclConfig_t *config);
ncclResult_t comm_shrink(struct ncclComm *parent, const int *excluded, int n_excluded,
			 struct ncclComm **ret, const ncclConfig_t *config, int flags);
