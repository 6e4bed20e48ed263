/* nbox why: where the time of a recorded run's iterations goes, and what could be won. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/why/print.h"
#include "nbox/why/why.h"

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox why RUN [--nodes N] [--what-if W]... [--json FILE]\n\n"
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

/* The run's own configuration with the flags in its place. Return: 0; 1: help was given; negative
 * errno with the sentence. */
static int make_config(void *ctx, struct config **ret, struct err *err)
{
	struct args *a = ctx;
	struct config *c = NULL;
	struct option_word w;
	int r = 0;

	for (int i = 1; i < a->argc && r == 0;) {
		const char *word = a->argv[i];

		r = option_take(COMMAND_WHY, a->argc, a->argv, &i, &w, err);
		if (r == OPTION_NONE && c) {
			r = err_set(err, EINVAL, "one run at a time: and '%s'?", word);
		} else if (r == OPTION_NONE) {
			i++;
			r = a->has_run ? 0 : recorded_load(word, &a->run, err);
			a->has_run |= r == 0;
			r = r == 0 ? recorded_config(&a->run, &c, err) : r;
		} else if (r == 0 && w.id == FLAG_HELP) {
			r = 1;
		} else if (r == 0 && !c) {
			r = err_set(err, EINVAL, "%s: the run comes first: nbox why RUN %s ...",
				    w.name, w.name);
		} else if (r == 0 && w.id == FLAG_JSON) {
			a->json = w.value;
		} else if (r == 0 && w.id == CONFIG_OUT) {
			r = err_set(err, EINVAL, "%s: nothing is kept but --json FILE", w.name);
		} else if (r == 0) {
			r = config_take(c, &w, err);
		}
	}
	if (r == 0 && !c)
		r = err_set(err, EINVAL, "which run? nbox list has their names");
	if (r) {
		config_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

static int write_json(const struct why *w, const char *path, struct err *err)
{
	json_t *o = why_json(w);
	int r = o ? 0 : -ENOMEM;

	if (r == 0 && json_dump_file(o, path, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) < 0)
		r = err_set(err, EIO, "%s: could not be written", path);
	json_decref(o);
	return r;
}

static int look(struct args *a, struct err *err)
{
	CLEANUP(why_deinit) struct why w = {.n_timed = 0};
	int r = why_make(&a->run, &(struct why_config){.make = make_config, .ctx = a}, &w, err);
	bool is_json = a->json && strcmp(a->json, "-") == 0;

	if (r == 0 && !is_json)
		why_print(&w, stdout);
	if (r == 0 && a->json)
		r = write_json(&w, is_json ? "/dev/stdout" : a->json, err);
	return r;
}

int cmd_why(int argc, char **argv)
{
	struct args a = {.argc = argc, .argv = argv};
	struct config *c = NULL;
	struct err err = {""};
	int r = make_config(&a, &c, &err), exit_code = 2;

	if (r == 0)
		r = recorded_finish(&a.run, c, &err);
	config_free(c);
	if (r == 0) {
		exit_code = 1;
		r = look(&a, &err);
	}
	if (a.has_run)
		recorded_deinit(&a.run);
	if (r == 1)
		return usage(stdout, 0);
	if (r < 0)
		fprintf(stderr, "nbox why: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? exit_code : 0;
}
