/* nbox retime: the run as it would have been on another cluster, from its record. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "base/plain.h"
#include "nbox/commands.h"
#include "nbox/report/expect.h"
#include "nbox/report/summary.h"
#include "nbox/retime/retime.h"

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox retime RUN [--nodes N] [--preset P | --fabric F] [--what-if W]... [--out DIR] [--json FILE]\n\n"
		"What the run RUN (a results directory, or its name) would have been on another cluster, from its record: the real\n"
		"ranks compute as they did, ops take as long as they would there. Options are those of nbox run; what is not given\n"
		"is as it was in the run, a list that is given takes the place of the run's. --what-if none: without any.\n"
		"--out DIR keeps the result as the results of a run, for nbox report, compare and the like.\n");
	return code;
}

struct args {
	const char *word, *json, *out;
	struct recorded *run;
	struct config *config;
	bool has_run;
};

/* Return: 0; 1: help was given; negative errno with the sentence. */
static int parse(int argc, char **argv, struct args *a, struct err *err)
{
	struct option_word w;
	int r = 0;

	for (int i = 1; i < argc && r == 0;) {
		r = option_take(COMMAND_RETIME, argc, argv, &i, &w, err);
		if (r == OPTION_NONE && a->word)
			return err_set(err, EINVAL, "one run at a time: '%s' and '%s'", a->word,
				       argv[i]);
		if (r == 0 && w.id == FLAG_HELP)
			return usage(stdout, 1);
		if (r == OPTION_NONE) {
			a->word = argv[i++];
			r = recorded_load(a->word, a->run, err);
			a->has_run = r == 0;
			r = r == 0 ? recorded_config(a->run, &a->config, err) : r;
		} else if (r == 0 && !a->word) {
			r = err_set(err, EINVAL, "%s: the run comes first: nbox retime RUN %s ...",
				    w.name, w.name);
		} else if (r == 0 && w.id == FLAG_JSON) {
			a->json = w.value;
		} else if (r == 0 && w.id == CONFIG_OUT) {
			a->out = w.value;
		} else if (r == 0) {
			r = config_take(a->config, &w, err);
		}
	}
	if (r == 0 && !a->word)
		return err_set(err, EINVAL, "which run? nbox list has their names");
	return r;
}

/* *ret_met: the run is as expected. */
static int play(const struct args *a, int argc, char **argv, bool *ret_met, struct err *err)
{
	CLEANUP(retimed_deinit) struct retimed t = {.rec = {.n_ops = 0}};
	char path[PATH_MAX];
	int r = retime(a->run, a->config, &t, err);

	*ret_met = r == 0 && report_is_met(&t.report);
	if (r == 0 && a->out)
		r = retimed_write(&t, a->config, a->out, true, argc, argv, err);
	if (r == 0 && (!a->json || strcmp(a->json, "-") != 0)) {
		report_print(&t.report, stdout);
		if (a->out) {
			snprintf(path, sizeof(path), "%s", a->out);
			printf("   results        %s\n", plain_text(path));
		}
	}
	if (r == 0 && a->json)
		r = report_write_json(&t.report, -1, strcmp(a->json, "-") ? a->json : "/dev/stdout",
				      err);
	return r;
}

int cmd_retime(int argc, char **argv)
{
	CLEANUP(recorded_deinit) struct recorded run = {.graph = {.n = 0}};
	struct args a = {.run = &run};
	struct err err = {""};
	int r = parse(argc, argv, &a, &err), exit_code = 2;
	bool is_met = true;

	if (r == 0)
		r = config_finish(a.config, &err);
	if (r == 0) {
		exit_code = 1;
		r = play(&a, argc, argv, &is_met, &err);
	}
	config_free(a.config);
	if (r < 0)
		fprintf(stderr, "nbox retime: %s\n", err.text[0] ? err.text : strerror(-r));
	if (r == 0 && !is_met)
		return EXPECT_EXIT_CODE_UNMET;
	return r < 0 ? exit_code : 0;
}
