/* The sharders side by side, for one file of tables. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nbox/ask/ask.h"
#include "shard/pick.h"
#include "shard/plan.h"
#include "shard/sharder.h"

struct shard_row {
	enum sharder sharder;
	uint32_t full; /* the table that had no room; the rest says nothing then */
	bool is_full;
	uint32_t *gpu_of; /* owned */
	struct shard_plan plan;
	double alltoall_ns, ns; /* predicted: the all-to-all forward, alone; the iteration */
	double emulated_ns;     /* where it was asked for */
};

struct shard_task {
	const char *file;           /* borrowed */
	struct shard_table *tables; /* owned */
	struct shard_job job;
	double memory; /* bytes of a GPU */
	struct shard_row rows[SHARDERS];
	uint32_t n; /* rows */
	bool is_emulated;
	struct pick pick; /* row numbers of those that fit; where it is emulated */
	uint32_t best;    /* the row that is predicted to be fastest; n: none fits */
};

/* Reads @t's file and predicts: @sharder, SHARDERS: all. @models: the folder of the plug-ins, to
 * play each plan in the emulator, too; NULL: not wanted. The rest of @t is the caller's; it is
 * shard_task_deinit()'s, also after an error. Return: 0; negative errno with the sentence. */
int shard_task_play(struct shard_task *t, enum sharder sharder, struct ask *ask, const char *models,
		    struct err *err);
void shard_task_deinit(struct shard_task *t);

void shard_print(const struct shard_task *t, FILE *to);
/* The picks of @n tasks: how many were good, and how far off the predictions are. */
void shard_print_picks(const struct shard_task *tasks, uint32_t n, FILE *to);
/* NULL: no memory. */
json_t *shard_json(const struct shard_task *tasks, uint32_t n, const struct config *c);
