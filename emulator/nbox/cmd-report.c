/* nbox report: what a record says, again: the summary, JSON, or every op as CSV. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/options.h"
#include "base/plain.h"
#include "nbox/commands.h"
#include "nbox/report/csv.h"
#include "nbox/report/live-run.h"
#include "nbox/report/measure.h"
#include "nbox/report/outcome.h"
#include "nbox/report/recall.h"
#include "nbox/report/runs.h"
#include "nbox/report/summary.h"

/* Of a record that a run has left; NULL: of one that was moved away and renamed, nothing is known.
 */
static const char *folder_of(const char *record, char *buf, size_t size)
{
	const char *slash = strrchr(record, '/'), *name = slash ? slash + 1 : record;

	if (strcmp(name, "record.nbox") != 0 || (size_t)(name - record) >= size)
		return NULL;
	snprintf(buf, size, "%.*s", (int)(name - record), record);
	return buf[0] ? buf : ".";
}

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox report [--csv] [--json FILE] [RECORD]\n\n"
		"RECORD is a record.nbox, the results directory that holds one, or its name (nbox list); without it, the newest run under\n" LIVE_RUN_TOP
		"/ counts. Prints the summary of the run; --csv prints every op instead; --json also writes the summary to FILE.\n\n"
		"The columns of --csv, a row an op and real rank:\n");
	csv_help(to);
	return code;
}

int cmd_report(int argc, char **argv)
{
	const char *word, *path = NULL, *json = NULL, *dir = NULL;
	struct record rec = {0};
	struct live_runs runs;
	struct run_info info = {.exit_code = -1};
	struct report rep;
	struct err err = {""};
	char found[PATH_MAX], in_dir[PATH_MAX + 16], beside[4096] = "", of_file[PATH_MAX];
	struct option_word w;
	struct stat st;
	int csv = 0, r;

	for (int i = 1; i < argc;) {
		r = option_take(COMMAND_REPORT, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage(stdout, 0);
		if (r == 0 && w.id == FLAG_CSV)
			csv = 1;
		else if (r == 0 && json)
			err_set(&err, EINVAL, "--json is given a second time");
		else if (r == 0)
			json = w.value;
		else if (r == OPTION_NONE && path)
			err_set(&err, EINVAL, "one run at a time: '%s' and '%s'", path, argv[i]);
		else if (r == OPTION_NONE)
			path = argv[i++];
		if (err.text[0]) {
			fprintf(stderr, "nbox report: %s\n", err.text);
			return 2;
		}
	}
	if (!path) {
		r = live_runs_find(LIVE_RUN_TOP, "record.nbox", &runs);
		if (r < 0 || runs.n == 0) {
			fprintf(stderr,
				"nbox report: which run? %s" LIVE_RUN_TOP
				"/ here%s%s; name its results directory\n",
				r < 0 ? "" : "there is none under ", r < 0 ? ": " : "",
				r < 0 ? strerror(-r) : "");
			return 2;
		}
		path = runs.dirs[0];
		snprintf(in_dir, sizeof(in_dir), "%s", path);
		fprintf(stderr, "nbox report: the newest run: %s\n", plain_text(in_dir));
	}
	word = path;
	path = runs_find(path, found);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		snprintf(in_dir, sizeof(in_dir), "%s/record.nbox", path);
		dir = path;
		path = in_dir;
	} else {
		dir = folder_of(path, of_file, sizeof(of_file));
	}
	if (dir)
		snprintf(beside, sizeof(beside), "%.*s/summary.json", (int)sizeof(beside) - 32,
			 dir);
	r = record_load(path, &rec, &err);
	if (r == -ENOENT)
		r = runs_not_found(word, &err);
	if (r == 0 && dir)
		r = runs_read(dir, &info, &err);
	if (r == 0 && csv && info.is_running)
		fprintf(stderr, "nbox report: " REPORT_UNDER_WAY_TEXT "\n");
	if (r == 0 && csv)
		r = csv_print(&rec, stdout);
	if (r == 0 && (!csv || json)) {
		r = report_make(&rec, &rep);
		if (r == 0)
			report_outcome(&rep, info.is_running ? REPORT_UNDER_WAY : info.exit_code,
				       dir);
		if (r == 0 && beside[0])
			report_recall(&rep, beside);
		if (r == 0 && !csv)
			report_print(&rep, stdout);
		snprintf(beside, sizeof(beside), "%.*s", (int)sizeof(beside) - 32, dir ? dir : "");
		if (r == 0 && !csv && dir && !rep.is_empty)
			printf("   results        %s\n", plain_text(beside));
		if (r == 0 && json)
			r = report_write_json(&rep, -1, json, &err);
	}
	record_deinit(&rec);
	if (r < 0)
		fprintf(stderr, "nbox report: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? 1 : 0;
}
