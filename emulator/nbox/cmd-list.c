/* nbox list: the runs that have left results below nbox-out/. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"
#include "nbox/report/live-run.h"
#include "nbox/report/runs.h"
#include "nbox/report/ways.h"

static int usage(void)
{
	fputs("usage: nbox list [--json] [DIR]\n\n"
	      "The runs that have left results below DIR (" LIVE_RUN_TOP
	      "), the oldest first: name, start, ranks (nodes x ranks of a node),\n"
	      "steps found in its ops and the median of their times, exit code of the job, model "
	      "and what-ifs (\"nccl full\": with NCCL's own messages), command.\n"
	      "Of a job that nbox run did not start the exit code is not known: \"failed?\" says that one "
	      "of its workers failed or vanished.\n"
	      "Other commands take a name where they take a results directory: nbox report NAME, "
	      "nbox compare NAME NAME.\n",
	      stdout);
	return 0;
}

static char *when(const struct run_info *r, char *buf, size_t size)
{
	time_t at = (time_t)(r->header.start_unix_ns / 1000000000u);
	struct tm tm;

	if (!localtime_r(&at, &tm) || !strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buf, size, "-");
	return buf;
}

static void print_exit(const struct run_info *r, char *buf, size_t size)
{
	if (r->is_running)
		snprintf(buf, size, "runs");
	else if (r->exit_code < 0)
		snprintf(buf, size, r->has_failed ? "failed?" : "-");
	else
		snprintf(buf, size, "%d", r->exit_code);
}

/* Characters of valid UTF-8; a terminal gives each a column, but for those that are wide. */
static int n_characters(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static int pad(int width, const char *text)
{
	int n = n_characters(text);

	return n < width ? width - n : 0;
}

#define MODEL_MAX (sizeof(((struct record_header *)NULL)->model) + 16)

/* Where NCCL's own messages ran, that stands behind the model. Return: @buf. */
static char *model_text(const struct run_info *r, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s", r->header.model,
		 report_is_full(&r->header) ? "; nccl full" : "");
	return buf;
}

static void print_table(const struct run_info *runs, size_t n)
{
	int name = 4, model = 5;

	for (size_t i = 0; i < n; i++) {
		char text[MODEL_MAX];
		int a = n_characters(runs[i].name),
		    b = n_characters(model_text(&runs[i], text, sizeof(text)));

		name = a > name ? a : name;
		model = b > model ? b : model;
	}
	name = name > 40 ? 40 : name;
	model = model > 60 ? 60 : model;
	printf("%-*s  %-19s  %-16s %6s %10s %7s  %-*s  %s\n", name, "name", "start", "ranks",
	       "steps", "median ms", "exit", model, "model", "command");
	for (size_t i = 0; i < n; i++) {
		const struct record_header *h = &runs[i].header;
		char start[32], ranks[48], ms[32] = "-", code[16], steps[24] = "-";
		char text[MODEL_MAX];

		snprintf(ranks, sizeof(ranks), "%u (%u x %u)", h->world_size, h->n_nodes,
			 h->gpus_per_node);
		if (runs[i].has_summary)
			snprintf(steps, sizeof(steps), "%llu", (unsigned long long)runs[i].n_steps);
		if (runs[i].n_steps)
			snprintf(ms, sizeof(ms), "%.3f", runs[i].step_ms);
		print_exit(&runs[i], code, sizeof(code));
		model_text(&runs[i], text, sizeof(text));
		printf("%s%*s  %-19s  %-16s %6s %10s %7s  %s%*s  %s\n", runs[i].name,
		       pad(name, runs[i].name), "", when(&runs[i], start, sizeof(start)), ranks,
		       steps, ms, code, text, pad(model, text), "", runs[i].command);
	}
}

static int print_json(const struct run_info *runs, size_t n)
{
	CLEANUP(json_freep) json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct record_header *h = &runs[i].header;
		json_t *o = json_pack("{s:s, s:I, s:i, s:i, s:i, s:i, s:s, s:I, s:b, s:b, s:s}",
				      "name", runs[i].name, "start_unix",
				      (json_int_t)(h->start_unix_ns / 1000000000u), "world_size",
				      (int)h->world_size, "nodes", (int)h->n_nodes, "gpus_per_node",
				      (int)h->gpus_per_node, "real_ranks", (int)h->n_real, "model",
				      h->model, "steps", (json_int_t)runs[i].n_steps, "is_running",
				      runs[i].is_running, "has_failed", runs[i].has_failed,
				      "command", runs[i].command);

		if (o)
			json_object_set_new(o, "nccl",
					    json_string(report_is_full(h) ? "full" : "gate"));

		if (o && runs[i].n_steps)
			json_object_set_new(o, "step_ms", json_real(runs[i].step_ms));
		if (o && runs[i].exit_code >= 0)
			json_object_set_new(o, "exit_code", json_integer(runs[i].exit_code));
		if (!o || json_array_append_new(list, o) < 0)
			return -ENOMEM;
	}
	return json_dumpf(list, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF ? 0 : -EIO;
}

int cmd_list(int argc, char **argv)
{
	CLEANUP(freep) struct run_info *runs = NULL;
	const char *top = NULL;
	struct option_word w;
	struct err err = {""};
	size_t n, n_unreadable;
	int is_json = 0, r;

	for (int i = 1; i < argc;) {
		r = option_take(COMMAND_LIST, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage();
		if (r == 0)
			is_json = 1;
		else if (r == OPTION_NONE && top)
			err_set(&err, EINVAL, "one folder at a time: '%s' and '%s'", top, argv[i]);
		else if (r == OPTION_NONE)
			top = argv[i++];
		if (err.text[0]) {
			fprintf(stderr, "nbox list: %s\n", err.text);
			return 2;
		}
	}
	r = runs_list(top ? top : LIVE_RUN_TOP, &runs, &n, &n_unreadable, &err);
	if (r == 0 && is_json)
		r = print_json(runs, n);
	else if (r == 0 && n)
		print_table(runs, n);
	if (r < 0) {
		fprintf(stderr, "nbox list: %s\n", err.text[0] ? err.text : strerror(-r));
		return 1;
	}
	if (n == 0 && !is_json)
		fprintf(stderr, "nbox list: no run has left results below %s/\n",
			top ? top : LIVE_RUN_TOP);
	if (n_unreadable)
		fprintf(stderr, "nbox list: %zu more cannot be read; nbox report NAME says why\n",
			n_unreadable);
	return 0;
}
