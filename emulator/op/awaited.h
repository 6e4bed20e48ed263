/* What the end of a post of point-to-point calls follows from: the end of each call. Claims on
 * links (contention.h), which outlive posts, move them, and with them the end on the timeline.
 * Counted references. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/ops.h"

struct awaited {
	uint32_t n_refs, n;
	struct ops *ops; /* borrowed */
	struct run *run; /* borrowed; the last one with its calls; NULL: none, or it is gone */
	struct timeline_node *node; /* held */
	bool is_told;               /* the timeline knows the end */
	/* [1]: without what-ifs, as everywhere */
	double from[2]; /* it is not over before */
	struct awaited_call {
		double at[2];    /* when the call is over; -INFINITY: at once, or not known yet */
		double alone[2]; /* ... if its message shared its links with nobody */
		double ns[2];    /* what its message takes by itself */
		uint64_t number[2]; /* of its claim; 0: none */
	} of[];                     /* by call */
};

/* Of @n calls. NULL: no memory. */
struct awaited *awaited_new(struct ops *ops, struct timeline_node *node, uint32_t n);
struct awaited *awaited_ref(struct awaited *a);
struct awaited *awaited_unref(struct awaited *a); /* NULL; takes NULL */
/* The call that is over last; NULL: none is over later than @a->from. */
const struct awaited_call *awaited_last(const struct awaited *a, bool is_plain);
double awaited_end(const struct awaited *a, bool is_plain);
/* When it would be over if no message shared its links. */
double awaited_alone(const struct awaited *a);
/* How much later it is over than that. */
double awaited_shared(const struct awaited *a);
/* @call is over at @at, no more when it was. */
void awaited_move(struct awaited *a, uint32_t call, bool is_plain, double at);
