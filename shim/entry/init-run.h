/* Makes virtual communicators: check-in with nboxd, then the real communicator of the real members;
 * on a thread of its own when one of them is not blocking. Several at once, so that a group of
 * inits in one process does not wait for itself. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shim/progress/comm.h"
#include "shim/real/nccl-api.h"
#include "wire/wire.h"

struct init {
	struct comm *comm;     /* registered, STARTING; the init owns a reference */
	ncclComm_t *ret;       /* NULL: the job has no handle, of a split without color */
	enum wire_type type;   /* COMM_INIT, SPLIT, SHRINK */
	uint32_t parent, rank; /* of hdr */
	void *body;            /* owned */
	size_t bytes;
	bool meets;   /* takes part in making a real communicator: init-run.c's */
	void *config; /* owned copy of the job's, always blocking; or NULL */
};

/* Carries out @n inits, on this thread, or in the background when one of them is not
 * blocking. Takes over what @list points to, not the list. */
ncclResult_t init_run(const struct init *list, uint32_t n);
/* Their group was wrong: there will be no communicators. */
void init_drop(const struct init *list, uint32_t n);
