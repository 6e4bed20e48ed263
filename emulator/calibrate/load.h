/* A file of a fitted model, read. */
#pragma once

#include "base/err.h"
#include "fitted/fitted-file.h"

/* Return: 0: *ret is the caller's, by fitted_deinit(); negative errno with the sentence. */
int fitted_load(const char *path, struct fitted *ret, struct err *err);

/* How far it may be believed in a world of @n_ranks, for ops of up to @most_bytes (nccl-tests'
 * size; 0: not known): "calibrated: ..."; "" where it cannot be read. Return: @buf. */
char *fitted_describe(const char *path, uint32_t n_ranks, double most_bytes, char *buf,
		      size_t size);
