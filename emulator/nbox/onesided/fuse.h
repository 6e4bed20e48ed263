/* What a trace says of all-to-alls that stores could take the place of: of a kernel that looks up,
 * the all-to-all behind it, and the kernels that unpack. */
#pragma once

#include "onesided/onesided.h"
#include "trace/trace.h"

struct fused {
	uint32_t n, n_others; /* all-to-alls; those without such a kernel before them */
	/* of one of them, on average; of its ranks the one that takes longest, but the all-to-all
	 * as long as for the rank that comes last, which waits for nobody */
	uint32_t n_ranks;
	double lookup_ns, sync_ns, wire_ns, unpack_ns;
	double bytes; /* that a rank sends to others */
};

/* @lookup, @unpack: in the names of kernels; @unpack NULL: there are none. Return: 0; -ENODATA with
 * the sentence. */
int fuse_find(const struct trace *t, const char *lookup, const char *unpack, struct fused *ret,
	      struct err *err);
/* Puts it into @o, whose vector_bytes and alpha_ns are set: alpha is at most half of the
 * all-to-all. */
void fuse_fill(const struct fused *f, struct onesided *o);
