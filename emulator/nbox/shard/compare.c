#include "nbox/shard/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/shard/verify.h"

#define FILE_BYTES_MAX (64u << 20)

void shard_task_deinit(struct shard_task *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		free(t->rows[i].gpu_of);
		shard_plan_deinit(&t->rows[i].plan);
	}
	free(t->tables);
}

/* An all-to-all takes as long as an even one in which all send what the busiest rank does. */
static int ask_alltoall(struct ask *ask, const struct shard_plan *p, uint32_t n_gpus,
			double *ret_ns, struct err *err)
{
	uint64_t pair = (p->skew.bytes + n_gpus - 2) / (n_gpus - 1);
	struct answer answer = {.ns = 0};
	int r = pair ? ask_op(ask, COLL_ALLTOALL, pair, 1, 0, &answer, err) : 0;

	if (r == 0)
		*ret_ns = answer.ns;
	return r;
}

static int play_row(struct shard_task *t, struct shard_row *row, struct ask *ask,
		    const char *models, struct err *err)
{
	const struct config *c = ask_config(ask);
	const struct shard_job *job = &t->job;
	int r;

	row->gpu_of = malloc(job->n_tables * sizeof(*row->gpu_of));
	r = row->gpu_of ? sharder_assign(row->sharder, job->tables, job->n_tables, job->n_gpus,
					 t->memory, c->seed, row->gpu_of, NULL, &row->full)
			: -ENOMEM;
	row->is_full = r == -ENOSPC;
	if (row->is_full)
		return 0;
	if (r == 0)
		r = shard_plan_make(job, row->gpu_of, &row->plan);
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	r = ask_alltoall(ask, &row->plan, job->n_gpus, &row->alltoall_ns, err);
	if (r == 0 && shard_plan_ns(job, &row->plan, row->alltoall_ns, &row->ns) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0 && models)
		r = verify_plan(c, models, job, &row->plan, &row->emulated_ns, err);
	return r;
}

/* Picks among those that fit. */
static void judge(struct shard_task *t)
{
	double predicted[SHARDERS], actual[SHARDERS];

	t->best = t->n;
	for (uint32_t i = 0; i < t->n; i++) {
		bool is_in = !t->rows[i].is_full;

		predicted[i] = is_in ? t->rows[i].ns : INFINITY;
		actual[i] = is_in ? t->rows[i].emulated_ns : INFINITY;
		if (is_in && (t->best == t->n || predicted[i] < predicted[t->best]))
			t->best = i;
	}
	if (t->is_emulated && t->best < t->n)
		t->pick = pick_of(predicted, actual, t->n);
}

int shard_task_play(struct shard_task *t, enum sharder sharder, struct ask *ask, const char *models,
		    struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	int r = file_read(t->file, FILE_BYTES_MAX, &text, &len, err);

	if (r == 0)
		r = tables_read(t->file, text, &t->tables, &t->job.n_tables, err);
	t->job.tables = t->tables;
	t->is_emulated = models != NULL;
	for (enum sharder s = SHARDER_NAIVE; s < SHARDERS && r == 0; s++) {
		if (sharder != SHARDERS && s != sharder)
			continue;
		t->rows[t->n] = (struct shard_row){.sharder = s};
		r = play_row(t, &t->rows[t->n++], ask, models, err);
	}
	if (r == 0)
		judge(t);
	return r;
}
