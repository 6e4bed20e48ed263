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
static int take_words(struct run *r, int argc, char **argv, int *ret_end, struct err *err)
{
	struct option_word w;
	int i = 1, code = 0;

	while (code == 0 && i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
		code = option_take(COMMAND_RUN, argc, argv, &i, &w, err);
		if (code == 0 && w.id == FLAG_HELP)
			return 1;
		if (code == 0)
			code = run_take(r, &w, err);
	}
	*ret_end = i;
	return code;
}

int cmd_run(int argc, char **argv)
{
	struct run r = {.argc = argc, .argv = argv, .needs = PATHS_RUN | PATHS_MODELS};
	struct err err = {""};
	int i = 1, code = config_new(&r.config);

	if (code == 0)
		code = take_words(&r, argc, argv, &i, &err);
	if (code == 1) {
		usage(stdout);
		run_deinit(&r);
		return 0;
	}
	r.argc = i;
	if (code == 0 && i < argc && strcmp(argv[i], "--") == 0)
		i++;
	if (code == 0 && i >= argc)
		code = err_set(&err, EINVAL, "no command: nbox run [OPTION...] -- COMMAND...");
	if (code == 0) {
		r.command = argv + i;
		r.n_command = argc - i;
		code = run_prepare(&r, &err);
	}
	if (code < 0)
		fprintf(stderr, "nbox run: %s\n", err.text[0] ? err.text : strerror(-code));
	code = code < 0 ? 2 : run_execute(&r);
	run_deinit(&r);
	return code;
}
