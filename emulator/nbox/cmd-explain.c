/* nbox explain: why one op of a virtual world takes as long as it does. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox-perf/options.h"
#include "nbox/ask/configure.h"
#include "nbox/ask/explain-file.h"
#include "nbox/ask/explain.h"
#include "nbox/commands.h"
#include "nbox/perf/collective.h"
#include "nbox/perf/rows.h"
#include "nbox/run/flags.h"

struct question {
	struct config *config;
	struct perf_options perf;     /* of it the type of the elements */
	const char *file, *decisions; /* borrowed; NULL: none */
	bool is_json;
	int n_words; /* of COLLECTIVE SIZE */
	enum coll_kind kind;
	uint64_t bytes; /* as in nccl-tests */
	struct ask *ask;
};

static void question_deinit(struct question *q)
{
	ask_close(q->ask);
	config_free(q->config);
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: nbox explain COLLECTIVE SIZE [--json] [OPTION of a cluster...]\n"
		"       nbox explain --decisions FILE [--json] [OPTION of a cluster...]\n\n"
		"Says what the model decides about one op of the whole virtual world, and why it takes as long as it\n"
		"does: the fabric, candidates and their costs, the choice, the slowest message's path, the bound, the\n"
		"time. SIZE as in nccl-tests, with a unit: 25MB, 1GiB, 8B.\n\n"
		"--decisions FILE  goes through what nbox oracle has written: how many of NCCL's own decisions nbox's rules\n"
		"                  share on this cluster, and the sizes of the others\n\n");
	run_help(COMMAND_EXPLAIN, to, NULL);
}

static int take_option(struct question *q, const struct option_word *w, struct err *err)
{
	if (w->id < CONFIG_OPTIONS)
		return config_take(q->config, w, err);
	if (w->id == FLAG_AS_JSON)
		q->is_json = true;
	else if (w->id == FLAG_CONFIG)
		q->file = w->value;
	else if (w->id == FLAG_DECISIONS)
		q->decisions = w->value;
	else
		return perf_options_take(&q->perf, w, err);
	return 0;
}

static int take_word(struct question *q, int n, const char *word, struct err *err)
{
	const char *name;
	int r;

	if (n == 2)
		return err_set(err, EINVAL,
			       "'%s' is one word too many: nbox explain COLLECTIVE SIZE", word);
	if (n == 1) {
		r = units_bytes(word, &q->bytes, err);
		return r < 0 ? err_prefix(err, r, "the size") : 0;
	}
	r = perf_take_collective(word, &name, err);
	if (r == 0)
		q->kind = (enum coll_kind)coll_kind_parse(name);
	return r;
}

static int take_words(struct question *q, int argc, char **argv, struct err *err)
{
	struct option_word w;
	int i = 1, r = 0;

	while (r == 0 && i < argc) {
		r = option_take(COMMAND_EXPLAIN, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			r = take_word(q, q->n_words++, argv[i++], err);
		else if (r == 0)
			r = take_option(q, &w, err);
	}
	if (r == 0 && q->decisions && q->n_words)
		return err_set(err, EINVAL,
			       "--decisions goes through the whole file; for one op give --model "
			       "nccl:decisions=%s",
			       q->decisions);
	return r < 0 || q->decisions || q->n_words == 2
		       ? r
		       : err_set(err, EINVAL,
				 "what op? Such as: nbox explain allreduce 25MB --preset dgx-h100 "
				 "--nodes 64");
}

static int answer(struct question *q, struct err *err)
{
	return q->decisions ? explain_file_print(q->ask, q->decisions, q->is_json, stdout, err)
			    : explain_print(q->ask, q->kind, q->bytes, perf_dtype(&q->perf),
					    q->is_json, stdout, err);
}

int cmd_explain(int argc, char **argv)
{
	CLEANUP(question_deinit) struct question q = {0};
	struct err err = {""};
	int r = config_new(&q.config);
	bool is_asked = false;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return usage(stdout), 0;
	perf_options_init(&q.perf);
	if (r == 0)
		r = take_words(&q, argc, argv, &err);
	if (r == 0 && q.decisions)
		r = explain_file_configure(q.config, q.decisions, &err);
	if (r == 0)
		r = perf_defaults(q.config);
	if (r == 0)
		r = ask_configure(q.config, q.file, &q.ask, &err);
	is_asked = r == 0;
	if (is_asked)
		r = answer(&q, &err);
	if (r == 0)
		return 0;
	fprintf(stderr, "nbox explain: %s\n", err.text[0] ? err.text : strerror(-r));
	return is_asked && r == -ERANGE ? 1 : 2; /* below the bound; a wrong option */
}
