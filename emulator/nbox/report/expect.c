/* See expect.h. */
#include "nbox/report/expect.h"

#include <math.h>
#include <stdio.h>

#include "base/plain.h"

static double stat_of(const struct report_stat *s, enum expect_stat which)
{
	const double values[EXPECT_STATS] = {
		[EXPECT_MEAN] = s->mean, [EXPECT_MIN] = s->min, [EXPECT_P25] = s->p25,
		[EXPECT_P50] = s->p50,   [EXPECT_P75] = s->p75, [EXPECT_P95] = s->p95,
		[EXPECT_P99] = s->p99,   [EXPECT_MAX] = s->max,
	};

	return s->n ? values[which] : NAN;
}

/* NAN: the run has no such figure. */
static double figure(const struct report *r, const struct expect *e, int exit_code)
{
	const double values[EXPECT_METRICS] = {
		[EXPECT_ITERATION_MS] = stat_of(&r->step_ns, e->stat) / 1e6,
		[EXPECT_EXPOSED_MS] = r->exposed_ns / 1e6,
		[EXPECT_INJECTED_MS] = r->injected_ns / 1e6,
		[EXPECT_MODELLED_MS] = r->modelled_ns / 1e6,
		[EXPECT_SHARED_MS] = r->shared_ns / 1e6,
		[EXPECT_QUEUED_MS] = r->queued_ns / 1e6,
		[EXPECT_VIRTUAL_MS] = r->virtual_ns / 1e6,
		[EXPECT_WALL_MS] = r->wall_ns / 1e6,
		[EXPECT_LATENESS_US] = stat_of(&r->lateness_ns, e->stat) / 1e3,
		[EXPECT_STEPS] = (double)r->n_steps,
		[EXPECT_OPS] = (double)r->n_ops,
		[EXPECT_EARLY_GATES] = (double)r->n_early,
		[EXPECT_WARNINGS] = r->n_warnings,
		[EXPECT_EXIT_CODE] = exit_code < 0 ? NAN : exit_code,
	};

	return values[e->metric];
}

void report_expect(struct report *r, const struct expect *list, size_t n,
		   const char *(*text)(const void *ctx, size_t i), const void *ctx, int exit_code)
{
	for (size_t i = 0; i < n && r->n_expects < REPORT_EXPECTS_MAX; i++) {
		struct report_expect *x = &r->expects[r->n_expects++];

		snprintf(x->text, sizeof(x->text), "%s", text(ctx, i));
		plain_text(x->text);
		x->got = figure(r, &list[i], exit_code);
		x->is_met = !isnan(x->got) && expect_is_met(&list[i], x->got);
	}
}

static const char *text_of(const void *ctx, size_t i)
{
	(void)i;
	return ctx;
}

void report_expect_of(struct report *r, const struct config *c, int exit_code)
{
	for (size_t i = 0; i < c->n_expects; i++) {
		report_expect(r, &c->expects[i], 1, text_of, c->values[CONFIG_EXPECT].items[i].text,
			      exit_code);
		if (exit_code < 0 && c->expects[i].metric == EXPECT_EXIT_CODE)
			r->expects[r->n_expects - 1].is_left_out = true;
	}
}

bool report_is_met(const struct report *r)
{
	for (uint32_t i = 0; i < r->n_expects; i++)
		if (!r->expects[i].is_met && !r->expects[i].is_left_out)
			return false;
	return true;
}
