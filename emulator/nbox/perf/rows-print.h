/* nccl-tests' table of modelled rows, and the same as JSON. */
#pragma once

#include <stdio.h>

#include "nbox/perf/rows.h"

/* What the rows were made with, for people. */
struct perf_made {
	const struct config *config;
	const char *network;         /* in words; "": there is none */
	const char *decided_by;      /* a scheduler's rule, in words; NULL: there is none */
	const char *calibration;     /* "not calibrated" */
	const char *const *warnings; /* sentences */
	size_t n_warnings;
};

void rows_print(const struct perf_rows *r, const struct perf_made *made, FILE *to);
/* @path: "-" is standard output. Return: 0; negative errno with the sentence. */
int rows_write_json(const struct perf_rows *r, const struct perf_made *made, const char *path,
		    struct err *err);
