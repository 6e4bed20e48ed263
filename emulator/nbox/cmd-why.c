/* nbox why: where the time of a recorded run's iterations goes, and what could be won. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"
#include "nbox/why/print.h"
#include "nbox/why/why.h"

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox why RUN [--nodes N] [--what-if W]... [--with RUN2]... [--counts C] [--json FILE]\n\n"
		"Where the time of a run's iterations goes, by its record: the critical path of the median one, whom ranks waited\n"
		"for, how much later ops may end, and what the iteration would take without this or that, re-timed. Options are\n"
		"those of nbox retime: then it is the run as it would have been.\n");
	return code;
}

struct args {
	int argc;
	char **argv;
	struct recorded run; /* has_run: it is loaded */
	bool has_run;
	const char *json;
};

/* Loads RUN, with those of --with. Return: 0; 1: help was given; negative errno with the sentence.
 */
static int load(struct args *a, struct err *err)
{
	CLEANUP(freep) const char **runs = calloc((size_t)a->argc + 1, sizeof(*runs));
	struct declared_counts declared = {.law = {0}};
	struct option_word w;
	size_t n = 1;
	int r = runs ? 0 : -ENOMEM;

	for (int i = 1; i < a->argc && r >= 0;) {
		r = option_take(COMMAND_WHY, a->argc, a->argv, &i, &w, err);
		if (r < 0)
			return r;
		if (r == OPTION_NONE && runs[0])
			return err_set(err, EINVAL, "one run at a time: '%s' and '%s'?", runs[0],
				       a->argv[i]);
		if (r == OPTION_NONE)
			runs[0] = a->argv[i++];
		else if (w.id == FLAG_HELP)
			return 1;
		else if (w.id == CONFIG_WITH)
			runs[n++] = w.value;
		else if (w.id == FLAG_COUNTS)
			r = declared_parse(w.value, &declared, err);
		else if (w.id == FLAG_JSON)
			a->json = w.value;
		else if (w.id == CONFIG_OUT)
			return err_set(err, EINVAL, "%s: nothing is kept but --json FILE", w.name);
		if (r < 0)
			return err_prefix(err, r, "%s", w.name);
	}
	if (r >= 0 && !runs[0])
		return err_set(err, EINVAL, "which run? nbox list has their names");
	r = r >= 0 ? recorded_load_all(runs, n, &a->run, err) : r;
	a->has_run = r == 0;
	a->run.declared = declared;
	return r;
}

/* The run's own configuration with the flags in its place. Return: 0; negative errno with the
 * sentence. */
static int make_config(void *ctx, struct config **ret, struct err *err)
{
	struct args *a = ctx;
	struct config *c = NULL;
	struct option_word w;
	int r = recorded_config(&a->run, &c, err);

	for (int i = 1; i < a->argc && r >= 0;) {
		r = option_take(COMMAND_WHY, a->argc, a->argv, &i, &w, err);
		if (r == OPTION_NONE)
			i++;
		else if (r == 0 && (int)w.id < CONFIG_OPTIONS)
			r = config_take(c, &w, err);
	}
	if (r < 0) {
		config_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

/* What nbox retime says of it. Return: 0; negative errno with the sentence. */
static int print_warnings(const struct args *a, const struct config *c, struct err *err)
{
	CLEANUP(retimed_deinit) struct retimed t = {.rec = {.n_ops = 0}};
	int r = retime(&a->run, c, &t, err);

	for (uint32_t i = 0; r == 0 && i < t.report.n_warnings; i++)
		printf("   warning: %s\n", t.report.warnings[i]);
	return r;
}

static int look(struct args *a, const struct config *c, struct err *err)
{
	CLEANUP(why_deinit) struct why w = {.n_timed = 0};
	int r = why_make(&a->run, &(struct why_config){.make = make_config, .ctx = a}, &w, err);
	bool is_json = a->json && strcmp(a->json, "-") == 0;

	if (r == 0 && !is_json)
		why_print(&w, stdout);
	if (r == 0 && !is_json)
		r = print_warnings(a, c, err);
	if (r == 0 && a->json)
		r = json_file_write(why_json(&w), a->json, err);
	return r;
}

int cmd_why(int argc, char **argv)
{
	struct args a = {.argc = argc, .argv = argv};
	struct config *c = NULL;
	struct err err = {""};
	int r = load(&a, &err), exit_code = 2;

	if (r == 0)
		r = make_config(&a, &c, &err);
	if (r == 0)
		r = recorded_finish(&a.run, c, &err);
	if (r == 0)
		r = recorded_check_models(&a.run, c, &err);
	if (r == 0) {
		exit_code = 1;
		r = look(&a, c, &err);
	}
	config_free(c);
	if (a.has_run)
		recorded_deinit(&a.run);
	if (r == 1)
		return usage(stdout, 0);
	if (r < 0)
		fprintf(stderr, "nbox why: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? exit_code : 0;
}
