/* Traces by their files or folders. */
#pragma once

#include "nbox/trace/load.h"

/* As trace_load(); a folder that is no run's means the traces in it: *.json, *.json.gz. */
int paths_load(const char *const *words, size_t n, struct trace *ret, struct err *err);
