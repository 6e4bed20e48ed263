/* nbox perf: nbox-perf, a benchmark program in the manner of nccl-tests, run as one
 * rank of a virtual world, live through the shim. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/run.h"

static const char *const ops[] = { "allreduce", "allgather", "reducescatter", "broadcast", "reduce",
				   "alltoall", "sendrecv" };
/* flags with a value that belong to nbox-perf; --dtype too */
static const char *const perf_flags[] = { "-b", "-e", "-f", "-i", "-n", "-w", "--dtype" };

static bool takes_value(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(perf_flags); i++)
		if (strcmp(word, perf_flags[i]) == 0)
			return true;
	return false;
}

/* Perf's own defaults, below file and variables' rank: only where nothing was set. */
static int perf_defaults(struct config *c)
{
	static const struct { enum config_id id; const char *variable, *text; } defaults[] = {
		{ CONFIG_MODEL, "NBOX_MODEL", "alphabeta" },
		{ CONFIG_DATA, "NBOX_DATA", "none" },
		{ CONFIG_REAL, "NBOX_REAL", "0" },
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

	fprintf(f, "usage: nbox perf COLLECTIVE [-b MIN] [-e MAX] [-f FACTOR | -i STEP] [-n ITERATIONS]\n"
		   "                 [-w WARM-UPS] [--dtype TYPE] [--in-place] [OPTION of nbox run...]\n\n"
		   "Prints nccl-tests' table for a virtual world. COLLECTIVE: ");
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		fprintf(f, "%s%s", ops[i], i + 1 < ARRAY_SIZE(ops) ? ", " : ".\n");
	fprintf(f, "  -b MIN         first size [8]\n"
		   "  -e MAX         last size [32M]\n"
		   "  -f FACTOR      from one size to the next [2]\n"
		   "  -i STEP        bytes added from one size to the next, instead of -f\n"
		   "  -n ITERATIONS  timed ops of each size, once one by one and once all together [20]\n"
		   "  -w WARM-UPS    ops before them, untimed [5]\n"
		   "  --dtype TYPE   int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2 [float]\n"
		   "  --in-place     time in place, too\n\n");
	fprintf(f, "Sizes as in nccl-tests: bytes with K, M, G (binary). One rank is real unless --real or\n"
		   "--as-node says otherwise; the model is alphabeta over the cluster's network, the data policy none, unless\n"
		   "given. The table's times are what a job sees, lateness of this machine included; below it stand the\n"
		   "virtual network's own. The results directory is as nbox run's.\n\n");
	if (config_new(&c) == 0 && perf_defaults(c) == 0)
		run_help(f, c);
	config_free(c);
}

int cmd_perf(int argc, char **argv)
{
	CLEANUP(freep) char **command = calloc((size_t)argc + 8, sizeof(*command));
	struct run r = { .argc = argc, .argv = argv,
			 .needs = PATHS_RUN | PATHS_MODELS | PATHS_PERF };
	struct err err = { "" };
	const char *near;
	char printer[16];
	int n = 0, i = 1, code = config_new(&r.config), known = 0;

	if (!command || code < 0)
		return 1;
	if (argc < 2 || argv[1][0] == '-') {
		int is_help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

		if (is_help) {
			usage(stdout);
		} else {
			fprintf(stderr, "nbox perf: which collective? One of");
			for (size_t o = 0; o < ARRAY_SIZE(ops); o++)
				fprintf(stderr, " %s%s", ops[o], o + 1 < ARRAY_SIZE(ops) ? "," : "");
			fprintf(stderr, " goes first: nbox perf allreduce%s%s; see nbox perf --help\n",
				argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
		}
		run_deinit(&r);
		return is_help ? 0 : 2;
	}
	for (size_t o = 0; o < ARRAY_SIZE(ops); o++)
		known |= strcmp(argv[1], ops[o]) == 0;
	if (!known) {
		near = units_suggest(argv[1], ops, ARRAY_SIZE(ops));
		code = err_set(&err, EINVAL, "unknown collective '%s'%s%s%s; nbox perf --help lists them", argv[1],
			       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	n = 1; /* command[0] is filled when the parts are found */
	command[n++] = (char *)"--op";
	command[n++] = argv[1];
	i = 2;
	while (code >= 0 && i < argc) {
		if (takes_value(argv[i]) && i + 1 < argc) {
			command[n++] = argv[i++];
			command[n++] = argv[i++];
			continue;
		}
		if (strcmp(argv[i], "--in-place") == 0) {
			command[n++] = argv[i++];
			continue;
		}
		code = run_arg(&r, argc, argv, &i, &err);
		if (code == CONFIG_NOT_MINE)
			code = config_arg(r.config, argc, argv, &i, &err);
		if (code == CONFIG_NOT_MINE)
			code = config_unknown_flag(argv[i], run_flags, n_run_flags, &err);
	}
	if (code >= 0)
		code = perf_defaults(r.config);
	command[n++] = (char *)"--no-check"; /* what virtual ranks send is a policy */
	r.command = command;
	r.perf_op = argv[1];
	r.n_command = n;
	command[0] = (char *)"nbox-perf";
	if (code >= 0)
		code = run_prepare(&r, &err);
	if (code < 0)
		fprintf(stderr, "nbox perf: %s\n", err.text[0] ? err.text : strerror(-code));
	command[0] = r.paths.perf;
	if (code >= 0) { /* rank 0, whom nccl-tests let print, may have no process */
		snprintf(printer, sizeof(printer), "%u", r.config->real[0]);
		command[r.n_command++] = (char *)"--print-rank";
		command[r.n_command++] = printer;
	}
	code = code < 0 ? 2 : run_execute(&r);
	run_deinit(&r);
	return code;
}
