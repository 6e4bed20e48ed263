/* See command.h. */
#include "nbox/sweep/command.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "nbox/run/results.h"
#include "nbox/sweep/launch.h"
#include "nbox/sweep/pool.h"

#define JOBS_MAX 4096

void sweep_command_deinit(struct sweep_command *a)
{
	grid_deinit(&a->sweep.grid);
	values_deinit(&a->words);
	values_deinit(&a->with);
	values_deinit(&a->sweep.beyond);
	if (a->sweep.run)
		recorded_deinit(&a->run);
}

/* The run, as the user names it. Return: 0; -EINVAL with the sentence; -ENOMEM. */
static int take_run(struct sweep_command *a, const char *word, struct err *err)
{
	if (a->sweep.word)
		return err_set(err, EINVAL, "one run at a time: '%s' and '%s'", a->sweep.word,
			       word);
	a->sweep.word = word;
	return values_add(&a->words, word);
}

int sweep_command_take(struct sweep_command *a, const struct option_word *w, struct err *err)
{
	CLEANUP(freep) char *word = NULL;
	uint64_t n;
	int r = 0;

	switch ((int)w->id) {
	case CONFIG_OUT:
		a->out = w->value;
		return 0;
	case FLAG_JSON:
		a->json = w->value;
		return 0;
	case FLAG_SWEEP_JOBS:
		if (units_count(w->value, &n, NULL) < 0 || n == 0 || n > JOBS_MAX)
			return err_set(err, EINVAL, "-j: '%s' is no number from 1 to %d", w->value,
				       JOBS_MAX);
		a->n_jobs = (unsigned)n;
		return 0;
	case FLAG_SWEEP_ON:
		a->on = w->value;
		return strcmp(a->on, "slurm") == 0 || strcmp(a->on, "commands") == 0
			       ? 0
			       : err_set(err, EINVAL, "--on '%s': slurm or commands", a->on);
	case FLAG_SWEEP_POINT:
		a->has_point = true;
		return units_count(w->value, &a->point, NULL) == 0
			       ? 0
			       : err_set(err, EINVAL, "--point: '%s' is no number", w->value);
	case FLAG_SWEEP_LIVE:
		a->is_live = true;
		break;
	case FLAG_SWEEP_KEEP:
		a->sweep.keeps_records = true;
		break;
	case CONFIG_WITH:
		r = values_add(&a->with, w->value);
		break;
	case FLAG_COUNTS:
		r = declared_parse(w->value, &a->declared, err);
		if (r < 0)
			return err_prefix(err, r, "%s", w->name);
		break;
	case FLAG_SWEEP_LIST:
		r = grid_take_file(&a->sweep.grid, w->value, err);
		break;
	default:
		r = grid_take(&a->sweep.grid, w, err);
	}
	if (r < 0)
		return r;
	if (asprintf(&word, "%s%s%s", w->name, w->value ? "=" : "", w->value ? w->value : "") < 0)
		return -ENOMEM;
	if (w->id == CONFIG_WITH || w->id == FLAG_COUNTS)
		r = values_add(&a->sweep.beyond, word);
	return r == 0 ? values_add(&a->words, word) : r;
}

int sweep_command_parse(struct sweep_command *a, enum command command, int argc, char **argv,
			int (*take)(void *ctx, const struct option_word *w, struct err *err),
			void *ctx, struct err *err)
{
	struct option_word w;
	int r = 0;

	a->sweep.command = command == COMMAND_PLAN ? "plan" : "sweep";
	for (int i = 1; i < argc && r == 0;) {
		r = option_take(command, argc, argv, &i, &w, err);
		if (r == 0 && w.id == FLAG_HELP)
			return 1;
		if (r == 0)
			r = take(ctx, &w, err);
		else if (r == OPTION_NONE)
			r = take_run(a, argv[i++], err);
	}
	return r;
}

int sweep_command_check(const struct sweep_command *a, struct err *err)
{
	if (!a->sweep.word)
		return err_set(err, EINVAL, "which run? nbox list has their names");
	if (a->is_live && a->n_jobs > 1)
		return err_set(
			err, EINVAL,
			"--live and -j %u: jobs that share a machine would slow each other; they run one after the other",
			a->n_jobs);
	if (a->is_live && a->sweep.beyond.n)
		return err_set(err, EINVAL, "--live and %s: a run has its own counts",
			       a->sweep.beyond.list[0]);
	if (a->sweep.grid.n_axes == 0)
		return err_set(
			err, EINVAL,
			"over what? An option with several values, such as --nodes 8..1024:x2; see nbox sweep --help");
	if (a->on && a->has_point)
		return err_set(err, EINVAL, "either --on %s or --point", a->on);
	if (a->has_point && a->point >= a->sweep.grid.n_points)
		return err_set(err, EINVAL, "--point %llu: there are %zu, from 0",
			       (unsigned long long)a->point, a->sweep.grid.n_points);
	return 0;
}

