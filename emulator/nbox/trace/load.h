/* Traces as the command line names them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "trace/trace.h"

/**
 * trace_load - the ranks of all of @words, put in order
 * @words: files of PyTorch's profiler, of dPRO, of nbox report --trace, of nbox trace, packed by
 * gzip or not; records, results directories or names of runs. Their content says which it is.
 * A folder that is no run's means the traces in it, *.json and *.json.gz
 *
 * A run's times are virtual ones; its ranks have one clock, its nboxd's.
 * Return: 0, *ret is the caller's, by trace_deinit(); negative errno with the sentence.
 */
int trace_load(const char *const *words, size_t n, struct trace *ret, struct err *err);
/* Does a GPU do anything in @t? Return: 0; -EINVAL with the sentence, which names @path. */
int trace_needs_kernels(const struct trace *t, const char *path, struct err *err);
/* A record, a results directory, or nothing of that name: it may be a run's. */
bool trace_names_run(const char *word);
