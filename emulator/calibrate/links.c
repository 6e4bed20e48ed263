/* See links.h. The cost is the mean of the errors' absolute logarithms, so that a first launch,
 * which takes long, does not pull at the others; of small, middle and large sizes alike, however
 * many there are of each. */
#include "calibrate/links.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "calibrate/minimize.h"

#define SAMPLES_MIN 4
#define BUDGET 150 /* questions to the predictor */
#define PULL 1e-3  /* towards a factor of one, for numbers that nothing depends on */
#define INDIFFERENT 2e-3
/* How much of an error counts that all ops of its size have. It is the residuals' to mend; only
 * where nothing else tells links apart it tells them. */
#define ALIKE 0.1

const char *const link_number_names[LINK_NUMBERS] = {"network latency", "each switch more",
						     "NIC bandwidth", "GPU port bandwidth",
						     "GPU port latency"};
const char *const links_band_names[LINKS_BANDS] = {"up to 64 KiB", "64 KiB to 64 MiB",
						   "from 64 MiB up", "all"};

/* How far below what the fabric says a number may be. */
static const double least[LINK_NUMBERS] = {0.1, 0.1, 0.3, 0.3, 0.1};

struct half {
	struct sample *list;
	double *ns; /* predicted */
	size_t n;
};

struct fit {
	links_predict predict;
	void *predictor;
	struct half fitted, held_out;
	struct residual_point *points; /* room for all samples */
	struct err *err;
};

void links_fit_deinit(struct links_fit *fit)
{
	free(fit->residuals.list);
	fit->residuals = (struct residuals){.n = 0};
}

static int predict(struct fit *f, const double *logs, const struct residuals *residuals,
		   struct half *half)
{
	double factors[LINK_NUMBERS];

	for (int i = 0; i < LINK_NUMBERS; i++)
		factors[i] = exp(logs[i]);
	return f->predict(f->predictor, factors, residuals, half->list, half->n, half->ns, f->err);
}

static double error_of(const struct half *half, size_t i)
{
	return fabs(log(fmax(half->ns[i], 1) / half->list[i].ns));
}

