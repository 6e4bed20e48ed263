/* What all ops of a world share. The owner (nboxd, or a replay) fills it and owns what it points
 * to; ops say through the sink what becomes of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bitmap.h"
#include "config/config.h"
#include "config/open-model.h"
#include "contention/overlap.h"
#include "engine/solver.h"
#include "members/members.h"
#include "scenario/step-count.h"
#include "timeline/timeline.h"

struct ideal;
struct op;
struct ops;
struct post;
struct resharding_steps;
struct run;

/* decided.h */
struct ops_decided {
	uint64_t n, n_by_nccl; /* collectives that were timed */
	/* of those by NCCL: as a record of decisions says; so but for the channels; otherwise */
	uint64_t n_as_told, n_other_channels, n_not_told;
	bool is_difference_told, is_other_told, is_not_told_told;
};

/* @play and @is_lost may be NULL. */
struct ops_sink {
	/* Whether @op waits in vain, or never ends: it is not played. */
	bool (*is_lost)(struct op *op);
	/* The run's messages are to be played, up to run_end(). Without it a run is over at once.
	 * Return: 0; negative errno with the sentence. */
	int (*play)(struct run *run, struct err *err);
	/* The end of @post is known. */
	void (*released)(struct post *post);
	/* The ends of a run that is not over have moved: another op shares the network with it. */
	void (*moved)(struct run *run);
	/* An end moved by @ns when its rank had gone on. */
	void (*debt)(struct ops *ops, double ns);
	/* A rank computes @ns where its template computes @was_ns: stretch @number of that; NULL:
	 * not wanted. Return: 0; negative errno with the sentence. */
	int (*computed)(struct ops *ops, uint32_t world_rank, uint64_t number, double was_ns,
			double ns, struct err *err);
	/* What the user should know of the run. */
	void (*warn)(struct ops *ops, const char *sentence);
};

struct ops {
	const struct ops_sink *sink;
	const struct config *config;
	const struct cluster *cluster;
	const struct bitmap *recorded; /* its real ranks without a process; NULL: all have one */
	struct delay_chain *delay;
	struct solver *solver;
	struct overlap *overlap[2]; /* of ops that share the network; [1]: without what-ifs */
	struct timelines *timelines;
	const struct ideal *ideal; /* NULL: all is as configured */
	struct step_count *steps;  /* NULL: nobody said what a step is */
	bool has_moments;          /* the delay models are told where a rank is */
	double *ends;              /* owned; room for rule.c */
	uint64_t n_ops;            /* since the start */
	uint32_t n_open;           /* called by somebody, not done by all */
	struct asked asked;        /* the collectives so far */
	struct ops_decided decided;
	/* of the first op: the summary counts them */
	bool is_below_bound_told, is_lag_told, is_peers_told, is_left_alone_told;
	bool is_matrix_met; /* of --alltoall */
	uint64_t planned; /* config->reshardings with a part of a step, the first 64, a bit each */
	struct resharding_steps *steps_of; /* owned; by config->reshardings */
};

void ops_warn(struct ops *ops, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
