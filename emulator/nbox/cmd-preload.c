/* nbox preload: the path of libnbox.so, for lines without `nbox run`. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/plain.h"
#include "nbox/commands.h"
#include "nbox/doctor/paths.h"
#include "nbox/run/loader-path.h"

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox preload [--print]\n\n"
		"Prints the path of libnbox.so, for one command:\n\n"
		"  LD_PRELOAD=$(nbox preload) torchrun --nproc-per-node=8 train.py\n\n"
		"--print prints a line for a shell, for all commands that follow:\n\n"
		"  eval \"$(nbox preload --print)\"\n"
		"  torchrun --nproc-per-node=8 train.py\n\n"
		"The cluster is described by nbox.yaml in the working directory, by the file that NBOX_CONFIG names, or by\n"
		"NBOX_ variables (nbox run --help lists them), which go before the file.\n");
	return code;
}

int cmd_preload(int argc, char **argv)
{
	struct option_word w;
	int is_line = 0, i = 1, r = 0;
	struct paths paths;
	struct err err = {""};

	while (r == 0 && i < argc) {
		r = option_take(COMMAND_PRELOAD, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage(stdout, 0);
		is_line = 1;
	}
	if (r != 0) {
		fprintf(stderr, "nbox preload: unknown argument '%s'\n", argv[i]);
		return usage(stderr, 2);
	}
	if (paths_find(&paths, PATHS_SHIM, &err) < 0) {
		fprintf(stderr, "nbox preload: %s\n", err.text);
		return 1;
	}
	if (strpbrk(paths.shim, LOADER_PRELOAD)) {
		fprintf(stderr,
			"nbox preload: %s: the dynamic linker divides LD_PRELOAD at spaces and colons, and would load nothing: "
			"use 'nbox run', or preload a link to this file, at a path that has neither\n",
			paths.shim);
		return 1;
	}
	if (!is_line) {
		printf("%s\n", paths.shim);
		return 0;
	}
	fputs("export LD_PRELOAD=", stdout);
	plain_shell(paths.shim, stdout);
	printf("\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n");
	return 0;
}
