/* nbox fit: a delay model from measured times. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/plain.h"
#include "calibrate/write.h"
#include "fabric/read/open.h"
#include "nbox/commands.h"
#include "nbox/fit/fabric-fit.h"
#include "nbox/fit/inputs.h"
#include "nbox/fit/print.h"
#include "nbox/fit/words.h"

struct request {
	struct read_hints hints;
	enum curve_form form;
	const char *fabric, *out;
	const char **inputs; /* owned: the list */
	size_t n_inputs;
};

static int usage(void)
{
	fputs("usage: nbox fit [OPTION...] INPUT...\n\n"
	      "Fits a curve to the times of each collective and number of ranks: alpha-beta, a sigmoid with three regions, or a\n"
	      "table, whichever predicts best what was held out. INPUT: the text or the JSON (-J) of nccl-tests, the JSON of NCCL\n"
	      "Inspector, the text of PARAM's comms benchmark, CSV with the columns bytes, us and perhaps kind, ranks, nodes, or\n"
	      "the results directory of a run in which two or more ranks are real. What is written is a model:\n"
	      "nbox run --model fitted:file=FILE; nbox model looks at it. With --fabric it is a fabric: nbox run --fabric FILE.\n\n",
	      stdout);
	option_help(COMMAND_FIT, 22, stdout);
	return 0;
}

static int take_form(const char *value, enum curve_form *ret, struct err *err)
{
	for (enum curve_form f = 0; f < CURVE_FORMS; f++)
		if (strcmp(value, curve_form_names[f]) == 0) {
			*ret = f;
			return 0;
		}
	*ret = FIT_AUTO;
	return strcmp(value, "auto") == 0
		       ? 0
		       : words_unknown("--kind", value, options[FLAG_FIT_FORM].choices,
				       CURVE_FORMS + 1, err);
}

static int take_collective(const char *value, int *ret, struct err *err)
{
	const char *names[COLL_KINDS];

	for (uint32_t i = 0; i < COLL_KINDS; i++)
		names[i] = coll_kind_name(i);
	*ret = coll_kind_parse(value);
	return *ret < 0 ? words_unknown("--coll", value, names, COLL_KINDS, err) : 0;
}

static int take_option(struct request *q, const struct option_word *w, struct err *err)
{
	switch ((unsigned int)w->id) {
	case FLAG_FIT_COLL:
		return take_collective(w->value, &q->hints.kind, err);
	case FLAG_FIT_RANKS:
		return words_count(w->name, w->value, &q->hints.n_ranks, err);
	case FLAG_FIT_NODES:
		return words_count(w->name, w->value, &q->hints.n_nodes, err);
	case FLAG_FIT_FORM:
		return take_form(w->value, &q->form, err);
	case FLAG_FIT_FABRIC:
		q->fabric = w->value;
		return 0;
	case FLAG_FIT_IN_PLACE:
		q->hints.in_place = true;
		return 0;
	default:
		q->out = w->value;
		return 0;
	}
}

/* Fits all groups; prints each. */
static int fit_all(const struct samples *s, enum curve_form form, struct fitted *to,
		   struct err *err)
{
	struct fit_scores scores;
	size_t from = 0;
	struct curve c, *more;
	int r;

	while ((r = samples_next(s, &from, &c)) == 1) {
		more = realloc(to->curves, (to->n + 1) * sizeof(*more));
		if (!more) {
			curve_deinit(&c);
			return -ENOMEM;
		}
		to->curves = more;
		more[to->n++] = c;
		r = fit_curve(&more[to->n - 1], form, &scores, err);
		if (r < 0)
			return r;
		fit_print(&more[to->n - 1], &scores, stdout);
	}
	return r;
}

/* The names of the inputs, as many as there is room for. Return: @buf. */
static char *name_sources(const struct request *q, char *buf, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < q->n_inputs && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? " " : "",
					 q->inputs[i]);
	return plain_text(buf);
}

/* Only what can be read again. */
static int write_model(const struct fitted *f, const char *path, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	char sentence[FITTED_SENTENCE];
	size_t len;
	FILE *to = open_memstream(&text, &len);
	struct fitted again;
	int r;

	if (!to)
		return err_set(err, ENOMEM, "out of memory");
	fitted_write(f, to);
	r = file_close(to);
	if (r < 0)
		return err_set(err, -r, "%s: %s", path, strerror(-r));
	if (len >= FITTED_BYTES_MAX || fitted_parse(path, text, len, &again, sentence) < 0)
		return err_set(
			err, EFBIG,
			"%zu curves are more than a model holds: fit one collective at a time "
			"(--coll), or fewer numbers of ranks",
			f->n);
	fitted_deinit(&again);
	r = file_create(path, &to, err);
	if (r < 0)
		return r;
	fwrite(text, 1, len, to);
	return file_finish(to, path, err);
}

static int fit_curves(const struct request *q, const struct samples *samples, struct err *err)
{
	struct fitted f = {.curves = NULL};
	time_t now = time(NULL);
	struct tm tm;
	int r = fit_all(samples, q->form, &f, err);

	name_sources(q, f.source, sizeof(f.source));
	strftime(f.date, sizeof(f.date), "%Y-%m-%d", gmtime_r(&now, &tm));
	if (r == 0 && q->out)
		r = write_model(&f, q->out, err);
	if (r == 0 && q->out)
		printf("written: %s, for --model fitted:file=%s\n", q->out, q->out);
	fitted_deinit(&f);
	return r;
}

static int check_fabric(const char *fabric, struct err *err)
{
	struct fabric *f = NULL;
	int r = fabric ? fabric_open(fabric, 1, 0, &f, err) : 0;

	fabric_free(f);
	return r;
}

/* *ret_code: the exit code where it fails. */
static int fit(const struct request *q, int *ret_code, struct err *err)
{
	struct samples samples = {.list = NULL};
	char source[FITTED_SOURCE];
	int r = check_fabric(q->fabric, err);

	r = r == 0 ? inputs_read(q->inputs, q->n_inputs, &q->hints, &samples, err) : r;
	*ret_code = r < 0 ? 2 : 1;
	samples_merge(&samples);
	if (r == 0 && q->fabric)
		r = fabric_fit(q->fabric, &samples, name_sources(q, source, sizeof(source)), q->out,
			       err);
	else if (r == 0)
		r = fit_curves(q, &samples, err);
	samples_deinit(&samples);
	return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}

int cmd_fit(int argc, char **argv)
{
	CLEANUP(freep) const char **inputs = calloc((size_t)argc, sizeof(*inputs));
	struct request q = {.hints = {.kind = -1}, .form = FIT_AUTO, .inputs = inputs};
	struct option_word w;
	struct err err = {""};
	int r = inputs ? 0 : err_set(&err, ENOMEM, "out of memory"), code;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(COMMAND_FIT, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage();
		if (r == 0) {
			r = take_option(&q, &w, &err);
		} else if (r == OPTION_NONE) {
			q.inputs[q.n_inputs++] = argv[i++];
			r = 0;
		}
	}
	if (r == 0 && q.fabric && q.form != FIT_AUTO)
		r = err_set(&err, EINVAL, "--kind is of curves; --fabric fits none");
	if (r == 0 && !q.n_inputs)
		r = err_set(&err, EINVAL, "of what? nbox fit INPUT...; see nbox fit --help");
	if (r < 0) {
		fprintf(stderr, "nbox fit: %s\n", err.text);
		return 2;
	}
	r = fit(&q, &code, &err);
	if (r < 0)
		fprintf(stderr, "nbox fit: %s\n", err.text);
	return r < 0 ? code : 0;
}