static double cost(void *ctx, const double *logs)
{
	static const struct residuals none = {.n = 0};
	struct fit *f = ctx;
	double sums[LINKS_ALL] = {0}, n[LINKS_ALL] = {0}, sum = 0, pull = 0, bands = 0, middle;
	int r = predict(f, logs, &none, &f->fitted);
	size_t n_points, same;

	if (r < 0)
		return r;
	for (size_t i = 0; i < f->fitted.n; i++) {
		int band = sample_band(f->fitted.list[i].bytes);

		n[band]++;
		if (!residual_counts(&f->fitted.list[i]))
			sums[band] += error_of(&f->fitted, i);
	}
	n_points = residual_points(f->fitted.list, f->fitted.ns, f->fitted.n, f->points);
	for (size_t i = 0; i < n_points; i += same) {
		same = residual_octave(&f->points[i], n_points - i, &middle);
		for (size_t j = i; j < i + same; j++)
			sums[f->points[j].band] += (1 - ALIKE) * fabs(f->points[j].log - middle) +
						   ALIKE * fabs(f->points[j].log);
	}
	for (int band = 0; band < LINKS_ALL; band++) {
		if (!n[band])
			continue;
		sum += sums[band] / n[band];
		bands++;
	}
	for (int i = 0; i < LINK_NUMBERS; i++)
		pull += logs[i] * logs[i];
	return sum / bands + PULL * pull;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int judge(const struct half *half, struct links_error ret[LINKS_BANDS])
{
	CLEANUP(freep) double *errors = calloc(half->n, sizeof(*errors));

	if (!errors)
		return -ENOMEM;
	for (int band = 0; band < LINKS_BANDS; band++) {
		size_t n = 0;

		for (size_t i = 0; i < half->n; i++)
			if (band == LINKS_ALL || band == sample_band(half->list[i].bytes))
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
static double drop(struct fit *f, double *logs, double now)
{
	for (int i = 0; i < LINK_NUMBERS && now >= 0; i++) {
		double kept = logs[i], without;

		logs[i] = 0;
		without = cost(f, logs);
		if (without < 0)
			return without;
		if (without > now * (1 + INDIFFERENT))
			logs[i] = kept;
		else
			now = without;
	}
	return now;
}

/* The least cost at f->fitted. Return: 0; negative errno with the sentence. */
static int search(struct fit *f, const double *most, int budget, double logs[LINK_NUMBERS])
{
	struct minimize_bounds bounds[LINK_NUMBERS];
	double reached;

	for (int i = 0; i < LINK_NUMBERS; i++)
		bounds[i] = (struct minimize_bounds){log(least[i]), fmax(log(most[i]), 0)};
	reached = drop(f, logs, minimize(cost, f, LINK_NUMBERS, bounds, budget, logs));
	return reached < 0 ? (int)reached : 0;
}

static int find_residuals(struct fit *f, const double *logs, struct residuals *ret)
{
	static const struct residuals none = {.n = 0};
	int r = predict(f, logs, &none, &f->fitted);

	return r < 0 ? r
		     : residuals_find(f->points,
				      residual_points(f->fitted.list, f->fitted.ns, f->fitted.n,
						      f->points),
				      ret);
}

/* Judges what is held out. Return: the mean error; negative errno with the sentence. */
static double try_held_out(struct fit *f, const double *logs, const struct residuals *residuals,
			   struct links_error ret[LINKS_BANDS])
{
	double sum = 0;
	int r = predict(f, logs, residuals, &f->held_out);

	r = r < 0 ? r : judge(&f->held_out, ret);
	for (size_t i = 0; r == 0 && i < f->held_out.n; i++)
		sum += error_of(&f->held_out, i);
	return r < 0 ? r : sum / (double)f->held_out.n;
}

/* Before, and after a fit to the other half, which leaves @logs. Return: whether residuals help;
 * negative errno with the sentence. */
static int try_halves(struct fit *f, const double *most, double logs[LINK_NUMBERS],
		      struct links_fit *ret)
{
	struct residuals none = {.n = 0}, residuals = none;
	struct links_error after[LINKS_BANDS];
	double without = try_held_out(f, logs, &none, ret->before), with = 0;
	int r = without < 0 ? (int)without : search(f, most, BUDGET, logs);

	r = r < 0 ? r : find_residuals(f, logs, &residuals);
	if (r == 0) {
		without = try_held_out(f, logs, &none, ret->after);
		with = without < 0 ? without : try_held_out(f, logs, &residuals, after);
		r = with < 0 ? (int)with : with < without;
	}
	if (r == 1)
		memcpy(ret->after, after, sizeof(after));
	free(residuals.list);
	return r;
}

int links_fit(const struct samples *samples, const double most[LINK_NUMBERS],
	      links_predict predictor, void *ctx, struct links_fit *ret, struct err *err)
{
	size_t n = samples->n;
	CLEANUP(freep) struct sample *lists = calloc(2 * n + 1, sizeof(*lists));
	CLEANUP(freep) double *times = calloc(2 * n + 1, sizeof(*times));
	CLEANUP(freep) struct residual_point *points = calloc(n + 1, sizeof(*points));
	struct fit f = {.predict = predictor, .predictor = ctx, .points = points, .err = err};
	double logs[LINK_NUMBERS] = {0};
	struct links_fit found = {.residuals.n = 0};
	int helps, r;

	if (!lists || !times || !points)
		return err_set(err, ENOMEM, "out of memory");
	if (n < SAMPLES_MIN)
		return err_set(err, EINVAL,
			       "%zu of the %d times were measured that a fit of links needs", n,
			       SAMPLES_MIN);
	f.fitted = (struct half){lists, times, 0};
	f.held_out = (struct half){lists + n, times + n, 0};
	split(samples, &f);
	r = helps = try_halves(&f, most, logs, &found);
	if (r >= 0) {
		f.fitted = (struct half){samples->list, times, n}; /* on from there */
		r = search(&f, most, BUDGET / 3, logs);
	}
	if (r == 0 && helps)
		r = find_residuals(&f, logs, &found.residuals);
	for (int i = 0; i < LINK_NUMBERS; i++)
		found.factors[i] = exp(logs[i]);
	if (r == 0)
		*ret = found;
	return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}
