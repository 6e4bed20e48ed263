/* See residual.h. */
#include "calibrate/residual.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define FACTOR_MAX 4
#define FADES 2 /* octaves above the last one there is none */

static int by_octave(const void *a, const void *b)
{
	const struct residual_point *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->octave != y->octave)
		return x->octave < y->octave ? -1 : 1;
	return (x->log > y->log) - (x->log < y->log);
}

bool residual_counts(const struct sample *s)
{
	return s->n_nodes > 1 && sample_band(s->bytes) != BAND_LARGE;
}

size_t residual_points(const struct sample *samples, const double *ns, size_t n,
		       struct residual_point *ret)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct sample *s = &samples[i];
		double call = s->bytes / sample_size(s->kind, 1, s->n_ranks);

		if (residual_counts(s))
			ret[kept++] = (struct residual_point){s->kind, (int)lround(log2(call)),
							      sample_band(s->bytes),
							      log(fmax(ns[i], 1) / s->ns)};
	}
	if (kept)
		qsort(ret, kept, sizeof(*ret), by_octave);
	return kept;
}

size_t residual_octave(const struct residual_point *points, size_t n, double *ret_middle)
{
	size_t same = 1;
	double low, high;

	while (same < n && points[same].kind == points->kind &&
	       points[same].octave == points->octave)
		same++;
	low = points[(same - 1) / 2].log;
	high = points[same / 2].log;
	*ret_middle = fabs(low) < fabs(high) ? low : high;
	return same;
}

int residuals_find(const struct residual_point *points, size_t n, struct residuals *ret)
{
	struct residuals r = {.list = calloc(2 * n + 1, sizeof(*r.list))};
	size_t same;

	if (!r.list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i += same) {
		const struct residual_point *p = &points[i];
		double middle, most = log(FACTOR_MAX);

		same = residual_octave(p, n - i, &middle);
		r.list[r.n++] = (struct residual){p->kind, pow(2, p->octave),
						  exp(fmax(-most, fmin(-middle, most)))};
		if (i + same == n || p[same].kind != p->kind)
			r.list[r.n++] = (struct residual){p->kind, pow(2, p->octave + FADES), 1};
	}
	*ret = r;
	return 0;
}
