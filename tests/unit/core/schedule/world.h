/* The obvious executor: all ranks of a small world run their schedules step by step, in a random
 * order of the ready steps, with sets in place of numbers. It asserts all that a schedule promises.
 */
#pragma once

#include <stdint.h>

#include "rng.h"
#include "schedule/schedule.h"

#define WORLD_MAX 32

enum world_place { WORLD_OUT_OF_PLACE, WORLD_IN_PLACE };

/* @s: one schedule a rank (all the same, but for SENDRECV). */
void world_run(const struct sched *const *s, uint32_t n, enum world_place place, struct rng *rng);
/* The same for one schedule. */
void world_run_same(const struct sched *s, enum world_place place, struct rng *rng);
