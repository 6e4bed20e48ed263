/* The real ranks of a run's record as a trace. */
#pragma once

#include "engine/record-rows.h"
#include "trace/trace.h"

/* Adds them, in virtual time: ops of communicators, and the computation before them. @name: of the
 * host whose clock they have. Return: 0; -EINVAL, -EEXIST, -EFBIG with the sentence; -ENOMEM. */
int trace_of_run(const struct record *rec, const char *name, struct trace *t, struct err *err);
