/* The times of a run of nbox, as samples: not those of the virtual cluster, which a model made, but
 * how long NCCL took among the ranks that have a process. */
#pragma once

#include "base/err.h"
#include "calibrate/hints.h"
#include "calibrate/sample.h"

/* @dir: the results directory. Return: as read_text(). */
int read_record(const char *dir, const struct read_hints *hints, struct samples *ret,
		struct err *err);
