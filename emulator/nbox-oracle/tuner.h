/* The plug-in, from the side of the program that has loaded it: NCCL opens the same file, and gets
 * the same copy. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "nbox-oracle/lines.h"
#include "oracle-plugin/oracle-plugin.h"

struct tuner {
	__typeof__(nbox_oracle_set_devices) *set_devices;
	__typeof__(nbox_oracle_tables) *tables;
	__typeof__(nbox_oracle_table) *table;
	__typeof__(nbox_oracle_stop_ops) *stop_ops;
	__typeof__(nbox_oracle_counts) *counts;
	uint64_t n_seen; /* tables that are known */
};

/* Ops end at their tables from now on. Return: 0; -ENOENT, -ENOSYS with the sentence. */
int tuner_open(struct tuner *ret, const char *file, struct err *err);
/* What NCCL has asked until now is none of the next op. */
void tuner_forget(struct tuner *t);
/* The table of the op that NCCL was called for, into bytes and costs of *ret; without costs where
 * NCCL tells its tuner none (2.21). Return: whether there is one. */
bool tuner_take(struct tuner *t, struct oracle_costs *ret);
