/* The report of a run: ops by kind, the job's steps (steps.h), times, lateness, warnings. measure.h
 * computes it from the run's record. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "engine/record-read.h"
#include "schedule/coll.h"

#define REPORT_WARNINGS_MAX 16
#define REPORT_UNDER_WAY (-2) /* instead of an exit code */
#define REPORT_UNDER_WAY_TEXT \
	"the run is under way, or its nboxd was killed: this is what came so far; nbox status says more"

struct report_kind {
	uint64_t n_ops, bytes; /* bytes as in record_op, of one rank */
	double model_ns, injected_ns;
};

struct report_stat {
	uint64_t n;
	double mean, min, p25, p50, p75, p95, p99, max;
};

#define REPORT_COMMS_MAX 64

#define REPORT_CLASSES_MAX 256
#define REPORT_CLASS_NAME_MAX 64

/* Ranks that compute the same (config/classes.h). */
struct report_class {
	char name[REPORT_CLASS_NAME_MAX]; /* "pp=2" */
	char run[128];                    /* in which @real was real; "": this one */
	uint32_t n_ranks, n_real;         /* n_real 0: it was never seen */
	uint32_t real, like; /* whose timeline it has: a rank, by its number in @run; its class */
};

#define REPORT_EXPECTS_MAX 32

struct report_expect {
	char text[128];
	double got; /* NAN: the run has no such figure */
	bool is_met;
	bool is_left_out; /* not judged: an exit code, of a run that no job ended */
};

/* Communicators that are alike in all but their ranks. */
struct report_comms {
	uint32_t n_ranks, n_real, source, sure, axes; /* of engine/record.h */
	uint64_t n, n_ops;                            /* communicators; ops of their members */
};

#define REPORT_COUNTS_MAX 32

/* Ops of a re-timed run whose communicators changed their size, and where their counts come from.
 */
struct report_counts {
	uint32_t kind;
	uint64_t n_ops;
	char how[16], law[16], text[192];
};

/* Its texts may be printed (base/plain.h), whatever the record and the files beside it say. */
struct report {
	struct record_header header;
	struct record_end end;
	uint64_t n_ops; /* of the rank that is looked at */
	struct report_kind kinds[COLL_KINDS];
	uint64_t n_steps, n_warm_up, ops_per_step; /* 0: no steps were found */
	char steps_how[256];        /* what was taken for a step; why there are none */
	char steps_rule[96];        /* struct steps */
	struct report_stat step_ns; /* virtual time of those that are timed: without warm-up,
				       followed by another one at once */
	/* Per timed step, means. Without steps: of the whole run. */
	double virtual_ns, wall_ns; /* by either clock */
	double modelled_ns;         /* sum of what the model says of the ops */
	double shared_ns;           /* sum of what ops waited for links that others used */
	double queued_ns;           /* ... and for ops of their communicator before them */
	double injected_ns;         /* virtual time, less what it is without what-ifs */
	double exposed_ns;          /* virtual time in which computation waited for communication */
	bool is_exposed_bound;      /* no more than that: report_exposed() */
	double total_injected_ns;   /* of the whole run */
	struct report_stat
		lateness_ns; /* release - due, all ranks with a process; below 0: early */
	/* groups of calls of resharding steps, of all real ranks: by a plan, of these by what was
	 * assumed, and others that were left alone */
	uint64_t n_planned, n_assumed, n_left_alone;
	/* all-to-alls by the matrix of --alltoall; that do not match it */
	uint64_t n_by_matrix, n_not_by_matrix;
	uint64_t n_early; /* gates that opened before they were due, which must not be */
	struct report_comms comms[REPORT_COMMS_MAX]; /* of all real ranks; the largest first */
	uint32_t n_comms;
	struct report_class classes[REPORT_CLASSES_MAX]; /* classes.h */
	uint32_t n_classes;                              /* 0: all ranks are alike */
	uint32_t rank;                                   /* world rank that is looked at */
	char network[512]; /* that times come from, in words; "": not known, or the model is none */
	char device[384];  /* that there is no GPU, in words; "": there is */
	char decided_by[512]; /* what a scheduler decided ops by, in words; "": the model is none */
	char took[512], messages[512]; /* of nccl full: what NCCL took for ops, how many messages;
					  "": not known, or gate */
	char payload_memory[512];      /* where bodies lay, in words; "": not over rdma */
	char lost[512]; /* what of the run could not be written, and why; "": nothing */
	bool is_empty;  /* the job failed before its first op: its own words say all, the summary is
			   a line */
	uint32_t n_expects;
	struct report_expect expects[REPORT_EXPECTS_MAX]; /* expect.h */
	uint32_t n_counts;
	struct report_counts counts[REPORT_COUNTS_MAX];
	uint32_t n_warnings;
	char warnings[REPORT_WARNINGS_MAX][512];
};

/* Adds a line that begins with "warning:"; the seventeenth is dropped. */
void report_warn(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Something of the run could not be written: the first line of the summary says so. */
void report_lose(struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The model is none, with what-ifs or without. */
bool report_is_none(const struct report *r);
