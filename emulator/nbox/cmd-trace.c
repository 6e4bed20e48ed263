/* nbox trace: traces of the ranks of a job, put together, by one clock, compared. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/export/out.h"
#include "nbox/json/json-file.h"
#include "nbox/trace/load.h"
#include "nbox/trace/print.h"
#include "nbox/trace/write.h"
#include "trace/align.h"
#include "trace/skew.h"

static int usage(void)
{
	fputs("usage: nbox trace merge|align|stat|export TRACE... [OPTION...]\n"
	      "       nbox trace diff A B [OPTION...]\n\n"
	      "Traces of the ranks of one job: of PyTorch's profiler, of dPRO, runs of nbox; packed by gzip or not.\n\n"
	      "  align   by how much the clocks of the hosts differ, from messages and collectives whose ends are there\n"
	      "  merge   one file of all of them, by one clock; a RECV begins when its message was sent (--out)\n"
	      "  export  one file of all of them, as they are, or with other clocks, to test what aligns traces (--out)\n"
	      "  stat    what ops take, by kind and name, and how much of it nothing hides\n"
	      "  diff    which ops and gaps take more or less in an iteration of B than of A\n\n",
	      stdout);
	option_help(COMMAND_TRACE, 23, stdout);
	return 0;
}

struct args {
	const char *verb, **words; /* words: owned list */
	size_t n;
	const char *json, *out, **skews; /* skews: owned list */
	size_t n_skews;
	uint64_t rank;
	double early_ns;
	bool has_drift, has_rank;
};

static void args_deinit(struct args *a)
{
	free(a->words);
	free(a->skews);
}

static int take_option(struct args *a, const struct option_word *w, struct err *err)
{
	int r = 0;

	if (w->id == FLAG_TRACE_JSON)
		a->json = w->value;
	else if (w->id == FLAG_TRACE_OUT)
		a->out = w->value;
	else if (w->id == FLAG_TRACE_DRIFT)
		a->has_drift = true;
	else if (w->id == FLAG_TRACE_SKEW)
		a->skews[a->n_skews++] = w->value;
	else if (w->id == FLAG_TRACE_EARLY)
		r = units_time(w->value, &a->early_ns, err);
	else {
		r = units_count(w->value, &a->rank, err);
		a->has_rank = true;
	}
	return r < 0 ? err_prefix(err, r, "%s", w->name) : 0;
}

/* Return: 0; 1: help was given; negative errno with the sentence. */
static int take_words(struct args *a, int argc, char **argv, struct err *err)
{
	static const char *const verbs[] = {"align", "merge", "export", "stat", "diff"};
	size_t verb = 0;
	int r = 0;

	a->words = calloc((size_t)argc + 1, sizeof(*a->words));
	a->skews = calloc((size_t)argc + 1, sizeof(*a->skews));
	if (!a->words || !a->skews)
		return err_set(err, ENOMEM, "no memory");
	for (int i = 1; i < argc && r >= 0;) {
		struct option_word w;

		r = option_take(COMMAND_TRACE, argc, argv, &i, &w, err);
		if (r == OPTION_NONE && !a->verb)
			a->verb = argv[i++];
		else if (r == OPTION_NONE)
			a->words[a->n++] = argv[i++];
		else if (r == 0 && w.id == FLAG_HELP)
			return usage(), 1;
		else if (r == 0)
			r = take_option(a, &w, err);
	}
	if (r < 0)
		return r;
	while (verb < ARRAY_SIZE(verbs) && (!a->verb || strcmp(verbs[verb], a->verb) != 0))
		verb++;
	if (verb == ARRAY_SIZE(verbs))
		return err_set(err, EINVAL,
			       "%s%s%s align, merge, export, stat or diff? nbox trace --help",
			       a->verb ? "'" : "", a->verb ? a->verb : "",
			       a->verb ? "':" : "which:");
	if (!a->n || (verb == 4 && a->n != 2))
		return err_set(err, EINVAL, "%s: %s", a->verb,
			       verb == 4 ? "of which two traces?" : "which traces?");
	if ((verb == 1 || verb == 2) != (a->out != NULL))
		return err_set(err, EINVAL, "%s: %s", a->verb,
			       a->out ? "writes no --out: merge and export do"
				      : "to which file? --out FILE");
	if ((a->n_skews || a->early_ns > 0) && verb != 2)
		return err_set(err, EINVAL, "--skew and --recv-early are of export");
	if (a->has_drift && verb != 0 && verb != 1)
		return err_set(err, EINVAL, "--drift: of align and merge");
	return 0;
}

static int write_trace(const struct trace *t, const char *path, struct err *err)
{
	FILE *f;
	int r = out_create(path, &f, err), closed;

	if (r < 0)
		return r;
	r = trace_print(t, f);
	closed = file_finish(f, path, err);
	return r < 0 ? err_set(err, -r, "%s: %s", path, strerror(-r)) : closed;
}

/* --- with other clocks -------------------------------------------------------------------------
 */

/* HOST=TIME[,drift=Nppm] */
static int read_skew(const struct trace *t, const char *word, double *ns, double *drift,
		     struct err *err)
{
	CLEANUP(freep) char *copy = strdup(word);
	char *equals = copy ? strchr(copy, '=') : NULL,
	     *comma = equals ? strchr(equals, ',') : NULL, *end;
	uint32_t h = 0;
	bool is_less;
	int r;

