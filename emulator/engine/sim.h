/* Event simulation of one op over the whole world: every message of the schedule, in the order of
 * virtual time; each connection serves first come first served. It knows no clock and no socket,
 * and allocates nothing per message. */
#pragma once

#include "engine/sim-cost.h"
#include "engine/sim-ranks.h"
#include "schedule/schedule.h"

/**
 * sim_run - @ranks: when each rank starts and ends; NULL: all start at 0. Where one never comes,
 * @ret says INFINITY
 *
 * Return: 0; -ENOMEM; -EDEADLK with a sentence when messages remain that nothing
 * can release (a broken schedule); a cost's own error.
 */
int sim_run(const struct sched *s, const struct sim_cost *cost, const struct sim_ranks *ranks,
	    const struct sim_watch *watch, struct sim_result *ret, struct err *err);
