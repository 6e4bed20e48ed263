/* nbox validate: is a file right: a scenario, a cluster file, a fitted model, a decision file, a
 * fabric? */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "calibrate/load.h"
#include "config/scenario.h"
#include "fabric/read/open.h"
#include "nbox/ask/configure.h"
#include "nbox/commands.h"
#include "nbox/run/flags.h"
#include "nccl/decisions.h"

#define FILE_MAX (64u << 20)

struct request {
	struct config *config;
	const char *file;
	bool has_cluster; /* an option says something of it */
};

static void request_deinit(struct request *q)
{
	config_free(q->config);
}

static int usage(void)
{
	fputs("usage: nbox validate FILE [OPTION of a run...]\n\n"
	      "FILE: a scenario (--scenario), a cluster file (--config), what nbox fit or nbox oracle has written, or a fabric (--fabric).\n"
	      "Says what it is, or where it is wrong: FILE:LINE:COLUMN. The ranks, nodes and links that a scenario names are looked for in the\n"
	      "cluster that the options give, such as --nodes 64 --preset dgx-h100; without such options they are not.\n\n",
	      stdout);
	run_help(COMMAND_VALIDATE, stdout, NULL);
	return 0;
}

static int take_words(struct request *q, int argc, char **argv, struct err *err)
{
	struct option_word w;
	int i = 1, r = 0;

	while (r == 0 && i < argc) {
		r = option_take(COMMAND_VALIDATE, argc, argv, &i, &w, err);
		if (r == OPTION_NONE && q->file)
			return err_set(err, EINVAL, "one file at a time: '%s' and '%s'", q->file,
				       argv[i]);
		if (r == 0) {
			q->has_cluster = true;
			r = config_take(q->config, &w, err);
		} else if (r == OPTION_NONE) {
			q->file = argv[i++];
			r = 0;
		}
	}
	return r < 0 || q->file ? r
				: err_set(err, EINVAL,
					  "which file? nbox validate FILE [OPTION of a run...]");
}

/* Has a line of @text one of these @keys at its beginning? */
static bool has_key(const char *text, const char *const *keys, size_t n)
{
	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		for (size_t i = 0; i < n; i++)
			if (strncmp(text, keys[i], strlen(keys[i])) == 0)
				return true;
	return false;
}

static int ask(struct request *q, const char *file, struct err *err)
{
	struct ask *a = NULL;
	int r = ask_configure(q->config, file, &a, err);

	ask_close(a);
	return r;
}

static int check_scenario(struct request *q, const char *text, size_t n, struct err *err)
{
	struct scenario s = {0};
	int r = scenario_parse(q->file, text, n, &s, err);

	if (r == 0 && q->has_cluster) {
		r = config_set(q->config, CONFIG_SCENARIO, SOURCE_FLAG, q->file);
		r = r < 0 ? r : ask(q, NULL, err);
	}
	if (r == 0)
		printf("%s: a scenario of %zu events (%zu what-ifs) and %zu expectations%s\n",
		       q->file, s.n_events, s.what_ifs.n, s.expects.n,
		       q->has_cluster
			       ? ""
			       : "; what it names was looked for in no cluster: give options "
				 "such as --nodes 64 --preset dgx-h100");
	scenario_deinit(&s);
	return r;
}

static int check_model(const char *file, struct err *err)
{
	struct fitted f;
	int r = fitted_load(file, &f, err);

	if (r < 0)
		return r;
	printf("%s: a fitted model\n", file);
	fitted_deinit(&f);
	return 0;
}

static int check_decisions(const char *file, struct err *err)
{
	char sentence[DECISIONS_SENTENCE], shapes[160];
	struct decisions d;

	if (decisions_read(file, &d, sentence) < 0)
		return err_set(err, EINVAL, "%s", sentence);
	printf("%s: what NCCL %s decides for %s\n", file, d.nccl,
	       decisions_shapes(&d, shapes, sizeof(shapes)));
	decisions_deinit(&d);
	return 0;
}

/* What is no cluster file may be a fabric. */
static int check_cluster(struct request *q, struct err *err)
{
	struct fabric *f = NULL;
	int r = ask(q, q->file, err);

	if (r == 0) {
		printf("%s: a cluster file: %u nodes x %u\n", q->file, q->config->topology.n_nodes,
		       q->config->topology.gpus_per_node);
		return 0;
	}
	if (fabric_open(q->file, 2, 0, &f, NULL) < 0)
		return r;
	printf("%s: a fabric: %s\n", q->file, f->name);
	fabric_free(f);
	return 0;
}

static int check(struct request *q, struct err *err)
{
	static const char *const of_scenario[] = {"events:"}, *const of_model[] = {"version ="};
	static const char *const of_decisions[] = {"nccl ="};
	static const char *const of_both[] = {"expect:"}, *const of_cluster[] = {
								  "cluster:", "model:", "what_if:",
								  "network:"};
	CLEANUP(freep) char *text = NULL;
	size_t n;
	int r = file_read(q->file, FILE_MAX, &text, &n, err);

	if (r < 0)
		return r;
	if (has_key(text, of_model, ARRAY_SIZE(of_model)))
		return check_model(q->file, err);
	if (has_key(text, of_decisions, ARRAY_SIZE(of_decisions)))
		return check_decisions(q->file, err);
	if (has_key(text, of_scenario, ARRAY_SIZE(of_scenario)) ||
	    (has_key(text, of_both, ARRAY_SIZE(of_both)) &&
	     !has_key(text, of_cluster, ARRAY_SIZE(of_cluster))))
		return check_scenario(q, text, n, err);
	return check_cluster(q, err);
}

int cmd_validate(int argc, char **argv)
{
	CLEANUP(request_deinit) struct request q = {0};
	struct err err = {""};
	int r = config_new(&q.config);

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return usage();
	if (r == 0)
		r = take_words(&q, argc, argv, &err);
	if (r == 0)
		r = check(&q, &err);
	if (r == 0)
		return 0;
	fprintf(stderr, "nbox validate: %s\n", err.text[0] ? err.text : strerror(-r));
	return 2;
}
