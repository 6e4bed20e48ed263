/* nbox diagnose: what holds a run or traces back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox/commands.h"
#include "nbox/diagnose/diagnose.h"
#include "nbox/replay/source.h"

static int usage(void)
{
	fputs("usage: nbox diagnose RUN|TRACE... [OPTION...] [OPTION of nbox retime...]\n\n"
	      "Is the job bound by computation or communication, does it wait for a straggler, hide too little, send too small\n"
	      "tensors, queue at links, wait for stages of a pipeline? Each cause is judged by a replay without it (nbox replay): what that wins is printed\n"
	      "with the evidence, also of causes that were not found. Of a run all options of nbox retime change the cluster.\n\n",
	      stdout);
	option_help(COMMAND_DIAGNOSE, 23, stdout);
	fputs("  --algo ALGO             of all-reduces: ring, tree, ps:servers=N; of a run also KIND=ALGO\n"
	      "\n  nbox diagnose ddp --nodes 64 --nic 10Gbps\n",
	      stdout);
	return 0;
}

static int diagnose_source(struct source *s, const char *json, struct err *err)
{
	struct diagnosis d;
	bool is_json = json && strcmp(json, "-") == 0;
	int r = diagnose(&s->job, &s->costs, &d, err);

	if (r == 0 && !is_json) {
		diagnose_print(&d, stdout);
		source_print_notes(s, stdout);
	}
	if (r == 0 && json)
		r = source_write_json(s, diagnose_json(&d), json, err);
	return r;
}

int cmd_diagnose(int argc, char **argv)
{
	CLEANUP(source_words_deinit) struct source_words words = {.n_words = 0};
	CLEANUP(source_close) struct source s = {.has_run = false};
	struct err err = {""};
	int r = source_words_take(COMMAND_DIAGNOSE, argc, argv, NULL, NULL, &words, &err);
	int exit_code = 2;

	if (r == 1)
		return usage();
	if (r == 0)
		r = source_open(&words, &s, &err);
	if (r == 0) {
		exit_code = 1;
		r = diagnose_source(&s, words.json, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox diagnose: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? exit_code : 0;
}
