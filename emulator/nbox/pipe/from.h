/* A pipeline's times from what others have measured or planned. */
#pragma once

#include "nbox/pipe/pipeline.h"
#include "replay/rows.h"

/* Of a recorded run, and of others of the same job (replay/worlds.h): what each stage computes, how
 * long its messages take, by which schedule it ran. @n_micro: of an iteration; 0: as the steps of
 * the run say. Return: 0; -EINVAL with the sentence: it is no pipeline; another negative errno. */
int pipeline_from_record(const char *const *runs, size_t n_runs, uint64_t n_micro,
			 struct pipeline *ret, struct err *err);
/* The same of rows that are loaded, by the virtual times of @g->rec. */
int pipeline_from_graph(const struct rows_graph *g, uint64_t n_micro, struct pipeline *ret,
			struct err *err);
/* Of what nbox reshard plan --json wrote: how long the tensor takes to the next stage, and its
 * bytes. Return: as above. */
int pipeline_comm_from(const char *path, double *ret_ns, uint64_t *ret_bytes, struct err *err);