static int load(struct sweep_command *a, struct err *err)
{
	CLEANUP(freep) const char **runs = calloc(a->with.n + 1, sizeof(*runs));
	int r;

	if (!runs)
		return -ENOMEM;
	runs[0] = a->sweep.word;
	for (size_t i = 0; i < a->with.n; i++)
		runs[i + 1] = a->with.list[i];
	r = recorded_load_all(runs, a->with.n + 1, &a->run, err);
	a->run.declared = a->declared;
	return r;
}

int sweep_command_load(struct sweep_command *a, struct err *err)
{
	struct sweep *s = &a->sweep;
	struct err first = {""};
	struct values words = {.list = NULL};
	int r = load(a, err);

	if (r < 0)
		return r;
	s->run = &a->run;
	snprintf(a->run_dir, sizeof(a->run_dir), "%s", a->run.run.dir);
	for (size_t n = strlen(a->run_dir); n > 1 && a->run_dir[n - 1] == '/'; n--)
		a->run_dir[n - 1] = '\0';
	s->run_dir = a->run_dir;
	if (a->out)
		snprintf(a->dir, sizeof(a->dir), "%s", a->out);
	else
		snprintf(a->dir, sizeof(a->dir), "%.*s-sweep%s", PATH_MAX - 32, a->run_dir,
			 a->is_live ? "-live" : "");
	s->dir = a->dir;
	for (size_t i = 0; i < s->grid.n_points; i++) {
		struct config *c;

		r = point_config(s, i, &c, i ? NULL : &first);
		if (r == 0) {
			config_free(c);
			break;
		}
	}
	if (r < 0) {
		*err = first;
		return r;
	}
	if (a->is_live) {
		recorded_deinit(&a->run);
		s->run = NULL;
		r = point_command(s, 0, &words, err);
		values_deinit(&words);
	}
	return r;
}

int sweep_command_prepare(struct sweep_command *a, int argc, char **argv, struct err *err)
{
	struct results to;
	char path[PATH_MAX], begin[PATH_MAX + 16];
	CLEANUP(freep) char *text = NULL;
	size_t n;
	int r;

	if (strlen(a->dir) > PATH_MAX - 2 * GRID_LABEL_MAX)
		return err_set(err, ENAMETOOLONG, "--out: the name is too long");
	snprintf(to.dir, sizeof(to.dir), "%s", a->dir);
	r = file_read(results_path(&to, "command.txt", path), 1 << 20, &text, &n, NULL);
	snprintf(begin, sizeof(begin), "\n%s\n", a->sweep.word); /* behind "sweep" or "plan" */
	if (r == 0 && ((strncmp(text, "sweep", 5) != 0 && strncmp(text, "plan", 4) != 0) ||
		       strncmp(strchrnul(text, '\n'), begin, strlen(begin)) != 0))
		return err_set(
			err, EEXIST,
			"%s has results of another command or of another run; choose another --out",
			a->dir);
	if (r < 0)
		r = results_open(&to, a->dir, err);
	if (r == 0 && mkdir(results_path(&to, "points", path), 0777) < 0 && errno != EEXIST)
		r = err_set(err, errno, "%s: %s", path, strerror(errno));
	if (r == 0 && !a->has_point) {
		CLEANUP(freep) char **words = calloc((size_t)argc + 1, sizeof(*words));

		if (!words)
			return -ENOMEM;
		words[0] = argv[0]; /* the run first, wherever it stood */
		words[1] = (char *)(uintptr_t)a->sweep.word;
		n = 2;
		for (int i = 1; i < argc; i++)
			if (argv[i] != a->sweep.word)
				words[n++] = argv[i];
		r = results_describe(&to, (int)n, words, NULL, err);
	}
	return r;
}

static unsigned processors(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return n > 0 ? (unsigned)n : 1;
}

int sweep_command_play(struct sweep_command *a, struct err *err)
{
	const struct sweep *s = &a->sweep;
	struct point_result done;
	int r;

	if (a->on) {
		r = values_add(&a->words, "--out");
		r = r == 0 ? values_add(&a->words, s->dir) : r;
		if (r == 0)
			r = strcmp(a->on, "slurm") == 0 ? launch_slurm(s, &a->words, err)
							: launch_commands(s, &a->words, err);
		return r < 0 ? r : 1;
	}
	if (a->has_point) {
		r = point_read(s, a->point, &done);
		r = r == 0 && done.state != POINT_DONE ? point_play(s, a->point, err) : r;
		return r < 0 ? r : 1;
	}
	return pool_play(s, a->is_live ? 1 : a->n_jobs ? a->n_jobs : processors(), err);
}
