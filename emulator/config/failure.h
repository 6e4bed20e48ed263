/* The what-if `fail`: something of the virtual cluster breaks. It is no delay, so no
 * plug-in; nboxd carries it out (daemon/failure.c).
 *
 *   fail:rank=17,time=30s            30 s after the run's first op, world rank 17 is gone:
 *                                    every communicator that it is in is aborted
 *   fail:rank=17,after=100           the same, at the op after 100 ops of rank 17's
 *                                    communicators
 *   fail:op=allreduce,after=100      the 101st AllReduce fails, and with it its communicator
 *
 * Members see ncclRemoteError, at once: their gates open, ncclCommGetAsyncError says so. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define FAILURE_NO_RANK UINT32_MAX

struct failure {
	const char *text;  /* borrowed, as typed */
	uint32_t kind;     /* enum coll_kind; COLL_KINDS: any op */
	uint32_t rank;     /* world rank that is gone, or FAILURE_NO_RANK */
	bool is_timed;     /* else counted */
	uint64_t time_ns;  /* after the first op of the run */
	uint64_t after;    /* ops */
};

/* For `nbox models`. */
extern const char failure_help[];

/* Is it "fail" or "fail:..."? */
bool failure_is_one(const char *text);
/* Return: 0; -EINVAL with the sentence. @world: ranks of the world. */
int failure_parse(const char *text, uint32_t world, struct failure *ret, struct err *err);
