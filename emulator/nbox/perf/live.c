/* See live.h. The options of nbox-perf: nbox-perf/options.c. */
#include "nbox/perf/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox-perf/options.h"
#include "nbox/perf/collective.h"
#include "nbox/perf/perf-report.h"
#include "nbox/run/execute.h"
#include "nbox/run/flags.h"
#include "nbox/run/prepare.h"
#include "schedule/coll.h"

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

int perf_live(int argc, char **argv, int n_typed, char **typed)
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

	r = config_new(&run.config);
	if (!command || r < 0)
		return 1;
	command[n++] = (char *)"nbox-perf"; /* until the parts are found */
	command[n++] = (char *)"--op";
	r = perf_take_collective(argv[1], &op, &err);
	command[n++] = (char *)(uintptr_t)op;
	if (r == 0)
		r = take_words(&run, command, &n, &err);
	run.argc = n_typed;
	run.argv = typed;
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
