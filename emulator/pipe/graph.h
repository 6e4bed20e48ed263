/* Who waits for whom in a pipeline. */
#pragma once

#include "pipe/job.h"

struct pipe_edge {
	uint32_t before, after; /* ops */
};

struct pipe_graph {
	struct pipe_op *ops; /* owned, as the edges; without times */
	double *ns;          /* owned; how long each takes */
	struct pipe_edge *edges;
	uint32_t n_ops, n_edges;
};

/* Return: 0; -ENOMEM. */
int pipe_graph_make(const struct pipe_job *job, struct pipe_graph *ret);
void pipe_graph_deinit(struct pipe_graph *g);
