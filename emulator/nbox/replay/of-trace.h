/* Traces of ranks as a job. What the GPU did counts, in the order in which it did that; of the host
 * what it waited for. An op that began later than all that it waited for keeps the gap. */
#pragma once

#include "base/err.h"
#include "nbox/replay/job.h"
#include "trace/trace.h"

/* @world: ranks to be, copies of those of the trace; 0: as many as it had. Communicators of all
 * ranks become so large. @intra, @inter: what hops cost. Return: 0; negative errno with the
 * sentence. */
int job_of_trace(const struct trace *t, uint32_t world, const struct hop_cost *intra,
		 const struct hop_cost *inter, struct job *ret, struct err *err);
