/* nbox: the command line. A table of subcommands, nothing more. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "run", cmd_run, "run a job inside a virtual cluster" },
	{ "perf", cmd_perf, "nccl-tests' table for a virtual cluster" },
	{ "report", cmd_report, "the summary of a run, or all its ops as CSV, from its record" },
	{ "models", cmd_models, "list the delay models and what-ifs with their parameters" },
	{ "preload", cmd_preload, "print the path of libnbox.so, for lines that start with LD_PRELOAD=" },
	{ "doctor", cmd_doctor, "what this machine has for nbox, what would be used, what is wrong" },
	{ "status", cmd_status, "ask a running nboxd how it is doing" },
};

static void usage(FILE *to)
{
	fprintf(to, "usage: nbox COMMAND [OPTION...]\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(to, "\n  nbox COMMAND --help   the options of a command\n"
		    "  nbox --version\n\n"
		    "  nbox run --nodes 64 --gpus-per-node 8 --model ring:bw=400Gbps,alpha=5us -- ./train\n"
		    "  nbox perf allreduce --nodes 64 --gpus-per-node 8 -b 8 -e 1G -f 2\n");
}

int main(int argc, char **argv)
{
	const char *names[ARRAY_SIZE(commands)], *near;

	log_open();
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("nbox %s\n", NBOX_VERSION);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		names[i] = commands[i].name;
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	}
	near = units_suggest(argv[1], names, ARRAY_SIZE(commands));
	fprintf(stderr, "nbox: unknown command '%s'%s%s%s; nbox --help lists them\n", argv[1],
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	return 2;
}
