/* A plan of sharding in the emulator: an iteration of it as if it had been recorded, played on the
 * cluster of a configuration. The all-to-alls are what PyTorch makes of them, sends and receives,
 * with the plan's own matrix; ranks come when they come. */
#pragma once

#include "config/config.h"
#include "shard/plan.h"

/* @c: finished; its world is the plan's GPUs, all of them real. @models: the folder of the
 * plug-ins. *ret_ns: until the last rank is through. Return: 0; negative errno with the sentence.
 */
int verify_plan(const struct config *c, const char *models, const struct shard_job *job,
		const struct shard_plan *p, double *ret_ns, struct err *err);
