/* nbox report: what a record says, again: the summary, JSON, every op or point as CSV, a
 * page. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "base/plain.h"
#include "nbox/commands.h"
#include "nbox/export/forms.h"
#include "nbox/page/page.h"
#include "nbox/report/classes.h"
#include "nbox/report/csv.h"
#include "nbox/report/expect.h"
#include "nbox/report/live-run.h"
#include "nbox/report/load.h"
#include "nbox/report/recall.h"
#include "nbox/report/summary.h"

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox report [--csv | --points] [--json FILE] [--FORM FILE...] [--expect TEXT]... [RECORD]\n"
		"       nbox report --format html|svg|png|md [--out FILE] [RECORD...]\n\n"
		"RECORD is a record.nbox, the results directory that holds one, or its name (nbox list); without it, the newest run under\n" LIVE_RUN_TOP
		"/ counts. Prints the summary of the run; instead, --csv prints every op and --points every point of the real ranks' time;\n"
		"--json also writes the summary to FILE. --expect 'iteration_ms p95 < 700' says whether the run was so, and the exit code\n"
		"is 3 if not. Of iteration_ms and lateness_us: mean, min, p25, p50, p75, p95, p99, max; of a step's mean exposed_ms,\n"
		"injected_ms, modelled_ms, shared_ms, queued_ms, virtual_ms, wall_ms; steps, ops, early_gates, warnings; of nbox run exit_code.\n\n"
		"--format html is one page, without other files: figures, charts, a timeline, where each figure comes from. Of several runs it has\n"
		"curves of the iteration's time over the setting in which they differ; a plan's folder has the plan's (nbox plan). svg, png: the main picture. md: the text for a pull request.\n"
		"It goes to FILE, else to the standard output.\n\n");
	forms_help(to);
	csv_help(to);
	return code;
}

#define RUNS_MAX 256

struct args {
	const char *words[RUNS_MAX];
	size_t n;
	const char *json, *out;
	struct forms forms;
	enum page_format format;
	bool is_csv, is_points;
	const char *expect_texts[REPORT_EXPECTS_MAX];
	struct expect expects[REPORT_EXPECTS_MAX];
	size_t n_expects;
};

static const char *const format_names[] = {[PAGE_TEXT] = "text",
					   [PAGE_HTML] = "html",
					   [PAGE_SVG] = "svg",
					   [PAGE_PNG] = "png",
					   [PAGE_MD] = "md"};

/* Return: 0; -EINVAL with the sentence. */
static int take_format(struct args *a, const char *word, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(format_names); i++)
		if (strcmp(word, format_names[i]) == 0) {
			a->format = (enum page_format)i;
			return 0;
		}
	return err_set(err, EINVAL, "--format '%s': html, svg, png, md or text", word);
}

static bool is_export(const struct args *a)
{
	return a->is_csv || a->is_points || forms_any(&a->forms);
}

/* What does not go together. Return: 0; -EINVAL with the sentence. */
static int check(const struct args *a, struct err *err)
{
	if (a->is_csv && a->is_points)
		return err_set(err, EINVAL, "either --csv or --points: each is a table of its own");
	if (a->format == PAGE_TEXT && a->out)
		return err_set(err, EINVAL, "--out %s: of --format html, svg, png or md", a->out);
	if (a->format == PAGE_TEXT && a->n > 1)
		return err_set(
			err, EINVAL,
			"one run at a time: '%s' and '%s'; several with --format html, svg, png or md",
			a->words[0], a->words[1]);
	if (a->format != PAGE_TEXT && (is_export(a) || a->json))
		return err_set(err, EINVAL,
			       "--format %s: a form of its own, without --csv, --json or another",
			       format_names[a->format]);
	if (a->format != PAGE_TEXT && a->format != PAGE_MD && !a->out && isatty(STDOUT_FILENO))
		return err_set(err, EINVAL,
			       "--format %s is nothing for a terminal: where to? --out FILE",
			       format_names[a->format]);
	return 0;
}

static int take_expect(struct args *a, const char *text, struct err *err)
{
	int r;

	if (a->n_expects == REPORT_EXPECTS_MAX)
		return err_set(err, EINVAL, "more than %d expectations", REPORT_EXPECTS_MAX);
	r = expect_parse(text, &a->expects[a->n_expects], err);
	if (r < 0)
		return err_prefix(err, r, "--expect");
	a->expect_texts[a->n_expects++] = text;
	return 0;
}

