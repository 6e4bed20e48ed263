/* nbox run: a job inside a virtual cluster. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nbox/commands.h"
#include "nbox/run/execute.h"
#include "nbox/run/flags.h"
#include "nbox/run/prepare.h"

static void usage(FILE *f)
{
	fprintf(f,
		"usage: nbox run [OPTION...] [--] COMMAND...\n\n"
		"Starts nboxd, runs COMMAND once for each real rank (once for a launcher such as torchrun) with\n"
		"libnbox.so preloaded, passes its exit code through, prints a summary and leaves one results\n"
		"directory. A flag counts more than a variable, a variable more than the cluster file.\n\n");
	run_help(COMMAND_RUN, f, NULL);
}

/* The words up to the command. Return: 0, *ret_end is behind them; 1: --help; negative errno with
 * the sentence. */
static int take_words(struct run *run, int argc, char **argv, int *ret_end, struct err *err)
{
	struct option_word w;
	int i = 1, r = 0;

	while (r == 0 && i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
		r = option_take(COMMAND_RUN, argc, argv, &i, &w, err);
		if (r == 0 && w.id == FLAG_HELP)
			return 1;
		if (r == 0)
			r = run_take(run, &w, err);
	}
	*ret_end = i;
	return r;
}

int cmd_run(int argc, char **argv)
{
	struct run run = {.argc = argc, .argv = argv, .needs = PATHS_RUN | PATHS_MODELS};
	struct err err = {""};
	int i = 1, r = config_new(&run.config);

	if (r == 0)
		r = take_words(&run, argc, argv, &i, &err);
	if (r == 1) {
		usage(stdout);
		run_deinit(&run);
		return 0;
	}
	run.argc = i;
	if (r == 0 && i < argc && strcmp(argv[i], "--") == 0)
		i++;
	if (r == 0 && i >= argc)
		r = err_set(&err, EINVAL, "no command: nbox run [OPTION...] -- COMMAND...");
	if (r == 0) {
		run.command = argv + i;
		r = run_prepare(&run, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox run: %s\n", err.text[0] ? err.text : strerror(-r));
	r = r < 0 ? 2 : run_execute(&run);
	run_deinit(&run);
	return r;
}
