/* nbox perf: nccl-tests' table for a virtual world, modelled or live. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox-perf/options.h"
#include "nbox/commands.h"
#include "nbox/perf/collective.h"
#include "nbox/perf/live.h"
#include "nbox/perf/matrix.h"
#include "nbox/perf/modelled.h"

static int which_collective(const char *word)
{
	const char *const *ops = options[FLAG_OP].choices;

	fprintf(stderr, "nbox perf: which collective? One of");
	for (size_t i = 0; i < PERF_OPS; i++)
		fprintf(stderr, " %s%s", ops[i], i + 1 < PERF_OPS ? "," : "");
	fprintf(stderr, " goes first: nbox perf allreduce%s%s ...\n", word ? " " : "",
		word ? word : "");
	return 2;
}

int cmd_perf(int argc, char **argv)
{
	CLEANUP(freep) char **words = calloc((size_t)argc + 1, sizeof(*words));
	bool is_live = false, has_matrix = false;
	int n = 0;

	if (!words)
		return 1;
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return perf_usage(stdout), 0;
		has_matrix |= strncmp(argv[i], "--matrix", 8) == 0;
		if (strcmp(argv[i], "--live") == 0)
			is_live = true;
		else
			words[n++] = argv[i];
	}
	if (n < 2 || words[1][0] == '-')
		return which_collective(n > 1 ? words[1] : NULL);
	if (has_matrix && !is_live)
		return perf_matrix(n, words);
	return is_live ? perf_live(n, words, argc, argv) : perf_modelled(n, words);
}
