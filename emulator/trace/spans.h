/* What each real rank did, and when, in virtual time: its ops, and the computation between them.
 * Made of the points and ops of a record by the formula of timeline/timeline.h, whatever their
 * times come from. */
#pragma once

#include "engine/record-rows.h"

#define SPAN_NONE SIZE_MAX

/* One op or one point, with the computation that led to it. */
struct span {
	const struct record_op *op;       /* NULL: of a point */
	const struct record_point *point; /* NULL: of an op */
	uint64_t order;
	uint32_t world_rank;
	uint32_t stream;    /* that the computation was on */
	uint64_t from_ns;   /* virtual: when that began; at_ns: there was none */
	uint64_t at_ns;     /* virtual: when op or point was reached */
	uint64_t end_ns;    /* virtual: when the op was over; a point's at_ns */
	const size_t *deps; /* what it waited for, as indices */
	size_t n_deps;
	size_t host; /* the last return to the host before its call; SPAN_NONE */
};

struct spans {
	struct span *list; /* owned; by rank, then by order */
	size_t n;
	size_t *deps; /* owned; of all of them */
};

/* Return: 0; -ENOMEM. */
int spans_find(const struct record *rec, struct spans *ret);
/* Behind the last span of the rank whose first is @first. */
size_t spans_rank_end(const struct spans *s, size_t first);
void spans_deinit(struct spans *s);
