/* The ops of one communicator, in their order, with what shows a backward pass in them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/record-read.h"

/* What shows a backward pass in ops [first, first + n) of the rows that are sorted by communicator.
 */
struct comm_group {
	uint64_t first, n;
	double reduced, sent;
};

/* For qsort() of pointers to rows of one array: by communicator, then by their places. */
int comm_ops_order(const void *a, const void *b);
/* The communicator that begins at @first. */
struct comm_group comm_group_at(const struct record_op *const *rows, uint64_t first,
				uint64_t n_rows);

/* The ops of the communicator that is looked at. Sums have one number more than there are ops: of
 * all before. */
struct comm_ops {
	const struct record_op *rows; /* of the rank */
	uint64_t n_rows, n;
	uint64_t *at;    /* places in rows */
	uint64_t *sign;  /* equal for equal calls */
	double *weights; /* sums: bytes that show a backward pass */
	double *busy_ns; /* sums: time in which the op, and no later one, was under way */
	uint64_t *waits; /* see waits.h */
	bool is_sending; /* sends show it, not reductions */
};

/* @of_group: the @n ops of the communicator among @rows. Return: 0; -ENOMEM, @ret is the caller's
 * to deinit then, too. */
int comm_ops_init(struct comm_ops *ret, const struct record *rec, const struct record_op *rows,
		  uint64_t n_rows, const struct record_op *const *of_group, uint64_t n,
		  bool is_sending);
void comm_ops_deinit(struct comm_ops *o);
const struct record_op *comm_op(const struct comm_ops *o, uint64_t i);
/* Bytes that show a backward pass: of one op; of the ops [from, to). */
double comm_op_weight(const struct comm_ops *o, const struct record_op *r);
double comm_ops_weight(const struct comm_ops *o, uint64_t from, uint64_t to);
/* From the arrival of op @from to that of the later op @to, less the ops between. */
double comm_ops_idle_ns(const struct comm_ops *o, uint64_t from, uint64_t to);
