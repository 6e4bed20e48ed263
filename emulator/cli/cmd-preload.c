/* nbox preload: the path of libnbox.so, for lines without `nbox run`. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/paths.h"

int cmd_preload(int argc, char **argv)
{
	struct paths paths;
	struct err err = { "" };

	if (argc > 1) {
		int is_help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;

		fprintf(is_help ? stdout : stderr,
			"usage: nbox preload\n\nPrints the path of libnbox.so:\n\n"
			"  LD_PRELOAD=$(nbox preload) NBOX_NODES=64 NBOX_MODEL=ring torchrun --nproc-per-node=8 train.py\n");
		return is_help ? 0 : 2;
	}
	if (paths_find(&paths, PATHS_SHIM, &err) < 0) {
		fprintf(stderr, "nbox preload: %s\n", err.text);
		return 1;
	}
	printf("%s\n", paths.shim);
	return 0;
}
