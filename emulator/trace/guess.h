/* What streams waited for, of traces that do not say it: PyTorch's do only if asked. */
#pragma once

#include "trace/trace.h"

/**
 * trace_guess_waits - fill the waits of a finished trace that has none, and mark them as guessed
 *
 * By when things happened at each rank: an op of a communicator waited for what was over last on
 * another stream, computation that began late did so too, and the first of an iteration for what
 * was over last on each stream.
 * Return: 0; -ENOMEM.
 */
int trace_guess_waits(struct trace *t);
