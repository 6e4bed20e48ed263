/* What nbox predict and nbox blame are asked, and their predictions. */
#pragma once

#include "nbox/ask/ask.h"
#include "predict/task.h"

#define PREDICT_PATHS_MAX 1024

struct predict_request {
	struct config *config;                /* owned */
	const char *file;                     /* of --config */
	const char *paths[PREDICT_PATHS_MAX]; /* of the trace */
	size_t n_paths;
	const char *overheads_path, *json;
	const char *scales[64]; /* "0-3=1.2" */
	uint32_t n_scales;
	uint32_t n_ranks; /* 0: those of the trace */
	enum predict_sync sync;
	struct overhead_profiler profiler;
	const char *profiler_flag; /* that says so; NULL: none was given */
	bool has_cluster;          /* collectives by its model, not as traced */

	/* Made by request_play(). */
	struct trace trace;
	struct exchanges exchanges;
	struct calls *calls; /* by rank, by iteration */
	struct overheads overheads;
	struct ask *ask;                      /* NULL: no cluster */
	double *scale_of;                     /* by rank; NULL */
	struct predict_iteration *iterations; /* by their time */
	uint32_t n_iterations;
	uint32_t n_partial; /* left out: the first or the last one, not all of which is traced */
	uint32_t n_warm_up; /* the same: the first ones, as the run's summary does */
};

struct predict_iteration {
	uint32_t step; /* TRACE_NONE: the whole trace */
	uint32_t n_exchanges;
	double ns, baseline_ns, traced_ns;
};

int request_init(struct predict_request *q); /* 0; -ENOMEM */
void request_deinit(struct predict_request *q);
/* The words of @command's line. Return: 0; 1: help is asked for; -EINVAL with the sentence. */
int request_take(struct predict_request *q, enum command command, int argc, char **argv,
		 struct err *err);
/* Reads the trace and predicts each iteration. Return: 0; negative errno with the sentence. */
int request_play(struct predict_request *q, struct err *err);
/* The iteration number @i of them again. Both are the caller's. Return: as request_play(). */
int request_play_one(const struct predict_request *q, uint32_t i, struct task *ret_task,
		     struct predict *ret, struct err *err);
/* A line of where ranks, collectives and hosts come from. */
void request_print(const struct predict_request *q, bool has_host, FILE *to);
/* Ranks of the world to be. */
uint32_t request_ranks(const struct predict_request *q);
