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
static int predict_busiest(struct ask *ask, const struct shard_job *job, struct shard_row *row,
			   struct err *err)
{
	uint64_t pair = (row->plan.skew.bytes + job->n_gpus - 2) / (job->n_gpus - 1);
	struct answer answer = {.ns = 0};
	int r = pair ? ask_op(ask, COLL_ALLTOALL, pair, 1, 0, &answer, err) : 0;

	if (r < 0)
		return r;
	row->alltoall_ns = answer.ns;
	return shard_plan_ns(job, &row->plan, answer.ns, &row->ns) < 0
		       ? err_set(err, ENOMEM, "out of memory")
		       : 0;
}

/* Each GPU goes on when it has what it receives, forward and of the gradients. */
static int predict_messages(struct ask *ask, const struct shard_job *job, struct shard_row *row,
			    struct err *err)
{
	const struct shard_plan *p = &row->plan;
	uint32_t n = job->n_gpus;
	CLEANUP(freep) uint64_t *back = malloc((size_t)n * n * sizeof(*back));
	CLEANUP(freep) double *at = malloc(n * sizeof(*at));
	struct answer answer;
	int r;

	if (!back || !at)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t from = 0; from < n; from++) {
		at[from] = p->gpus[from].forward_ns;
		for (uint32_t to = 0; to < n; to++)
			back[(size_t)to * n + from] = p->matrix[(size_t)from * n + to];
	}
	r = ask_matrix(ask, p->matrix, &answer, err);
	r = r < 0 ? r : ask_matrix_ends(ask, p->matrix, at, err);
	for (uint32_t g = 0; g < n; g++)
		at[g] += job->dense_ns;
	r = r < 0 ? r : ask_matrix_ends(ask, back, at, err);
	if (r < 0)
		return r;
	row->alltoall_ns = answer.ns;
	row->ns = 0;
	for (uint32_t g = 0; g < n; g++)
		row->ns = fmax(row->ns, at[g] + p->gpus[g].backward_ns);
	return 0;
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
	r = (ask_knows_messages(ask) ? predict_messages : predict_busiest)(ask, job, row, err);
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
