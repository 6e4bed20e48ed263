/* nbox shard: which GPU keeps which tables of embeddings. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/suggest.h"
#include "base/units.h"
#include "nbox/ask/configure.h"
#include "nbox/commands.h"
#include "nbox/doctor/paths.h"
#include "nbox/json/json-file.h"
#include "nbox/run/flags.h"
#include "nbox/shard/compare.h"

#define TASKS_MAX 64

struct request {
	struct config *config;
	const char *file, *json;
	struct shard_task tasks[TASKS_MAX];
	uint32_t n;
	struct shard_job job;
	enum sharder sharder; /* SHARDERS: all */
	double memory;
	bool is_verified;
	struct ask *ask;
};

static void request_deinit(struct request *q)
{
	for (uint32_t i = 0; i < q->n; i++)
		shard_task_deinit(&q->tasks[i]);
	ask_close(q->ask);
	config_free(q->config);
}

static void usage(FILE *to)
{
	fputs("usage: nbox shard --tables FILE --gpus N [--sharder NAME] [--verify] [OPTION of a cluster...]\n\n"
	      "Places tables of embeddings on GPUs by six rules, and predicts what an iteration takes with each plan: the\n"
	      "look-ups by the bytes that move, the all-to-alls by the plan's messages on the cluster, or where a model knows\n"
	      "no messages (--models) by its time for the busiest GPU, nothing from a trace. --verify plays each plan in the\n"
	      "emulator.\n\n",
	      to);
	run_help(COMMAND_SHARD, to, NULL);
	fputs("\n  nbox shard --tables tables.csv --gpus 16 --mem 40GB --preset dgx-h100 --verify\n",
	      to);
}

static int take_sharder(const char *name, enum sharder *ret, struct err *err)
{
	const char *near = suggest(name, sharder_names, SHARDERS);

	if (strcmp(name, "all") == 0) {
		*ret = SHARDERS;
		return 0;
	}
	for (*ret = SHARDER_NAIVE; *ret < SHARDERS; (*ret)++)
		if (strcmp(name, sharder_names[*ret]) == 0)
			return 0;
	return err_set(err, EINVAL,
		       "'%s' is none of all, naive, random, size, lookup, norm-lookup, "
		       "size-lookup%s%s%s",
		       name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int take_bytes(const char *value, double *ret, struct err *err)
{
	uint64_t bytes;
	int r = units_bytes(value, &bytes, err);

	if (r == 0)
		*ret = (double)bytes;
	return r;
}

static int take_count(const char *value, uint64_t least, uint64_t most, uint64_t *ret,
		      struct err *err)
{
	int r = units_count(value, ret, err);

	return r == 0 && (*ret < least || *ret > most)
		       ? err_set(err, EINVAL, "'%s': from %llu to %llu", value,
				 (unsigned long long)least, (unsigned long long)most)
		       : r;
}

static int take_value(struct request *q, const struct option_word *w, struct err *err)
{
	char model[PATH_MAX + 32];
	uint64_t n = 0;
	int r;

	switch ((unsigned int)w->id) {
	case FLAG_SHARD_GPUS:
		r = take_count(w->value, 2, SHARDER_GPUS_MAX, &n, err);
		q->job.n_gpus = (uint32_t)n;
		return r;
	case FLAG_SHARD_MEMORY:
		return take_bytes(w->value, &q->memory, err);
	case FLAG_SHARD_SHARDER:
		return take_sharder(w->value, &q->sharder, err);
	case FLAG_SHARD_BATCH:
		r = take_count(w->value, 1, UINT64_C(1) << 32, &n, err);
		q->job.batch = (double)n;
		return r;
	case FLAG_SHARD_DENSE:
		return units_time(w->value, &q->job.dense_ns, err);
	case FLAG_SHARD_DRAM:
		return units_bandwidth(w->value, &q->job.card.memory, err);
	case FLAG_SHARD_L2:
		return units_bandwidth(w->value, &q->job.card.l2, err);
	case FLAG_SHARD_L2_SIZE:
		return take_bytes(w->value, &q->job.card.l2_bytes, err);
	case FLAG_SHARD_MODELS:
	default:
		snprintf(model, sizeof(model), "fitted:file=%s", w->value);
		return config_set(q->config, CONFIG_MODEL, SOURCE_FLAG, model);
	}
}

static int take_option(struct request *q, const struct option_word *w, struct err *err)
{
	int r;

	if (w->id < CONFIG_OPTIONS)
		return config_take(q->config, w, err);
	switch ((unsigned int)w->id) {
	case FLAG_SHARD_TABLES:
		if (q->n == TASKS_MAX)
			return err_set(err, EINVAL, "more than %d files of tables", TASKS_MAX);
		q->tasks[q->n++] = (struct shard_task){.file = w->value};
		return 0;
	case FLAG_SHARD_JSON:
		q->json = w->value;
		return 0;
	case FLAG_CONFIG:
		q->file = w->value;
		return 0;
	case FLAG_SHARD_VERIFY:
		q->is_verified = true;
		return 0;
	default:
		r = take_value(q, w, err);
		return r < 0 ? err_prefix(err, r, "%s", w->name) : 0;
	}
}

static int take_words(struct request *q, int argc, char **argv, struct err *err)
{
	struct option_word w;
	int r = 0;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(COMMAND_SHARD, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			return err_set(err, EINVAL, "'%s': what is it? Tables come by --tables",
				       argv[i]);
		r = r == 0 ? take_option(q, &w, err) : r;
	}
	if (r == 0 && !q->n)
		r = err_set(err, EINVAL, "needs --tables FILE: a line E,D,L, then a line a table");
	if (r == 0 && !q->job.n_gpus)
		r = err_set(err, EINVAL, "needs --gpus N: how many keep tables");
	return r;
}

static int answer(struct request *q, struct err *err)
{
	bool is_text = !q->json || strcmp(q->json, "-") != 0;
	struct paths paths;
	int r = paths_find(&paths, PATHS_MODELS, err);

	for (uint32_t i = 0; i < q->n && r == 0; i++) {
		q->tasks[i].job = q->job;
		q->tasks[i].memory = q->memory;
		r = shard_task_play(&q->tasks[i], q->sharder, q->ask,
				    q->is_verified ? paths.models : NULL, err);
		if (r == 0 && is_text)
			shard_print(&q->tasks[i], stdout);
	}
	if (r == 0 && is_text && q->is_verified && q->sharder == SHARDERS)
		shard_print_picks(q->tasks, q->n, stdout);
	return r;
}

int cmd_shard(int argc, char **argv)
{
	CLEANUP(request_deinit)
	struct request q = {.sharder = SHARDERS,
			    .memory = INFINITY,
			    .job = {.batch = 4096, .card = lookup_a100}};
	struct err err = {""};
	int r = config_new(&q.config), code = 2;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return usage(stdout), 0;
	r = r < 0 ? r : take_words(&q, argc, argv, &err);
	r = r < 0 ? r : ask_configure_plain(q.config, q.file, q.job.n_gpus, &q.ask, &err);
	r = r < 0 ? r : answer(&q, &err);
	if (r == 0 && q.json) {
		code = 1;
		r = json_file_write(shard_json(q.tasks, q.n, q.config), q.json, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox shard: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? code : 0;
}
