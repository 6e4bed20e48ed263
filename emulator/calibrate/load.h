/* A file of a fitted model, read. */
#pragma once

#include "base/err.h"
#include "fitted/fitted-file.h"

/* Return: 0: *ret is the caller's, by fitted_deinit(); negative errno with the sentence. */
int fitted_load(const char *path, struct fitted *ret, struct err *err);

/* Where it was measured, and how well. */
struct fitted_range {
	double mape; /* at points held out, of the worst curve; a ratio */
	uint32_t min_ranks, max_ranks;
	double min_bytes, max_bytes; /* nccl-tests' sizes */
};

/* @kind: of its curves those; -1: all. Return: 0; -ENOENT: there are none. */
int fitted_range(const struct fitted *f, int kind, struct fitted_range *ret);
