/* nbox run: a job inside a virtual cluster. */
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
	run_help(f, NULL);
}

int cmd_run(int argc, char **argv)
{
	struct run r = {.argc = argc, .argv = argv, .needs = PATHS_RUN | PATHS_MODELS};
	struct err err = {""};
	int i = 1, code = config_new(&r.config);

	while (code >= 0 && i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			usage(stdout);
			run_deinit(&r);
			return 0;
		}
		code = run_arg(&r, argc, argv, &i, &err);
		if (code == CONFIG_NOT_MINE)
			code = config_arg(r.config, argc, argv, &i, &err);
		if (code == CONFIG_NOT_MINE)
			code = config_unknown_flag(argv[i], run_flags, n_run_flags, &err);
	}
	r.argc = i;
	if (code >= 0 && i < argc && strcmp(argv[i], "--") == 0)
		i++;
	if (code >= 0 && i >= argc)
		code = err_set(&err, 22, "no command: nbox run [OPTION...] -- COMMAND...");
	if (code >= 0) {
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
