/* nbox perf: nbox-perf, a benchmark program in the manner of nccl-tests, run as one
 * rank of a virtual world, live through the shim. Its options: nbox-perf/options.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "nbox-perf/options.h"
#include "nbox/commands.h"
#include "nbox/perf/perf-report.h"
#include "nbox/run/execute.h"
#include "nbox/run/flags.h"
#include "nbox/run/prepare.h"
#include "schedule/coll.h"

static const char *const *ops(void)
{
	return options[FLAG_OP].choices;
}

/* Perf's own defaults, below file and variables' rank: only where nothing was set. */
static int perf_defaults(struct config *c)
{
	static const struct {
		enum option_id id;
		const char *variable, *text;
	} defaults[] = {
		{CONFIG_MODEL, "NBOX_MODEL", "alphabeta"},
		{CONFIG_DATA, "NBOX_DATA", "none"},
		{CONFIG_REAL, "NBOX_REAL", "0"},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(defaults); i++)
		if (!config_is_set(c, defaults[i].id) && !getenv(defaults[i].variable) &&
		    !(defaults[i].id == CONFIG_REAL &&
		      (config_is_set(c, CONFIG_AS_NODE) || getenv("NBOX_AS_NODE"))))
			r = config_set(c, defaults[i].id, SOURCE_DEFAULT, defaults[i].text);
	return r;
}

static void usage(FILE *f)
{
	struct config *c = NULL;

	fprintf(f,
		"usage: nbox perf COLLECTIVE [-b MIN] [-e MAX] [-f FACTOR | -i STEP] [-n ITERATIONS]\n"
		"                 [-w WARM-UPS] [--dtype TYPE] [--in-place] [OPTION of nbox run...]\n\n"
		"Prints nccl-tests' table for a virtual world. COLLECTIVE: ");
	for (size_t i = 0; i < PERF_OPS; i++)
		fprintf(f, "%s%s", ops()[i], i + 1 < PERF_OPS ? ", " : ".\n\n");
	fprintf(f,
		"Sizes as in nccl-tests: bytes with K, M, G (binary). One rank is real unless --real or\n"
		"--as-node says otherwise; the model is alphabeta over the cluster's network, the data policy none, unless\n"
		"given. The table's times and bandwidths are the virtual cluster's: what the model says, and what what-ifs\n"
		"add; the last column is what this machine took. It comes at the end. The results directory is as nbox run's.\n\n");
	if (config_new(&c) == 0 && perf_defaults(c) == 0)
		run_help(COMMAND_PERF, f, c);
	config_free(c);
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int which_collective(const char *word)
{
	fprintf(stderr, "nbox perf: which collective? One of");
	for (size_t i = 0; i < PERF_OPS; i++)
		fprintf(stderr, " %s%s", ops()[i], i + 1 < PERF_OPS ? "," : "");
	fprintf(stderr, " goes first: nbox perf allreduce%s%s ...\n", word ? " " : "",
		word ? word : "");
	return 2;
}

/* All words behind the collective: those of nbox-perf go into @command, and are checked now, not
 * when nboxd runs. Return: 0; negative errno with the sentence. */
static int take_words(struct run *run, char **command, int *n, struct err *err)
{
	struct perf_options perf;
	struct option_word w;
	int i = 2, r = 0;

	perf_options_init(&perf);
	while (r == 0 && i < run->argc) {
		int first = i;

		r = option_take(COMMAND_PERF, run->argc, run->argv, &i, &w, err);
		if (r == OPTION_NONE)
			return err_set(err, EINVAL,
				       "'%s' is one word too many; only the collective has no dash",
				       run->argv[i]);
		if (r == 0)
			r = perf_options_take(&perf, &w, err);
		for (int k = first; r == 0 && k < i; k++)
			command[(*n)++] = run->argv[k];
		if (r == OPTION_NONE)
			r = run_take(run, &w, err);
	}
	return r < 0 ? r : perf_options_check(&perf, err);
}

/* In PyTorch's spelling, too: all_reduce. */
static int take_collective(const char *word, const char **ret_name, struct err *err)
{
	int kind = coll_kind_parse(word);
	const char *near;

	for (size_t i = 0; kind >= 0 && i < PERF_OPS; i++) {
		if (coll_kind_parse(ops()[i]) != kind)
			continue;
		*ret_name = ops()[i];
		return 0;
	}
	if (kind >= 0)
		return err_set(
			err, EINVAL,
			"there is no benchmark of '%s'; nbox perf --help lists those that there are",
			word);
	near = suggest(word, ops(), PERF_OPS);
	return err_set(err, EINVAL, "unknown collective '%s'%s%s%s nbox perf --help lists them",
		       word, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : ";");
}

static void print_head(const struct config *c, const char *network)
{
	perf_print_head(c, network, stdout);
}

/* @ctx: the collective's name. */
static int print_table(void *ctx, const struct record *rec, const struct report *rep,
		       const char *dir, int exit_code, struct err *err)
{
	int r;

	if (!rec->n_ops)
		return exit_code || rep->lost[0]
			       ? 0
			       : err_set(err, EINVAL,
					 "there is nothing to print: a size is that of all ranks' "
					 "parts, and none has an element for each of the %u ranks; "
					 "take a larger -e",
					 rep->header.world_size);
	r = perf_print_table(rec, rep, (enum coll_kind)coll_kind_parse(ctx), stdout);
	perf_print_tail(rep, dir, stdout);
	fflush(stdout);
	return r;
}

int cmd_perf(int argc, char **argv)
{
	CLEANUP(freep) char **command = calloc((size_t)argc + 8, sizeof(*command));
	struct run_printer printer = {"perf", print_head, print_table, NULL};
	struct run run = {.argc = argc,
			  .argv = argv,
			  .needs = PATHS_RUN | PATHS_MODELS | PATHS_PERF,
			  .printer = &printer};
	struct err err = {""};
	const char *op = argv[1];
	char rank[16];
	int n = 0, r;

	for (int i = 1; i < argc; i++)
		if (is_help(argv[i]))
			return usage(stdout), 0;
	if (argc < 2 || argv[1][0] == '-')
		return which_collective(argc > 1 ? argv[1] : NULL);
	r = config_new(&run.config);
	if (!command || r < 0)
		return 1;
	command[n++] = (char *)"nbox-perf"; /* until the parts are found */
	command[n++] = (char *)"--op";
	r = take_collective(argv[1], &op, &err);
	command[n++] = (char *)(uintptr_t)op;
	if (r == 0)
		r = take_words(&run, command, &n, &err);
	if (r == 0)
		r = perf_defaults(run.config);
	command[n++] = (char *)"--no-check"; /* what virtual ranks send is a policy */
	if (!run.is_plain)                   /* it would show this machine's times */
		command[n++] = (char *)"--no-table";
	run.command = command;
	printer.ctx = (char *)(uintptr_t)op;
	if (r == 0)
		r = run_prepare(&run, &err);
	if (r < 0)
		fprintf(stderr, "nbox perf: %s\n", err.text[0] ? err.text : strerror(-r));
	command[0] = run.paths.perf;
	if (r == 0) { /* nccl-tests let rank 0 print, which may have no process here */
		snprintf(rank, sizeof(rank), "%u", run.config->real[0]);
		command[n++] = (char *)"--print-rank";
		command[n++] = rank;
	}
	r = r < 0 ? 2 : run_execute(&run);
	run_deinit(&run);
	return r;
}
