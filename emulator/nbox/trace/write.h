/* A trace as Chrome's trace events, which viewers show and trace_load() reads again. */
#pragma once

#include <stdio.h>

#include "trace/trace.h"

/* Events as PyTorch's profiler and dPRO write them; processes are named "HOST.rankN". In args: op,
 * the op's number, and waits, the numbers of those that it waited for. Return: 0; -ENOMEM. */
int trace_print(const struct trace *t, FILE *to);
