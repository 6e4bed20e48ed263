/* What the reader makes of a record: its rows, unpacked and checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "engine/record.h"

/* All owned, with the lists. */
struct record {
	struct record_header header;
	struct record_end end;
	struct record_comm *comms; /* by number */
	struct record_op *ops;     /* as they ended; those of one rank are not in order */
	struct record_point *points;
	uint64_t n_comms, n_ops, n_points;
	const char *job; /* what the last job told of itself: texts, each with its zero; NULL:
			    nothing */
	uint32_t job_bytes;
	bool is_truncated; /* the end is missing: the writer died, or writes just now */
	struct record_lists *lists;
};

void record_deinit(struct record *r);
/* Room for a list of the record's, freed with it; NULL: no memory. */
void *record_keep(struct record *rec, size_t bytes);
/* NULL: there is none of that number. */
const struct record_comm *record_find_comm(const struct record *r, uint32_t number);

/* Of the member @rank, below n_ranks. */
static inline uint32_t record_world_rank(const struct record_comm *c, uint32_t rank)
{
	return c->n_members ? c->members[rank] : c->base + rank * c->stride;
}

struct rows {
	struct record *rec; /* borrowed; zeros at first */
	uint64_t n;         /* that were seen */
	uint64_t comms_size, ops_size, points_size;
	bool has_end; /* nothing comes behind it */
};

/* The rows of a frame; the first one of all is the header. Return: 0; negative errno with the
 * sentence. */
int rows_add(struct rows *rows, const char *data, size_t n, struct err *err);
/* Lets ops know their communicators, once all rows are there. */
void rows_connect(struct rows *rows);
