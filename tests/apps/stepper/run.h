/* Runs a plan on the CUDA runtime and NCCL. An error ends the process with one line: there is
 * nothing that a job can do about it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stepper/pace.h"
#include "stepper/place.h"
#include "stepper/plan.h"

struct run;

struct run_times { /* of one iteration */
	double iteration_ms;
	double exposed_ms; /* how long the compute stream waited for others */
};

/* All are borrowed as long as the run lives. @id_file: see nbox-perf/rendezvous.h. */
struct run *run_new(const struct place *place, const struct plan *plan, const struct pace *pace,
		    int local_rank, const char *id_file, bool is_graph);
/* Launches iteration @i and waits for its end. It lasts from the end of the one before it. */
struct run_times run_iteration(struct run *run, uint64_t i);
void run_free(struct run *run);
