/* Traces in Chrome's form: PyTorch's (trace/kineto.h), dPRO's (trace/dpro.h), those that nbox
 * report --trace and nbox trace write. */
#pragma once

#include <stdio.h>

#include "trace/trace.h"

/**
 * trace_read - adds the ranks of a file
 * @file: its name, for sentences, and where it does not say whose it is
 * @host: whose clock it has, where it does not say so; NULL: trace/connect.h says which
 *
 * Behind the last file, trace_finish() (trace/finish.h). After an error @t is only good for
 * trace_deinit(). Return: 0; -EINVAL, -EEXIST, -EFBIG, -EIO, -ENOMEM, each with the sentence.
 */
int trace_read(FILE *f, const char *file, const char *host, struct trace *t, struct err *err);
