/* nbox report: what a record says, again: the summary, JSON, or every op or point as
 * CSV. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "base/plain.h"
#include "nbox/commands.h"
#include "nbox/export/trace.h"
#include "nbox/report/csv.h"
#include "nbox/report/live-run.h"
#include "nbox/report/load.h"
#include "nbox/report/recall.h"
#include "nbox/report/summary.h"

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox report [--csv | --points | --trace FILE] [--json FILE] [RECORD]\n\n"
		"RECORD is a record.nbox, the results directory that holds one, or its name (nbox list); without it, the newest run under\n" LIVE_RUN_TOP
		"/ counts. Prints the summary of the run; instead, --csv prints every op and --points every point of the real ranks' time;\n"
		"--json also writes the summary to FILE.\n\n"
		"--trace writes the timelines of the real ranks, in virtual time, for ui.perfetto.dev, chrome://tracing and tools of PyTorch's\n"
		"profiler: FILE.json or FILE.json.gz with all ranks, or, for tools that want one rank a file, FOLDER/.\n\n");
	csv_help(to);
	return code;
}

struct args {
	const char *word, *json, *trace;
	bool is_csv, is_points;
};

/* Return: 0; 1 help was given; -EINVAL with the sentence. */
static int parse(int argc, char **argv, struct args *a, struct err *err)
{
	struct option_word w;
	int i = 1, r;

	while (i < argc) {
		r = option_take(COMMAND_REPORT, argc, argv, &i, &w, err);
		if (r < 0)
			return r;
		if (r == OPTION_NONE && a->word)
			return err_set(err, EINVAL, "one run at a time: '%s' and '%s'", a->word,
				       argv[i]);
		if (r == 0 && w.id == FLAG_HELP)
			return usage(stdout, 1);
		if (r == 0 && w.id == FLAG_JSON && a->json)
			return err_set(err, EINVAL, "--json is given a second time");
		if (r == OPTION_NONE)
			a->word = argv[i++];
		else if (w.id == FLAG_CSV)
			a->is_csv = true;
		else if (w.id == FLAG_POINTS)
			a->is_points = true;
		else if (w.id == FLAG_TRACE)
			a->trace = w.value;
		else
			a->json = w.value;
	}
	return a->is_csv + a->is_points + (a->trace != NULL) > 1
		       ? err_set(err, EINVAL,
				 "one of --csv, --points and --trace at a time: each is printed instead of the summary")
		       : 0;
}

/* The newest run here. Return: 0, @ret has its directory; negative errno with the sentence. */
static int find_newest(char ret[PATH_MAX], struct err *err)
{
	struct live_runs runs;
	char text[PATH_MAX];
	int r = live_runs_find(LIVE_RUN_TOP, "record.nbox", &runs);

	if (r < 0 || runs.n == 0)
		return err_set(err, r < 0 ? -r : ENOENT,
			       "which run? %s" LIVE_RUN_TOP
			       "/ here%s%s; name its results directory",
			       r < 0 ? "" : "there is none under ", r < 0 ? ": " : "",
			       r < 0 ? strerror(-r) : "");
	strcpy(ret, runs.dirs[0]);
	strcpy(text, ret);
	fprintf(stderr, "nbox report: the newest run: %s\n", plain_text(text));
	return 0;
}

static bool is_export(const struct args *a)
{
	return a->is_csv || a->is_points || a->trace;
}

/* Return: 0; negative errno, perhaps with a sentence. */
static int print_summary(const struct loaded_run *run, const struct args *a, struct err *err)
{
	struct report rep;
	char path[PATH_MAX + 32];
	int r = run_report(run, &rep);

	snprintf(path, sizeof(path), "%s/summary.json", run->dir);
	if (r == 0 && run->dir[0])
		report_recall(&rep, path);
	if (r == 0 && !is_export(a)) {
		report_print(&rep, stdout);
		snprintf(path, sizeof(path), "%s", run->dir);
		if (run->dir[0] && !rep.is_empty)
			printf("   results        %s\n", plain_text(path));
	}
	return r == 0 && a->json ? report_write_json(&rep, -1, a->json, err) : r;
}

int cmd_report(int argc, char **argv)
{
	CLEANUP(loaded_run_deinit) struct loaded_run run = {0};
	struct args a = {.word = NULL};
	char newest[PATH_MAX];
	struct err err = {""};
	int r = parse(argc, argv, &a, &err), exit_code = 2;

	if (r == 1)
		return 0;
	if (r == 0 && !a.word) {
		r = find_newest(newest, &err);
		a.word = newest;
	}
	if (r == 0) {
		exit_code = 1;
		r = run_load(a.word, &run, &err);
	}
	if (r == 0 && is_export(&a) && run.info.is_running)
		fprintf(stderr, "nbox report: " REPORT_UNDER_WAY_TEXT "\n");
	if (r == 0 && a.is_csv)
		r = csv_print(&run.rec, stdout);
	if (r == 0 && a.is_points)
		csv_print_points(&run.rec, stdout);
	if (r == 0 && a.trace)
		r = trace_write(&run.rec, a.trace, &err);
	if (r == 0 && (!is_export(&a) || a.json))
		r = print_summary(&run, &a, &err);
	if (r < 0)
		fprintf(stderr, "nbox report: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? exit_code : 0;
}
