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
/* The same for what plays them: by one clock, and with waits, guessed where they have none. Return:
 * as trace_load(); -EINVAL, too, where no GPU does anything in it. */
int trace_load_to_play(const char *const *words, size_t n, struct trace *ret, struct err *err);
/* A record, a results directory, or nothing of that name: it may be a run's. */
bool trace_names_run(const char *word);