	if (!equals)
		return err_set(err, EINVAL, "--skew %s: HOST=TIME[,drift=Nppm]", word);
	*equals = '\0';
	while (h < t->n_hosts && strcmp(trace_name(t, t->hosts[h]), copy) != 0)
		h++;
	if (h == t->n_hosts)
		return err_set(err, EINVAL, "--skew: no trace is of host '%s': of %s, for one",
			       copy, trace_name(t, t->hosts[0]));
	if (comma) {
		*comma = '\0';
		drift[h] =
			strncmp(comma + 1, "drift=", 6) == 0 ? strtod(comma + 7, &end) * 1e-6 : NAN;
		if (!(fabs(drift[h]) < 0.01) || strcmp(end, "ppm") != 0)
			return err_set(err, EINVAL, "--skew %s: drift=Nppm, below 10000ppm", word);
	}
	is_less = equals[1] == '-';
	r = units_time(equals + 1 + (is_less || equals[1] == '+'), &ns[h], err);
	if (is_less)
		ns[h] = -ns[h];
	return r < 0 ? err_prefix(err, r, "--skew %s", word) : 0;
}

static int set_clocks(const struct args *a, struct trace *t, struct err *err)
{
	CLEANUP(freep) double *ns = calloc(t->n_hosts + 1, sizeof(*ns));
	CLEANUP(freep) double *drift = calloc(t->n_hosts + 1, sizeof(*drift));
	int r = ns && drift ? 0 : err_set(err, ENOMEM, "no memory");

	for (size_t i = 0; r == 0 && i < a->n_skews; i++)
		r = read_skew(t, a->skews[i], ns, drift, err);
	return r < 0 ? r : skew_apply(t, &(struct skew){ns, drift, a->early_ns, 1});
}

/* --- the verbs ---------------------------------------------------------------------------------
 */

static int align(const struct args *a, struct trace *t, struct err *err)
{
	CLEANUP(clocks_deinit) struct clocks c = {0};
	uint64_t reversed[2] = {align_reversed(t), 0};
	int r = align_find(t, a->has_drift, &c, err);

	if (r == 0)
		r = align_apply(t, &c);
	if (r < 0)
		return r;
	reversed[1] = align_reversed(t);
	if (!a->json || strcmp(a->json, "-") != 0)
		print_clocks(t, &c, reversed, a->out && strcmp(a->out, "-") == 0 ? stderr : stdout);
	if (a->json)
		r = json_file_write(json_clocks(t, &c, reversed), a->json, err);
	return r == 0 && a->out ? write_trace(t, a->out, err) : r;
}

static int find_stat(const struct args *a, const struct trace *t, struct stat *ret, struct err *err)
{
	uint32_t rank =
		a->has_rank && a->rank < TRACE_NONE ? trace_rank(t, (uint32_t)a->rank) : TRACE_NONE;

	if (a->has_rank && rank == TRACE_NONE)
		return err_set(err, EINVAL, "--rank %llu: no trace is of that rank",
			       (unsigned long long)a->rank);
	return stat_make(t, rank, ret);
}

static int count(const struct args *a, const struct trace *t, struct err *err)
{
	CLEANUP(stat_deinit) struct stat s = {0};
	int r = find_stat(a, t, &s, err);

	if (r == 0 && (!a->json || strcmp(a->json, "-") != 0))
		print_stat(&s, stdout);
	return r == 0 && a->json ? json_file_write(json_stat(&s), a->json, err) : r;
}

static int compare(const struct args *a, const struct trace *t, struct err *err)
{
	CLEANUP(trace_deinit) struct trace other = {0};
	CLEANUP(stat_deinit) struct stat first = {0};
	CLEANUP(stat_deinit) struct stat second = {0};
	int r = trace_load(a->words + 1, 1, &other, err);

	if (r == 0)
		r = find_stat(a, t, &first, err);
	if (r == 0)
		r = find_stat(a, &other, &second, err);
	if (r == 0 && (!a->json || strcmp(a->json, "-") != 0))
		print_diff(&first, &second, stdout);
	return r == 0 && a->json ? json_file_write(json_diff(&first, &second), a->json, err) : r;
}

int cmd_trace(int argc, char **argv)
{
	CLEANUP(args_deinit) struct args a = {.n = 0};
	CLEANUP(trace_deinit) struct trace t = {0};
	struct err err = {""};
	int r = take_words(&a, argc, argv, &err), code = 2;

	if (r == 1)
		return 0;
	if (r == 0)
		r = trace_load(a.words, strcmp(a.verb, "diff") == 0 ? 1 : a.n, &t, &err);
	if (r == 0 && (a.n_skews || a.early_ns > 0))
		r = set_clocks(&a, &t, &err);
	if (r == 0) {
		code = 1;
		r = strcmp(a.verb, "stat") == 0     ? count(&a, &t, &err)
		    : strcmp(a.verb, "diff") == 0   ? compare(&a, &t, &err)
		    : strcmp(a.verb, "export") == 0 ? write_trace(&t, a.out, &err)
						    : align(&a, &t, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox trace: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? code : 0;
}
