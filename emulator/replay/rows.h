/* The rows of a record as a graph: which row waits for which. Made once, for any number of replays.
 */
#pragma once

#include "base/err.h"
#include "engine/record-rows.h"

#define ROWS_NONE UINT32_MAX

/* What a row waits for: for the end of an op, for a point to be reached. */
struct rows_dep {
	uint32_t row;
	bool is_same_stream;
	uint64_t open_ns; /* wall: when the op's gate opened, as far as nboxd knew when the row
			     came; 0: no op */
};

/* A point or an op of a real rank; in the order in which nboxd took them. */
struct rows_row {
	bool is_op;
	uint64_t index;         /* in the record */
	uint64_t number;        /* of all rows of its rank, from 1 */
	struct rows_dep latest; /* what came last at its rank; row may be ROWS_NONE */
	uint32_t host;          /* the host's point before the call, or ROWS_NONE */
	uint32_t n_deps;
	uint64_t first_dep;
	uint64_t first_follower;
	uint32_t n_followers;
	uint32_t n_waits; /* rows that it follows */
};

/* @row follows: it waits until a row is over, or, where it is @is_early, taken. */
struct rows_follower {
	uint32_t row;
	bool is_early;
};

struct rows_graph {
	const struct record *rec; /* borrowed */
	struct rows_row *rows;
	struct rows_dep *deps;
	struct rows_follower *followers;
	uint32_t n; /* rows */
};

/* @rec: borrowed. Names that come again in replays of a captured graph mean the last row of that
 * name, names that are not known nothing. Return: 0; -ENOMEM, -E2BIG with the sentence. */
int rows_graph_make(const struct record *rec, struct rows_graph *ret, struct err *err);
void rows_graph_deinit(struct rows_graph *g);