static const char *expect_text(const void *ctx, size_t i)
{
	return ((const struct args *)ctx)->expect_texts[i];
}

/* Return: 0; 1 help was given; -EINVAL with the sentence. */
static int parse(int argc, char **argv, struct args *a, struct err *err)
{
	struct option_word w;
	int i = 1, r;

	while (i < argc) {
		r = option_take(COMMAND_REPORT, argc, argv, &i, &w, err);
		if (r < 0)
			return r;
		if (r == OPTION_NONE && a->n == RUNS_MAX)
			return err_set(err, EINVAL, "more than %d runs", RUNS_MAX);
		if (r == 0 && w.id == FLAG_HELP)
			return usage(stdout, 1);
		if (r == OPTION_NONE)
			a->words[a->n++] = argv[i++];
		else if (w.id == FLAG_EXPECT)
			r = take_expect(a, w.value, err);
		else if (w.id == FLAG_FORMAT)
			r = take_format(a, w.value, err);
		else if (w.id == FLAG_REPORT_OUT)
			a->out = w.value;
		else if (w.id == FLAG_CSV)
			a->is_csv = true;
		else if (w.id == FLAG_POINTS)
			a->is_points = true;
		else if (!forms_take(&a->forms, &w))
			a->json = w.value;
		if (r < 0)
			return r;
	}
	return check(a, err);
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

/* Return: 0; negative errno, perhaps with a sentence. */
static int print_summary(const struct loaded_run *run, const struct args *a, bool *ret_met,
			 struct err *err)
{
	struct report rep;
	char path[PATH_MAX + 32];
	int r = run_report(run, &rep);

	snprintf(path, sizeof(path), "%s/summary.json", run->dir);
	if (r == 0 && run->dir[0])
		report_recall(&rep, path);
	if (r == 0 && run->dir[0] && !rep.n_classes && !rep.is_empty)
		report_classes_of_folder(&rep, &run->rec, run->dir);
	if (r == 0)
		report_expect(&rep, a->expects, a->n_expects, expect_text, a, run->info.exit_code);
	*ret_met = r == 0 && report_is_met(&rep);
	if (r == 0 && !is_export(a)) {
		report_print(&rep, stdout);
		snprintf(path, sizeof(path), "%s", run->dir);
		if (run->dir[0] && !rep.is_empty)
			printf("   results        %s\n", plain_text(path));
	}
	return r == 0 && a->json ? report_write_json(&rep, -1, a->json, err) : r;
}

static int end(int r, int exit_code, const struct err *err)
{
	if (r < 0)
		fprintf(stderr, "nbox report: %s\n", err->text[0] ? err->text : strerror(-r));
	return r < 0 ? exit_code : 0;
}

/* A folder, or the name of a run or a plan. */
static bool is_there(const char *word)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), LIVE_RUN_TOP "/%s", word);
	return access(word, F_OK) == 0 || access(path, F_OK) == 0;
}

int cmd_report(int argc, char **argv)
{
	CLEANUP(loaded_run_deinit) struct loaded_run run = {0};
	struct args a = {.json = NULL};
	char newest[PATH_MAX];
	struct err err = {""};
	int r = parse(argc, argv, &a, &err), exit_code = 2;
	bool is_met = true;

	if (r == 1)
		return 0;
	if (r == 0 && !a.n) {
		r = find_newest(newest, &err);
		a.words[a.n++] = newest;
	}
	for (size_t i = 0; i < a.n && r == 0; i++)
		r = is_there(a.words[i]) ? 0 : runs_not_found(a.words[i], &err);
	if (r == 0 && a.format != PAGE_TEXT)
		return end(page_write(a.words, a.n, a.format, a.out ? a.out : "-", &err), 1, &err);
	if (r == 0)
		r = run_load(a.words[0], &run, &err);
	exit_code = r == 0 ? 1 : exit_code;
	if (r == 0 && is_export(&a) && run.info.is_running)
		fprintf(stderr, "nbox report: " REPORT_UNDER_WAY_TEXT "\n");
	if (r == 0 && a.is_csv)
		r = csv_print(&run.rec, stdout);
	if (r == 0 && a.is_points)
		csv_print_points(&run.rec, stdout);
	if (r == 0)
		r = forms_write(&a.forms, &run, &err);
	if (r == 0 && (!is_export(&a) || a.json || a.n_expects))
		r = print_summary(&run, &a, &is_met, &err);
	if (r == 0 && !is_met)
		return EXPECT_EXIT_CODE_UNMET;
	return end(r, exit_code, &err);
}
