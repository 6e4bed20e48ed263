/* What was measured: files, and results directories of runs. */
#pragma once

#include "base/err.h"
#include "calibrate/hints.h"
#include "calibrate/sample.h"

/* Return: 0; negative errno with the sentence. */
int inputs_read(const char *const *paths, size_t n, const struct read_hints *hints,
		struct samples *ret, struct err *err);
