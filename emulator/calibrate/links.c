/* See links.h. The cost is the mean of the errors' absolute logarithms, so that a first launch,
 * which takes long, does not pull at the others. */
#include "calibrate/links.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "calibrate/minimize.h"

#define SAMPLES_MIN 8
#define BUDGET 120 /* questions to the predictor */
#define PULL 1e-3  /* towards a factor of one, for numbers that nothing depends on */
#define INDIFFERENT 2e-3

const char *const link_number_names[LINK_NUMBERS] = {"network latency", "NIC bandwidth",
						     "GPU port bandwidth", "GPU port latency"};
const char *const links_band_names[LINKS_BANDS] = {"up to 64 KiB", "between", "from 64 MiB up",
						   "all"};

/* How far a number may be from what the fabric says, as a logarithm: a latency, where software
 * adds to it, much further than a bandwidth. */
static const double bounds[LINK_NUMBERS] = {2.5, 1, 1, 2.5};

struct half {
	struct sample *list;
	double *ns; /* predicted */
	size_t n;
};

struct fit {
	links_predict predict;
	void *predictor;
	struct half fitted, held_out;
	struct err *err;
};

static int predict(struct fit *f, const double *logs, struct half *half)
{
	double factors[LINK_NUMBERS];

	for (int i = 0; i < LINK_NUMBERS; i++)
		factors[i] = exp(logs[i]);
	return f->predict(f->predictor, factors, half->list, half->n, half->ns, f->err);
}

static double cost(void *ctx, const double *logs)
{
	struct fit *f = ctx;
	double sum = 0, pull = 0;
	int r = predict(f, logs, &f->fitted);

	if (r < 0)
		return r;
	for (size_t i = 0; i < f->fitted.n; i++)
		sum += fabs(log(fmax(f->fitted.ns[i], 1) / f->fitted.list[i].ns));
	for (int i = 0; i < LINK_NUMBERS; i++)
		pull += logs[i] * logs[i];
	return sum / (double)f->fitted.n + PULL * pull;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool is_in(double bytes, int band)
{
	return band == LINKS_ALL || band == (bytes <= 65536      ? LINKS_SMALL
					     : bytes >= 67108864 ? LINKS_LARGE
								 : LINKS_BETWEEN);
}

static int judge(const struct half *half, struct links_error ret[LINKS_BANDS])
{
	CLEANUP(freep) double *errors = calloc(half->n, sizeof(*errors));

	if (!errors)
		return -ENOMEM;
	for (int band = 0; band < LINKS_BANDS; band++) {
		size_t n = 0;

		for (size_t i = 0; i < half->n; i++)
			if (is_in(half->list[i].bytes, band))
				errors[n++] = fabs(half->ns[i] / half->list[i].ns - 1);
		qsort(errors, n, sizeof(*errors), by_value);
		ret[band] = (struct links_error){.n = n};
		if (n)
			ret[band] = (struct links_error){(errors[(n - 1) / 2] + errors[n / 2]) / 2,
							 errors[n - 1], n};
	}
	return 0;
}

/* Every second one of a group, whose last is fitted to. */
static void split(const struct samples *s, struct fit *f)
{
	size_t in_group = 0;

	for (size_t i = s->n; i-- > 0; in_group++) {
		const struct sample *a = &s->list[i], *b = &s->list[i + 1];
		struct half *half;

		if (i + 1 < s->n &&
		    (a->kind != b->kind || a->n_ranks != b->n_ranks || a->n_nodes != b->n_nodes))
			in_group = 0;
		half = in_group % 2 ? &f->held_out : &f->fitted;
		half->list[half->n++] = *a;
	}
}

/* A number that the times hardly depend on stays as the fabric has it. */
static double drop(struct fit *f, double *logs, double least)
{
	for (int i = 0; i < LINK_NUMBERS && least >= 0; i++) {
		double kept = logs[i], without;

		logs[i] = 0;
		without = cost(f, logs);
		if (without < 0)
			return without;
		if (without > least * (1 + INDIFFERENT))
			logs[i] = kept;
		else
			least = without;
	}
	return least;
}

static int search(struct fit *f, struct links_fit *ret)
{
	double logs[LINK_NUMBERS] = {0}, least;
	int r = predict(f, logs, &f->held_out);

	r = r < 0 ? r : judge(&f->held_out, ret->before);
	if (r < 0)
		return r;
	least = drop(f, logs, minimize(cost, f, LINK_NUMBERS, bounds, BUDGET, logs));
	if (least < 0)
		return (int)least;
	r = predict(f, logs, &f->held_out);
	for (int i = 0; i < LINK_NUMBERS; i++)
		ret->factors[i] = exp(logs[i]);
	return r < 0 ? r : judge(&f->held_out, ret->after);
}

int links_fit(const struct samples *samples, links_predict predictor, void *ctx,
	      struct links_fit *ret, struct err *err)
{
	size_t n = samples->n;
	CLEANUP(freep) struct sample *lists = calloc(2 * n + 1, sizeof(*lists));
	CLEANUP(freep) double *times = calloc(2 * n + 1, sizeof(*times));
	struct fit f = {.predict = predictor, .predictor = ctx, .err = err};
	struct links_fit found;
	int r;

	if (!lists || !times)
		return err_set(err, ENOMEM, "out of memory");
	if (n < SAMPLES_MIN)
		return err_set(err, EINVAL, "%zu times were measured; to fit links takes %d", n,
			       SAMPLES_MIN);
	f.fitted = (struct half){lists, times, 0};
	f.held_out = (struct half){lists + n, times + n, 0};
	split(samples, &f);
	r = search(&f, &found);
	if (r == 0)
		*ret = found;
	return r;
}
