/* nbox predict, nbox blame: how long an iteration takes by its ranks' traces, and whom it waits
 * for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"
#include "nbox/predict/show.h"
#include "nbox/run/flags.h"

static const char predict_usage[] =
	"usage: nbox predict RUN|TRACE... [OPTION...] [OPTION of a cluster...]\n\n"
	"How long an iteration of a job takes, from traces of its ranks, without running it: Algorithm 1 of Lin et al.\n"
	"A trace is one of PyTorch's profiler, or a folder with one a rank. Collectives take what they took\n"
	"in the trace at the rank that waited for nobody; with options of a cluster what its model says.\n\n";

static const char blame_usage[] =
	"usage: nbox blame RUN|TRACE... [OPTION...] [OPTION of a cluster...]\n\n"
	"Which rank the others wait for, by collective, and what that costs: the iteration predicted again as if the rank\n"
	"that came last had computed as long as the ranks' median. Of a run of nbox alone nbox why\n"
	"says more: it times the run itself again. nbox blame is for traces of GPUs, and for a rank by rank table.\n\n";

static int usage(enum command command)
{
	fputs(command == COMMAND_BLAME ? blame_usage : predict_usage, stdout);
	run_help(command, stdout, NULL);
	return 0;
}

static int show(const struct predict_request *q, bool is_blame, struct err *err)
{
	struct shown s;
	int r = shown_make(q, is_blame, &s, err);

	if (r < 0)
		return r;
	if (!q->json || strcmp(q->json, "-") != 0)
		(is_blame ? shown_print_blames : shown_print)(&s, stdout);
	if (q->json)
		r = json_file_write(shown_json(&s), q->json, err);
	shown_deinit(&s);
	return r;
}

static int run(enum command command, int argc, char **argv)
{
	CLEANUP(request_deinit) struct predict_request q;
	struct err err = {""};
	int r = request_init(&q), code = 2;

	if (r == 0)
		r = request_take(&q, command, argc, argv, &err);
	if (r == 1)
		return usage(command);
	r = r < 0 ? r : request_play(&q, &err);
	if (r == 0) {
		code = 1;
		r = show(&q, command == COMMAND_BLAME, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox %s: %s\n", argv[0], err.text[0] ? err.text : strerror(-r));
	return r < 0 ? code : 0;
}

int cmd_predict(int argc, char **argv)
{
	return run(COMMAND_PREDICT, argc, argv);
}

int cmd_blame(int argc, char **argv)
{
	return run(COMMAND_BLAME, argc, argv);
}
