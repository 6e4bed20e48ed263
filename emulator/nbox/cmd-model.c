/* nbox model: what a fitted model says, whether it is sound, and how it looks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/suggest.h"
#include "base/units.h"
#include "calibrate/load.h"
#include "nbox/commands.h"
#include "nbox/fit/eval.h"
#include "nbox/fit/plot.h"
#include "nbox/fit/words.h"

#define MATRIX_MAX (256u << 20)

struct request {
	const char *verb, *file, *svg, *matrix;
	struct eval_sizes sizes;
	uint32_t n_ranks, n_nodes; /* 0 */
};

static const char *const verbs[] = {"eval", "check", "plot"};

static int usage(void)
{
	fputs("usage: nbox model eval|check|plot [OPTION...] FILE\n\n"
	      "FILE: what nbox fit has written.\n"
	      "eval: times by size. check: whether more bytes never take less time, and nothing jumps; exit code 1 where not.\n"
	      "plot: points, fit and residuals as SVG.\n\n",
	      stdout);
	option_help(COMMAND_MODEL, 26, stdout);
	return 0;
}

/* "1K:1G:2" */
static int take_sizes(const char *value, struct eval_sizes *ret, struct err *err)
{
	char text[96], *words[3], *rest = text;
	uint64_t min, max;
	double factor;
	int r;

	snprintf(text, sizeof(text), "%s", value);
	for (int i = 0; i < 3; i++)
		words[i] = strsep(&rest, ":");
	if (!words[2] || rest)
		return err_set(err, EINVAL, "--sizes '%s': MIN:MAX:FACTOR, such as 1K:1G:2", value);
	r = units_bytes(words[0], &min, err);
	r = r < 0 ? r : units_bytes(words[1], &max, err);
	r = r < 0 ? r : units_ratio(words[2], &factor, err);
	if (r < 0)
		return err_prefix(err, r, "--sizes '%s'", value);
	if (!min || max < min || !(factor >= 1.01))
		return err_set(err, EINVAL,
			       "--sizes '%s': from at least one byte to no less, by a factor of at "
			       "least 1.01",
			       value);
	*ret = (struct eval_sizes){(double)min, (double)max, factor};
	return 0;
}

static int take_option(struct request *q, const struct option_word *w, struct err *err)
{
	if (w->id == FLAG_SIZES)
		return take_sizes(w->value, &q->sizes, err);
	if (w->id == FLAG_MODEL_RANKS)
		return words_count(w->name, w->value, &q->n_ranks, err);
	if (w->id == FLAG_MODEL_NODES)
		return words_count(w->name, w->value, &q->n_nodes, err);
	*(w->id == FLAG_MODEL_MATRIX ? &q->matrix : &q->svg) = w->value;
	return 0;
}

static int take_word(struct request *q, const char *word, struct err *err)
{
	const char *near;

	if (q->file)
		return err_set(err, EINVAL, "one file at a time: '%s' and '%s'", q->file, word);
	if (q->verb) {
		q->file = word;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(word, verbs[i]) == 0)
			q->verb = verbs[i];
	near = suggest(word, verbs, ARRAY_SIZE(verbs));
	return q->verb ? 0
		       : err_set(err, EINVAL, "'%s' is none of eval, check, plot%s%s%s", word,
				 near ? "; did you mean '" : "", near ? near : "",
				 near ? "'?" : "; nbox models lists models");
}

/* What belongs together. */
static int check_request(const struct request *q, struct err *err)
{
	if (!q->file)
		return err_set(err, EINVAL, "%s",
			       q->verb ? "of which file?"
				       : "what? nbox model eval|check|plot FILE; see --help");
	if (strcmp(q->verb, "plot") == 0 && !q->svg)
		return err_set(err, EINVAL, "plot: where to? --svg FILE");
	if (strcmp(q->verb, "plot") != 0 && q->svg)
		return err_set(err, EINVAL, "--svg is plot's");
	if (q->matrix && (strcmp(q->verb, "eval") != 0 || q->n_ranks))
		return err_set(err, EINVAL, "--matrix is eval's, and says itself how many ranks");
	if (q->n_nodes && !q->matrix && (!q->n_ranks || q->n_nodes > q->n_ranks))
		return err_set(err, EINVAL, "--nodes %u: with --ranks of at least as many",
			       q->n_nodes);
	return 0;
}

static int eval(const struct request *q, const struct fitted *f, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	CLEANUP(freep) uint64_t *bytes = NULL;
	uint32_t n_ranks;
	struct skew skew;
	size_t len;
	int r;

	if (!q->matrix) {
		eval_print(f, &q->sizes, q->n_ranks, q->n_nodes, stdout);
		return 0;
	}
	r = file_read(q->matrix, MATRIX_MAX, &text, &len, err);
	r = r < 0 ? r : skew_read(q->matrix, text, &bytes, &n_ranks, err);
	if (r < 0)
		return r;
	skew = skew_of(bytes, n_ranks);
	return eval_skew(f, &skew, n_ranks, q->n_nodes, stdout)
		       ? 0
		       : err_set(err, EINVAL, "%s has no curve of alltoall", q->file);
}

static int plot(const struct fitted *f, const char *path, struct err *err)
{
	FILE *to;
	int r = file_create(path, &to, err), drawn;

	if (r < 0)
		return r;
	drawn = plot_svg(f, to);
	r = file_finish(to, path, err);
	return r < 0 ? r : drawn;
}

int cmd_model(int argc, char **argv)
{
	struct request q = {.sizes = {1024, 1 << 30, 2}};
	struct option_word w;
	struct err err = {""};
	struct fitted f;
	bool is_sound = true;
	int r = 0, code;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(COMMAND_MODEL, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage();
		r = r == OPTION_NONE ? take_word(&q, argv[i++], &err)
		    : r == 0         ? take_option(&q, &w, &err)
				     : r;
	}
	if (r == 0)
		r = check_request(&q, &err);
	if (r < 0) {
		fprintf(stderr, "nbox model: %s\n", err.text);
		return 2;
	}
	r = fitted_load(q.file, &f, &err);
	code = r < 0 || strcmp(q.verb, "eval") == 0 ? 2 : 1;
	if (r == 0) {
		if (strcmp(q.verb, "eval") == 0)
			r = eval(&q, &f, &err);
		else if (strcmp(q.verb, "check") == 0)
			is_sound = eval_check(&f, stdout);
		else
			r = plot(&f, q.svg, &err);
		fitted_deinit(&f);
	}
	if (r < 0)
		fprintf(stderr, "nbox model: %s\n", err.text);
	return r < 0 ? code : !is_sound;
}
