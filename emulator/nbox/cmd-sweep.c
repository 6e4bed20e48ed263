/* nbox sweep: a recorded run on many clusters. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/report/expect.h"
#include "nbox/run/results.h"
#include "nbox/sweep/launch.h"
#include "nbox/sweep/pool.h"
#include "nbox/sweep/write.h"

#define JOBS_MAX 4096

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox sweep RUN [OPTION VALUES]... [--list FILE] [--out DIR] [-j N] [--keep-records] [--json FILE]\n"
		"       nbox sweep RUN [OPTION VALUES]... --live\n"
		"       nbox sweep RUN [OPTION VALUES]... --on slurm|commands\n\n"
		"What the run RUN (a results directory, or its name) would have been in many settings, from its record (nbox retime). Options are\n"
		"those of nbox run. All combinations of their values are tried; what is not given is as it was in the run.\n\n"
		"  --nodes 2,8,32                              a list; a number without a unit has that of the last\n"
		"  --nodes 8..1024:x2                          a range by a factor: 8, 16, ... 1024\n"
		"  --inter-bandwidth 100..400Gbps:+100Gbps     a range by steps\n"
		"  --what-if add:op=allreduce,delay={0..10ms:1ms}  in braces where a value may have commas itself\n"
		"  --what-if '{none|slow:rank=3,compute=1.5}'  with a bar, commas belong to the values\n"
		"  --list FILE                                 each line is a setting: options, as on a command line\n\n"
		"Each point has a folder below DIR/points (else RUN-sweep/points), with summary.json and config.yaml, and with its record where\n"
		"--keep-records says so. A point that is complete is not done again. -j: points at a time, else one a processor. A point that\n"
		"fails is marked, the others go on, and the exit code is 1; 3 where one is not as --expect says. DIR has sweep.csv, sweep.json, sweep.html and sweep.svg; --json\n"
		"also writes FILE ('-': only that, to standard output).\n\n"
		"--live runs the job again for each point, one after the other, by the run's own command line.\n"
		"--on slurm writes a job array, and submits it; --on commands prints a command line for each point, for any launcher. DIR lies\n"
		"where all machines see it; afterwards the same line without --on shows the sweep. --point K: do only that point, from 0.\n");
	return code;
}

struct args {
	struct sweep sweep;
	struct recorded run; /* of sweep.run */
	struct values words; /* what makes the same sweep elsewhere */
	char run_dir[PATH_MAX], dir[PATH_MAX];
	const char *json, *out, *on;
	unsigned n_jobs;
	bool is_live;
	uint64_t point; /* UINT64_MAX: all */
};

static void args_deinit(struct args *a)
{
	grid_deinit(&a->sweep.grid);
	values_deinit(&a->words);
	if (a->sweep.run)
		recorded_deinit(&a->run);
}

static int take_number(const struct option_word *w, uint64_t max, uint64_t *ret, struct err *err)
{
	if (units_count(w->value, ret, NULL) < 0 || *ret > max)
		return err_set(err, EINVAL, "%s: '%s' is no number up to %llu", w->name, w->value,
			       (unsigned long long)max);
	return 0;
}

/* Return: 0; negative errno with the sentence. */
static int take(struct args *a, const struct option_word *w, struct err *err)
{
	uint64_t n;
	int r;

	switch ((int)w->id) {
	case CONFIG_OUT:
		a->out = w->value;
		return 0;
	case FLAG_JSON:
		a->json = w->value;
		return 0;
	case FLAG_SWEEP_JOBS:
		r = take_number(w, JOBS_MAX, &n, err);
		a->n_jobs = r == 0 ? (unsigned)n : 0;
		return r == 0 && n == 0 ? err_set(err, EINVAL, "-j 0: at least one") : r;
	case FLAG_SWEEP_ON:
		a->on = w->value;
		return strcmp(a->on, "slurm") == 0 || strcmp(a->on, "commands") == 0
			       ? 0
			       : err_set(err, EINVAL, "--on '%s': slurm or commands", a->on);
	case FLAG_SWEEP_POINT:
		return take_number(w, GRID_POINTS_MAX, &a->point, err);
	case FLAG_SWEEP_LIVE:
		a->is_live = true;
		break;
	case FLAG_SWEEP_KEEP:
		a->sweep.keeps_records = true;
		break;
	case FLAG_SWEEP_LIST:
		r = grid_take_file(&a->sweep.grid, w->value, err);
		if (r < 0)
			return r;
		break;
	default:
		r = grid_take(&a->sweep.grid, w, err);
		if (r < 0)
			return r;
	}
	CLEANUP(freep) char *word = NULL;

	if (asprintf(&word, "%s%s%s", w->name, w->value ? "=" : "", w->value ? w->value : "") < 0)
		return -ENOMEM;
	return values_add(&a->words, word);
}

