/* See score.h. */
#include "calibrate/score.h"

#include <math.h>

void score_add(struct score_sum *s, double predicted, double measured)
{
	double error = fabs(predicted - measured) / measured;

	s->log_sum += log(error + SCORE_LEAST);
	s->sum += error;
	s->max = fmax(s->max, error);
	s->n++;
}

struct score score_of(const struct score_sum *s)
{
	double n = (double)s->n;

	if (!s->n)
		return (struct score){.n = 0};
	return (struct score){exp(s->log_sum / n), s->sum / n, s->max, s->n};
}

struct score score_curve(const struct curve *c, const struct curve_point *points, size_t n)
{
	struct score_sum s = {.n = 0};

	for (size_t i = 0; i < n; i++)
		score_add(&s, curve_ns(c, points[i].bytes), points[i].ns);
	return score_of(&s);
}
