/* A trace as its hosts would have written it with other clocks, and with receives that were posted
 * early: to test what aligns traces. */
#pragma once

#include "trace/trace.h"

struct skew {
	const double *ns, *drift; /* of each host, borrowed: its clock shows that much more, and
				     runs that much faster */
	double early_ns;          /* a RECV is posted up to that much before its start */
	uint64_t seed;
};

/* Behind it the ops are in order again. Return: 0; -ENOMEM. */
int skew_apply(struct trace *t, const struct skew *s);
