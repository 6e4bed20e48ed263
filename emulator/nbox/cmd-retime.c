/* nbox retime: the run as it would have been on another cluster, from its record. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
		"usage: nbox retime RUN [--nodes N] [--preset P | --fabric F] [--what-if W]... [--with RUN2]... [--counts C] [--out DIR] [--json FILE]\n\n"
		"What the run RUN (a results directory, or its name) would have been on another cluster, from its record: the real\n"
		"ranks compute as they did, ops take as long as they would there. Options are those of nbox run; what is not given\n"
		"is as it was in the run, a list that is given takes the place of the run's. --what-if none: without any.\n"
		"--with RUN2, again and again: runs of the same job. With as many nodes they have other real ranks (--real, --as-node), such as\n"
		"the stages of a pipeline, one after the other on one machine; all of them are played together. With other nodes they say how the\n"
		"bytes of each op change with the size: as they were, as many in all, in proportion, else by a line, which is said.\n"
		"--counts KIND=LAW,...: the same by your word, such as alltoall=total: keep (each as many as before), total (as many in all), grow.\n"
		"--out DIR keeps the result as the results of a run, for nbox report, compare and the like.\n");
	return code;
}

struct args {
	const char *json, *out;
	const char **runs; /* owned list: RUN, then those of --with */
	size_t n_runs;
	struct option_word *options; /* owned list; of the configuration */
	size_t n_options;
	struct declared_counts declared;
	struct recorded run;
	struct config *config; /* NULL: not yet */
};

static void args_deinit(struct args *a)
{
	free(a->runs);
	free(a->options);
	recorded_deinit(&a->run);
	config_free(a->config);
}

/* Return: 0; 1: help was given; negative errno with the sentence. */
static int take_words(int argc, char **argv, struct args *a, struct err *err)
{
	struct option_word w;
	int r = 0;

	a->runs = calloc((size_t)argc + 1, sizeof(*a->runs));
	a->options = calloc((size_t)argc + 1, sizeof(*a->options));
	if (!a->runs || !a->options)
		return err_set(err, ENOMEM, "out of memory");
	a->n_runs = 1;
	for (int i = 1; i < argc;) {
		r = option_take(COMMAND_RETIME, argc, argv, &i, &w, err);
		if (r < 0)
			return r;
		if (r == OPTION_NONE && a->runs[0])
			return err_set(
				err, EINVAL,
				"one run at a time: '%s' and '%s'; --with for runs of the same "
				"job with other real ranks",
				a->runs[0], argv[i]);
		if (r == OPTION_NONE)
			a->runs[0] = argv[i++];
		else if (w.id == FLAG_HELP)
			return usage(stdout, 1);
		else if (w.id == CONFIG_WITH)
			a->runs[a->n_runs++] = w.value;
		else if (w.id == FLAG_COUNTS)
			r = declared_parse(w.value, &a->declared, err);
		else if (w.id == FLAG_JSON)
			a->json = w.value;
		else if (w.id == CONFIG_OUT)
			a->out = w.value;
		else if (w.id == CONFIG_REAL || w.id == CONFIG_AS_NODE)
			return err_set(
				err, EINVAL,
				"%s: the real ranks are those of the record; --with RUN2 adds those of "
				"another run",
				w.name);
		else
			a->options[a->n_options++] = w;
		if (r < 0)
			return err_prefix(err, r, "%s", w.name);
	}
	return a->runs[0] ? 0 : err_set(err, EINVAL, "which run? nbox list has their names");
}

/* Return: as above. */
static int parse(int argc, char **argv, struct args *a, struct err *err)
{
	int r = take_words(argc, argv, a, err);

	if (r == 0)
		r = recorded_load_all(a->runs, a->n_runs, &a->run, err);
	a->run.declared = a->declared;
	if (r == 0)
		r = recorded_config(&a->run, &a->config, err);
	for (size_t i = 0; i < a->n_options && r == 0; i++)
		r = config_take(a->config, &a->options[i], err);
	r = r == 0 ? recorded_finish(&a->run, a->config, err) : r;
	return r == 0 ? recorded_check_models(&a->run, a->config, err) : r;
}

/* *ret_met: the run is as expected. */
static int play(const struct args *a, int argc, char **argv, bool *ret_met, struct err *err)
{
	CLEANUP(retimed_deinit) struct retimed t = {.rec = {.n_ops = 0}};
	char path[PATH_MAX];
	int r = retime(&a->run, a->config, &t, err);

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
	CLEANUP(args_deinit) struct args a = {.n_runs = 0};
	struct err err = {""};
	int r = parse(argc, argv, &a, &err), exit_code = 2;
	bool is_met = true;

	if (r == 0) {
		exit_code = 1;
		r = play(&a, argc, argv, &is_met, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox retime: %s\n", err.text[0] ? err.text : strerror(-r));
	if (r == 0 && !is_met)
		return EXPECT_EXIT_CODE_UNMET;
	return r < 0 ? exit_code : 0;
}
