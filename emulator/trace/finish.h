/* A trace whose ops are all there, put in order. */
#pragma once

#include "trace/trace.h"

/* Puts ranks, ops and waits in order, joins ops (trace/join.h), and finds which
 * ops of the host contain which: the innermost one of the thread that goes on when another starts.
 * May be done again when times have changed. Return: 0; -ENOMEM. */
int trace_finish(struct trace *t);
