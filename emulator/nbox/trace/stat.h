/* What the ops of a trace take, by kind and name, and what of it nothing hides. */
#pragma once

#include <stdbool.h>

#include "trace/trace.h"

/* Ops of one kind and name, of all ranks; of messages, without the hop's numbers. */
struct stat_row {
	char *name;    /* owned */
	uint32_t kind; /* TRACE_KINDS: time in which the rank neither computes nor copies nor
			  communicates */
	uint64_t n;
	double ns;         /* sum */
	double exposed_ns; /* of the GPU: while its rank computes nothing and copies nothing; of
			      computation and copies: all */
};

struct stat {
	struct stat_row *rows; /* owned; those of most time come first */
	uint32_t n_rows;
	double ranks_ns;     /* from the first op of each rank to its last end, all together */
	double iteration_ns; /* of a rank, the mean */
	uint32_t n_ranks, n_iterations; /* 1: the trace names no steps, and counts as one */
};

/* @rank: number of the one whose ops count; TRACE_NONE: all. Return: 0; -ENOMEM. */
int stat_make(const struct trace *t, uint32_t rank, struct stat *ret);
void stat_deinit(struct stat *s);
/* Milliseconds of a row in one iteration of one rank. */
double stat_each_ms(const struct stat *s, const struct stat_row *row);
