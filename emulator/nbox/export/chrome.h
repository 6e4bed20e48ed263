/* A run as a trace that viewers and tools of PyTorch's profiler read (Chrome's trace event format):
 * ranks are processes, streams threads, ops and computation kernels, in virtual time. */
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "engine/record-rows.h"

/* @path: a file, packed where it ends with ".gz", with all real ranks; or a folder, where its name
 * ends with '/' or it is there: a file rank-N.json.gz for each of them. Return: 0; negative errno,
 * perhaps with the sentence. */
int chrome_write(const struct record *rec, const char *path, struct err *err);
