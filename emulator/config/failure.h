/* The what-ifs `fail` and `desync`: ranks of the virtual cluster are gone or one op off, or an op
 * fails. They are no delays, so no plug-in does them: nboxd carries them out
 * (nboxd/comm/failure.c).
 *
 *   fail:rank=17,time=30s       world rank 17 is gone 30 s after the run's first op: nboxd aborts
 *                               every communicator that it is in
 *   fail:rank=16-23+40,time=30s the same for several ranks; fail:node=2,time=30s for a whole node
 *   fail:rank=17,after=100      the rank is gone at op 101 of all its communicators together
 *   fail:op=allreduce,after=100 the 101st AllReduce fails, and with it its communicator
 *
 *   fail:rank=17,from=60steps   the rank is gone when the first real rank begins step 60
 *
 * The members see ncclRemoteError at once: their gates open, ncclCommGetAsyncError says so. With
 * how=silent nobody tells them: ops that the rank takes part in never complete, as on a network
 * where a host has vanished, and the job's own timeout has to find out.
 *
 *   desync:rank=17,after=100    from then on the rank is one op off in each of its communicators:
 * its op before meets the others' op. Where the two calls are alike nobody notices, in life but for
 * wrong values; else the op never completes */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "scenario/when.h"
#include "topology/topology.h"

enum failure_how { FAILURE_ERROR, FAILURE_SILENT, FAILURE_DESYNC };

struct failure {
	enum failure_how how;
	const char *text;    /* borrowed, as typed */
	uint32_t kind;       /* enum coll_kind; COLL_KINDS: any op */
	uint32_t *ranks;     /* owned; world ranks that are gone */
	size_t n_ranks;      /* 0: none, only the op's communicator fails */
	struct when_span at; /* virtual time after the first op of the run, or a step; not given: */
	uint64_t after;      /* ops */
};

/* For `nbox models`. */
extern const char failure_help[], failure_desync_help[];

/* Is it "fail", "desync", or one of them with ":..."? */
bool failure_is_one(const char *text);
/* Return: 0; negative errno with the sentence. */
int failure_parse(const char *text, const struct topology *world, struct failure *ret,
		  struct err *err);
void failures_free(struct failure *list, size_t n);
