/* nbox replay: a run or traces, played as a global data-flow graph with every message of every op.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/suggest.h"
#include "nbox/commands.h"
#include "nbox/replay/result.h"
#include "nbox/replay/source.h"
#include "nbox/replay/words.h"

static int usage(void)
{
	fputs("usage: nbox replay RUN|TRACE... [OPTION...] [OPTION of nbox retime...]\n\n"
	      "Plays a run's record, or traces of ranks (PyTorch's profiler, dPRO), as dPRO does: computation in the recorded order\n"
	      "on streams, each message of each op of communicators on its link. Says how long an iteration takes, who is busy, and\n"
	      "the critical path. Of a run all options of nbox retime change the cluster; nbox retime itself is the more exact one.\n\n",
	      stdout);
	option_help(COMMAND_REPLAY, 23, stdout);
	fputs("  --algo ALGO             of all-reduces: ring, tree, ps:servers=N; of a run also KIND=ALGO\n"
	      "\n  nbox replay ddp --nodes 64 --nic 10Gbps,5us --scale comm=0.5\n"
	      "  nbox replay traces/\n",
	      stdout);
	return 0;
}

struct args {
	struct source_words words;
	char *scale;                 /* owned; cut up by words_scale() */
	struct play_change *changes; /* owned */
	uint32_t n_changes;
	enum play_policy policy;
	bool is_compat;
	const char *trace;
};

static void args_deinit(struct args *a)
{
	source_words_deinit(&a->words);
	free(a->scale);
	free(a->changes);
}

static const char *const policies[] = {"event", "dpro", "daydream"};

static int take_policy(const char *value, enum play_policy *ret, struct err *err)
{
	const char *near = suggest(value, policies, ARRAY_SIZE(policies));

	for (unsigned int i = 0; i < ARRAY_SIZE(policies); i++) {
		if (strcmp(value, policies[i]) == 0) {
			*ret = (enum play_policy)i;
			return 0;
		}
	}
	return err_set(err, EINVAL, "'%s' is none of event, dpro, daydream%s%s%s", value,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int take_option(void *ctx, const struct option_word *w, struct err *err)
{
	struct args *a = ctx;

	if (w->id == FLAG_REPLAY_SCALE) {
		a->scale = strdup(w->value);
		return a->scale ? 0 : err_set(err, ENOMEM, "out of memory");
	}
	if (w->id == FLAG_REPLAY_TRACE)
		a->trace = w->value;
	else if (w->id == FLAG_REPLAY_POLICY)
		return take_policy(w->value, &a->policy, err);
	else if (w->id == FLAG_REPLAY_COMPAT)
		a->is_compat = true;
	else
		return 1;
	return 0;
}

static void print_head(const struct args *a, const struct source *s, const struct result *r)
{
	double off = r->was_median_ns > 0 ? 100 * (r->median_ns / r->was_median_ns - 1) : 0;

	printf("-- nbox replay: %u ranks, %u recorded", s->job.world, s->job.n_recorded);
	if (s->job.n_ranks > s->job.n_recorded)
		printf(", %u more told apart by what-ifs", s->job.n_ranks - s->job.n_recorded);
	printf("; policy %s\n", policies[a->policy]);
	printf("   %-14s %.3f ms%s; here %+.1f %%\n", s->is_run ? "nbox retime" : "recorded",
	       r->was_median_ns / 1e6,
	       a->n_changes || a->policy || s->costs.n_servers
		       ? " without --scale, --policy and --algo ps"
		       : "",
	       off);
}

static int replay(const struct args *a, struct source *s, struct err *err)
{
	CLEANUP(played_deinit) struct played played = {.g = NULL};
	CLEANUP(result_deinit) struct result result = {.n_parts = 0};
	const struct play p = {.job = &s->job,
			       .costs = &s->costs,
			       .policy = a->policy,
			       .changes = a->changes,
			       .n_changes = a->n_changes,
			       .daydream_bytes_per_ns = s->link_bytes_per_ns,
			       .is_daydream_compat = a->is_compat};
	int r = 0;

	if (a->policy == PLAY_DAYDREAM && !(s->link_bytes_per_ns > 0))
		return err_set(err, EINVAL, "--policy daydream: how fast is the link? --nic RATE");
	r = play(&p, &played, err);

	if (r == 0 && result_make(&s->job, &played, &result) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0 && !file_is_stdout(a->words.json) && !file_is_stdout(a->trace)) {
		print_head(a, s, &result);
		source_print_notes(s, stdout);
		result_print(&result, stdout);
	}
	if (r == 0 && a->trace)
		r = result_write_trace(&s->job, &played, a->trace, err);
	return r == 0 && a->words.json
		       ? source_write_json(s, result_json(&result), a->words.json, err)
		       : r;
}

int cmd_replay(int argc, char **argv)
{
	CLEANUP(args_deinit) struct args a = {.policy = PLAY_EVENT};
	CLEANUP(source_close) struct source s = {.has_run = false};
	struct err err = {""};
	int r = source_words_take(COMMAND_REPLAY, argc, argv, take_option, &a, &a.words, &err);
	int exit_code = 2;

	if (r == 1)
		return usage();
	if (r == 0 && a.is_compat && a.policy != PLAY_DAYDREAM)
		r = err_set(&err, EINVAL, "--daydream-compat: of --policy daydream");
	if (r == 0 && a.scale)
		r = err_prefix(&err, words_scale(a.scale, &a.changes, &a.n_changes, &err),
			       "--scale");
	if (r == 0)
		r = source_open(&a.words, &s, &err);
	if (r == 0)
		r = err_prefix(&err, words_check(a.changes, a.n_changes, &s.job, &err), "--scale");
	if (r == 0) {
		exit_code = 1;
		r = replay(&a, &s, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox replay: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? exit_code : 0;
}
