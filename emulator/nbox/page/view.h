/* One real rank of a record as a page shows it: the times of its iterations, the lanes of one of
 * them, its ops by what they are. All times are virtual. */
#pragma once

#include "engine/record-read.h"
#include "nbox/draw/lanes.h"
#include "nbox/report/report.h"
#include "nbox/report/steps.h"

/* Ops of one communicator and kind with as many bytes; where there are iterations, of those that
 * count. */
struct view_group {
	const struct record_op *first;
	uint64_t n;
	double others_ns, network_ns, injected_ns; /* means: waits for other ranks, then takes */
	double p50_ns, p95_ns;                     /* from the arrival to the end */
};

struct view {
	const struct record *rec; /* borrowed */
	struct record_op *ops;    /* owned; by virtual arrival */
	uint64_t n_ops;
	struct steps steps;
	double *step_number, *step_ms; /* owned by @step_number; of timed steps, in order */
	uint64_t n_timed, n_warm_up;   /* the first n_warm_up of them are left out of figures */

	/* An iteration of about the median time; of a run without steps, all of it. */
	uint64_t shown; /* number of the step, from 1; 0: all of the run */
	double begin_ns, length_ns;
	struct lane *lanes; /* owned, with their bars */
	size_t n_lanes;

	struct view_group *groups; /* owned; what takes most time in all comes first */
	size_t n_groups;
};

/* @world_rank: of the report. Return: 0; -ENOMEM. */
int view_make(const struct record *rec, uint32_t world_rank, struct view *ret);
/* The iterations alone. */
int view_make_steps(const struct record *rec, uint32_t world_rank, struct view *ret);
void view_deinit(struct view *v);
/* "AllReduce, 25 MiB, 128 ranks" Return: @buf. */
char *view_op_name(const struct record_op *op, char *buf, size_t size);
