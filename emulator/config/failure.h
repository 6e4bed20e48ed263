/* The what-if `fail`: ranks of the virtual cluster are gone, or an op fails. It is no delay, so no
 * plug-in does it: nboxd carries it out (nboxd/comm/failure.c).
 *
 *   fail:rank=17,time=30s       world rank 17 is gone 30 s after the run's first op: nboxd aborts
 *                               every communicator that it is in
 *   fail:rank=16-23+40,time=30s the same for several ranks; fail:node=2,time=30s for a whole node
 *   fail:rank=17,after=100      the rank is gone at op 101 of all its communicators together
 *   fail:op=allreduce,after=100 the 101st AllReduce fails, and with it its communicator
 *
 * The members see ncclRemoteError at once: their gates open, ncclCommGetAsyncError says so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "topology/topology.h"

struct failure {
	const char *text; /* borrowed, as typed */
	uint32_t kind;    /* enum coll_kind; COLL_KINDS: any op */
	uint32_t *ranks;  /* owned; world ranks that are gone */
	size_t n_ranks;   /* 0: none, only the op's communicator fails */
	bool is_timed;    /* else counted */
	uint64_t time_ns; /* after the first op of the run */
	uint64_t after;   /* ops */
};

/* For `nbox models`. */
extern const char failure_help[];

/* Return: 0; negative errno with the sentence. */
int failure_parse(const char *text, const struct topology *world, struct failure *ret,
		  struct err *err);
void failures_free(struct failure *list, size_t n);
