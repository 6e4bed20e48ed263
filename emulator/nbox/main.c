/* nbox: the command line. A table of subcommands, nothing more. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/suggest.h"
#include "nbox/commands.h"

/* In groups: a group's heading stands at its first command. */
static const struct {
	const char *group;
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"a job in a virtual cluster", "run", cmd_run, "run a job inside a virtual cluster"},
	{NULL, "status", cmd_status, "ask a running nboxd how it is doing"},
	{NULL, "preload", cmd_preload,
	 "print the path of libnbox.so, for lines that start with LD_PRELOAD="},
	{NULL, "doctor", cmd_doctor,
	 "what this machine has for nbox, what would be used, what is wrong"},
	{NULL, "validate", cmd_validate,
	 "is a file right: a scenario, a cluster file, a fitted model, a fabric"},

	{"a run that is over", "list", cmd_list, "the runs that have left results, a line each"},
	{NULL, "report", cmd_report,
	 "the summary of a run, or all its ops as CSV, from its record"},
	{NULL, "why", cmd_why,
	 "where the time of a run goes, whom it waited for, what could be won"},
	{NULL, "compare", cmd_compare, "two runs side by side: what was asked for, what came out"},
	{NULL, "record", cmd_record, "every row of a run's record, as text or JSON"},

	{"the same run elsewhere", "retime", cmd_retime,
	 "a recorded run, as it would have been on another cluster"},
	{NULL, "sweep", cmd_sweep, "a recorded run on many clusters: a table, curves, a page"},
	{NULL, "plan", cmd_plan,
	 "which cluster for a recorded run: rate, scaling, price, the cheapest for a goal"},
	{NULL, "optimize", cmd_optimize,
	 "which gradients of a recorded run should be reduced together, and what that wins"},
	{NULL, "mem", cmd_mem, "what memory an iteration needs; recomputation and accumulation"},

	{"a cluster and its ops", "topo", cmd_topo,
	 "the virtual cluster's nodes, network and links, and what bounds its ops"},
	{NULL, "perf", cmd_perf, "nccl-tests' table for a virtual cluster"},
	{NULL, "explain", cmd_explain, "why an op of a virtual cluster takes as long as it does"},
	{NULL, "oracle", cmd_oracle,
	 "ask this node's NCCL how it would run the ops of a larger cluster"},

	{"pipelines and meshes", "pipe", cmd_pipe,
	 "a pipeline by GPipe, 1F1B and eager 1F1B: bubbles, hidden messages, memory"},
	{NULL, "reshard", cmd_reshard,
	 "how a tensor gets from one mesh of devices to another: a plan, its bound, a check"},

	{"runs and traces, op by op", "trace", cmd_trace,
	 "traces of a job's ranks: put together, by one clock, counted, compared"},
	{NULL, "replay", cmd_replay,
	 "a run or traces, played message by message: busy links, the critical path"},
	{NULL, "diagnose", cmd_diagnose,
	 "what holds a run or traces back, with evidence and what it costs"},
	{NULL, "predict", cmd_predict, "how long an iteration takes, from traces of its ranks"},
	{NULL, "blame", cmd_blame, "which rank the others wait for, and what that costs"},
	{NULL, "overheads", cmd_overheads,
	 "what hosts do around their kernels, from a trace: T1 to T5"},

	{"tables of embeddings", "shard", cmd_shard,
	 "which GPU keeps which tables: six sharders, what an iteration takes"},
	{NULL, "rf", cmd_rf, "how often rows are looked up again, by batch and table"},
	{NULL, "onesided", cmd_onesided,
	 "one-sided stores instead of an all-to-all behind the computation: what would it win"},

	{"models", "models", cmd_models,
	 "list the delay models and what-ifs with their parameters"},
	{NULL, "model", cmd_model,
	 "what a fitted model says; whether it is sound; a drawing of it"},
	{NULL, "fit", cmd_fit,
	 "a delay model from measured times: nccl-tests, Inspector, PARAM, CSV, a run"},
	{NULL, "kernels", cmd_kernels,
	 "a table of kernels' times for nbox run --gpu, from a trace of a GPU"},
};

static void usage(FILE *to)
{
	fprintf(to, "usage: nbox COMMAND [OPTION...]\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "%s%s%s  %-9s %s\n", commands[i].group && i ? "\n" : "",
			commands[i].group ? commands[i].group : "", commands[i].group ? ":\n" : "",
			commands[i].name, commands[i].help);
	fprintf(to,
		"\n  nbox COMMAND --help   the options of a command\n"
		"  nbox --version\n\n"
		"  nbox run --nodes 64 --preset dgx-h100 -- torchrun --nproc-per-node=8 train.py\n"
		"  nbox perf allreduce --nodes 64 --preset dgx-h100 -b 8 -e 1G\n\n"
		"Exit codes: 0; 1: it could not be done; 2: the command line, a variable or a file of configuration is\n"
		"wrong, and nothing was started or made; 3: the run is not as --expect or the scenario says. nbox run: otherwise the\n"
		"job's own.\n");
}

/* A full disk behind a table is no success. The exit code of a run stays the job's. */
static int end(int code, bool is_run)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fprintf(stderr, "nbox: not all of the output could be written: %s\n", strerror(errno));
	return code || is_run ? code : 1;
}

static int unknown(const char *word)
{
	const char *names[ARRAY_SIZE(commands)], *near;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].name;
	near = suggest(word, names, ARRAY_SIZE(commands));
	if (word[0] == '-')
		fprintf(stderr,
			"nbox: options come behind the command: nbox run %s ...; nbox --help lists the commands\n",
			word);
	else
		fprintf(stderr, "nbox: unknown command '%s'%s%s%s nbox --help lists them\n", word,
			near ? "; did you mean '" : "", near ? near : "", near ? "'?" : ";");
	return 2;
}

int main(int argc, char **argv)
{
	char *help[] = {argv[0], NULL, (char *)"--help", NULL};
	bool is_help;

	log_open();
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	is_help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		  strcmp(argv[1], "help") == 0;
	if (is_help && argc > 2) { /* help run: run --help */
		help[1] = argv[2];
		argv = help;
		argc = 3;
	} else if (is_help) {
		usage(stdout);
		return end(0, false);
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
		printf("nbox %s\n", NBOX_VERSION);
		return end(0, false);
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return end(commands[i].main(argc - 1, argv + 1), i == 0);
	return unknown(argv[1]);
}
