/* A graph of play.c in the making: its vertices, its devices, and what a change makes of times. */
#pragma once

#include "base/number-table.h"
#include "nbox/replay/played.h"

#define MAKER_ANY UINT32_MAX /* of a device: any rank */

struct maker {
	const struct play *p;
	const struct job *j;
	struct played *to;
	struct number_table devices; /* by what they are: number + 1 */
	const struct shape *shape;   /* of the op that is being added */
	uint32_t op;
	uint64_t most_hops;   /* of an op: those with more are one vertex each */
	uint64_t most_pieces; /* of a hop */
	bool has_one_comm;    /* all ops are of one communicator */
	struct err *err;
};

/* Return: -ENOMEM, with the sentence. */
int maker_no_memory(const struct maker *m);
/* The vertices since the last call are @owner's: a row, or PLAYED_OP and an op. Return: 0; -ENOMEM.
 */
int maker_own(struct maker *m, uint32_t *n_owned, uint32_t owner);
int maker_add_device(struct maker *m, const struct play_device *d, uint32_t *ret);
/* The one that is like @d, which is made where it is new. Return: 0; -ENOMEM. */
int maker_device(struct maker *m, const struct play_device *d, uint32_t *ret);
/* What changes make of the row's computation. */
double maker_computed_ns(const struct maker *m, const struct job_row *row);
/* *ret_factor: of all that the op takes; *ret_add: before that. */
void maker_changed_op(const struct maker *m, const struct job_op *op, double *ret_factor,
		      double *ret_add);
