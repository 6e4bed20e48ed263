/* nbox overheads: what hosts do around the kernels that they launch. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/trace/load.h"
#include "predict/overheads.h"

#define LINES_MAX 24

struct request {
	const char *path, *json;
	struct overhead_profiler profiler;
};

static int usage(void)
{
	fputs("usage: nbox overheads TRACE [OPTION...]\n\n"
	      "The five overheads of Lin et al., by operator, of traces of PyTorch's profiler: T1 between two operators, T2 until\n"
	      "the first launch, T3 behind the last one, T4 the launch, T5 between two launches, or all of an operator that\n"
	      "launches nothing. Mean, deviation and count, without outliers and without what the profiler costs itself. TRACE:\n"
	      "one file, or a folder with one a rank. One machine's overheads hold for all its jobs: nbox predict --overheads.\n\n",
	      stdout);
	option_help(COMMAND_OVERHEADS, 24, stdout);
	return 0;
}

static int take(struct request *q, const struct option_word *w, struct err *err)
{
	int r = 0;

	if (w->id == FLAG_OVERHEADS_JSON)
		q->json = w->value;
	else if (w->id == FLAG_PROFILER_EVENT)
		r = units_time(w->value, &q->profiler.host_ns, err);
	else
		r = units_time(w->value, &q->profiler.launch_ns, err);
	return r < 0 ? err_prefix(err, r, "%s", w->name) : 0;
}

static void print_line(const struct overhead *of, const char *name, FILE *to)
{
	for (int k = 0; k < OVERHEADS; k++) {
		if (of[k].n)
			fprintf(to, "%8.2f +-%7.2f", of[k].mean_ns / 1e3, of[k].std_ns / 1e3);
		else
			fprintf(to, "%18s", "-");
	}
	fprintf(to, "  %.60s\n", name);
}

static uint64_t count_of(const struct overhead_name *n)
{
	uint64_t sum = 0;

	for (int k = 0; k < OVERHEADS; k++)
		sum += n->of[k].n;
	return sum;
}

static int by_count(const void *a, const void *b)
{
	const struct overhead_name *const *x = a, *const *y = b;
	uint64_t m = count_of(*x), n = count_of(*y);

	return m != n ? (m > n ? -1 : 1) : strcmp((*x)->name, (*y)->name);
}

/* All together, then the names that are met most. */
static int print(const struct overheads *o, FILE *to)
{
	CLEANUP(freep)
	const struct overhead_name **names = malloc((o->n + 1) * sizeof(*names));

	if (!names)
		return -ENOMEM;
	fprintf(to, "%18s%18s%18s%18s%18s  us, mean and deviation\n", "T1", "T2", "T3", "T4", "T5");
	print_line(o->all, "all", to);
	for (uint32_t i = 0; i < o->n; i++)
		names[i] = &o->names[i];
	qsort(names, o->n, sizeof(*names), by_count);
	for (uint32_t i = 0; i < o->n && i < LINES_MAX; i++)
		print_line(names[i]->of, names[i]->name, to);
	if (o->n > LINES_MAX)
		fprintf(to, "... and %u names more: --json has them\n", o->n - LINES_MAX);
	return 0;
}

/* @ret_code: what nbox ends with where this is not 0. */
static int answer(const struct request *q, int *ret_code, struct err *err)
{
	struct overheads o = {.n = 0};
	struct trace t = {.n_ops = 0};
	FILE *to = NULL;
	int r = trace_load(&q->path, 1, &t, err), bad;

	if (r == 0 && overheads_find(&t, &q->profiler, &o) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0 && !o.n)
		r = err_set(
			err, EINVAL,
			"%s: no operator of a host is in it: PyTorch's profiler writes them with "
			"ProfilerActivity.CPU",
			q->path);
	if (r == 0 && (!q->json || strcmp(q->json, "-") != 0) && print(&o, stdout) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	*ret_code = r == 0 ? 1 : 2;
	if (r == 0 && q->json)
		r = file_create(q->json, &to, err);
	if (r == 0 && q->json) {
		bad = overheads_write(&o, to);
		r = file_finish(to, q->json, err);
		if (r == 0 && bad < 0)
			r = err_set(err, ENOMEM, "out of memory");
	}
	overheads_deinit(&o);
	trace_deinit(&t);
	return r;
}

int cmd_overheads(int argc, char **argv)
{
	struct request q = {.profiler = overhead_profiler_paper};
	struct option_word w;
	struct err err = {""};
	int r = 0, code = 2;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(COMMAND_OVERHEADS, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage();
		if (r == OPTION_NONE) {
			r = q.path ? err_set(&err, EINVAL,
					     "'%s' is one word too many: name the folder of all "
					     "traces",
					     argv[i])
				   : 0;
			q.path = argv[i++];
		} else if (r == 0) {
			r = take(&q, &w, &err);
		}
	}
	if (r == 0 && !q.path)
		r = err_set(
			&err, EINVAL,
			"of which trace? One of PyTorch's profiler, or a folder with one a rank");
	r = r < 0 ? r : answer(&q, &code, &err);
	if (r < 0)
		fprintf(stderr, "nbox overheads: %s\n", err.text);
	return r < 0 ? code : 0;
}