static int check(struct args *a, struct err *err)
{
	if (!a->sweep.word)
		return err_set(err, EINVAL, "which run? nbox list has their names");
	if (a->is_live && a->n_jobs > 1)
		return err_set(
			err, EINVAL,
			"--live and -j %u: jobs that share a machine would slow each other; they run one after the other",
			a->n_jobs);
	if (a->on && a->point != UINT64_MAX)
		return err_set(err, EINVAL, "either --on %s or --point", a->on);
	if (a->sweep.grid.n_axes == 0)
		return err_set(
			err, EINVAL,
			"over what? An option with several values, such as --nodes 8..1024:x2; see nbox sweep --help");
	if (a->point != UINT64_MAX && a->point >= a->sweep.grid.n_points)
		return err_set(err, EINVAL, "--point %llu: there are %zu, from 0",
			       (unsigned long long)a->point, a->sweep.grid.n_points);
	return 0;
}

/* Return: 0; 1: help was given; negative errno with the sentence. */
static int parse(int argc, char **argv, struct args *a, struct err *err)
{
	struct option_word w;
	int r = 0;

	for (int i = 1; i < argc && r == 0;) {
		r = option_take(COMMAND_SWEEP, argc, argv, &i, &w, err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage(stdout, 1);
		if (r == 0) {
			r = take(a, &w, err);
		} else if (r == OPTION_NONE) {
			if (a->sweep.word)
				return err_set(err, EINVAL, "one run at a time: '%s' and '%s'",
					       a->sweep.word, argv[i]);
			a->sweep.word = argv[i++];
			r = values_add(&a->words, a->sweep.word);
		}
	}
	return r == 0 ? check(a, err) : r;
}

/* Loads the run, and sees that one point at least is right. */
static int load(struct args *a, struct err *err)
{
	struct sweep *s = &a->sweep;
	struct err first = {""};
	struct values words = {.list = NULL};
	int r = recorded_load(s->word, &a->run, err);

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

/* The sweep's folder: new, empty, or of another sweep of the same run. */
static int prepare(const struct args *a, int argc, char **argv, struct err *err)
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
	snprintf(begin, sizeof(begin), "sweep\n%s\n", a->sweep.word);
	if (r == 0 && strncmp(text, begin, strlen(begin)) != 0)
		return err_set(
			err, EEXIST,
			"%s has results of another command or of another run; choose another --out",
			a->dir);
	if (r < 0)
		r = results_open(&to, a->dir, err);
	if (r == 0 && mkdir(results_path(&to, "points", path), 0777) < 0 && errno != EEXIST)
		r = err_set(err, errno, "%s: %s", path, strerror(errno));
	if (r == 0 && a->point == UINT64_MAX) {
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

/* Return: an exit code; negative errno with the sentence. */
static int show(const struct args *a, struct err *err)
{
	struct sweep_results results;
	int r = sweep_results_read(&a->sweep, &results), failed;

	if (r < 0)
		return r;
	r = sweep_write(&results, err);
	if (r == 0 && (!a->json || strcmp(a->json, "-") != 0))
		sweep_print(&results, stdout);
	if (r == 0 && a->json)
		r = sweep_write_json(&results, a->json, err);
	failed = results.n_failed ? 1 : results.n_unmet ? EXPECT_EXIT_CODE_UNMET : 0;
	sweep_results_deinit(&results);
	return r < 0 ? r : failed;
}

/* Return: as show(). */
static int sweep(struct args *a, struct err *err)
{
	struct point_result done;
	int r;

	if (a->on) {
		r = values_add(&a->words, "--out");
		r = r == 0 ? values_add(&a->words, a->dir) : r;
		if (r < 0)
			return r;
		return strcmp(a->on, "slurm") == 0 ? launch_slurm(&a->sweep, &a->words, err)
						   : launch_commands(&a->sweep, &a->words, err);
	}
	if (a->point != UINT64_MAX) {
		r = point_read(&a->sweep, a->point, &done);
		return r < 0 || done.state == POINT_DONE ? r : point_play(&a->sweep, a->point, err);
	}
	r = pool_play(&a->sweep, a->is_live ? 1 : a->n_jobs ? a->n_jobs : processors(), err);
	return r < 0 ? r : show(a, err);
}

int cmd_sweep(int argc, char **argv)
{
	CLEANUP(args_deinit) struct args a = {.point = UINT64_MAX};
	struct err err = {""};
	int r = parse(argc, argv, &a, &err), exit_code = 2;

	if (r == 1)
		return 0;
	if (r == 0)
		r = load(&a, &err);
	if (r == 0) {
		exit_code = 1;
		r = prepare(&a, argc, argv, &err);
	}
	if (r == 0)
		r = sweep(&a, &err);
	if (r < 0)
		fprintf(stderr, "nbox sweep: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? exit_code : r;
}
