/* See print.h. */
#include "nbox/trace/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ROWS 30 /* of text */
#define SMALL_MS 0.001

static const char *kind_of(const struct stat_row *row)
{
	return row->kind == TRACE_KINDS ? "gap" : trace_kind_name(row->kind);
}

void print_stat(const struct stat *s, FILE *to)
{
	fprintf(to, "-- nbox trace: %u ranks, %u iterations, %.3f ms each\n", s->n_ranks,
		s->n_iterations, s->iteration_ns / 1e6);
	fprintf(to, "%10s  %9s  %12s  %7s  %12s  %s\n", "kind", "count", "mean, us", "share",
		"exposed", "name");
	for (uint32_t i = 0; i < s->n_rows && i < ROWS; i++) {
		const struct stat_row *r = &s->rows[i];

		fprintf(to, "%10s  %9" PRIu64 "  %12.3f  %5.1f %%  %10.1f %%  %.80s\n", kind_of(r),
			r->n, r->ns / (double)r->n / 1e3, 100 * r->ns / fmax(1, s->ranks_ns),
			100 * r->exposed_ns / fmax(1, s->ranks_ns), r->name);
	}
	if (s->n_rows > ROWS)
		fprintf(to, "%10s  %u more: --json has all\n", "", s->n_rows - ROWS);
}

json_t *json_stat(const struct stat *s)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < s->n_rows; i++) {
		const struct stat_row *r = &s->rows[i];

		json_array_append_new(rows,
				      json_pack("{ss, ss, sI, sf, sf, sf, sf}", "kind", kind_of(r),
						"name", r->name, "count", (json_int_t)r->n,
						"mean_us", r->ns / (double)r->n / 1e3,
						"iteration_ms", stat_each_ms(s, r), "share",
						r->ns / fmax(1, s->ranks_ns), "exposed",
						r->exposed_ns / fmax(1, s->ranks_ns)));
	}
	return json_pack("{sI, sI, sf, so}", "ranks", (json_int_t)s->n_ranks, "iterations",
			 (json_int_t)s->n_iterations, "iteration_ms", s->iteration_ns / 1e6, "rows",
			 rows);
}

/* --- two traces --------------------------------------------------------------------------------
 */

struct change {
	const struct stat_row *a, *b; /* NULL: it has none */
	double ms[2];
};

static int by_change(const void *pa, const void *pb)
{
	const struct change *a = pa, *b = pb;
	double x = fabs(a->ms[1] - a->ms[0]), y = fabs(b->ms[1] - b->ms[0]);

	return (x < y) - (x > y);
}

static int by_name(const void *pa, const void *pb)
{
	const struct change *a = pa, *b = pb;
	const struct stat_row *x = a->a ? a->a : a->b, *y = b->a ? b->a : b->b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* *ret is the caller's. Return: how many; 0: no memory. */
static size_t changes(const struct stat *a, const struct stat *b, struct change **ret)
{
	struct change *list = calloc((size_t)a->n_rows + b->n_rows + 1, sizeof(*list));
	size_t n = 0, kept = 0;

	*ret = list;
	for (uint32_t i = 0; list && i < a->n_rows; i++)
		list[n++] = (struct change){&a->rows[i], NULL, {stat_each_ms(a, &a->rows[i]), 0}};
	for (uint32_t i = 0; list && i < b->n_rows; i++)
		list[n++] = (struct change){NULL, &b->rows[i], {0, stat_each_ms(b, &b->rows[i])}};
	if (n)
		qsort(list, n, sizeof(*list), by_name);
	for (size_t i = 0; i < n; i++) {
		if (kept && by_name(&list[kept - 1], &list[i]) == 0) {
			list[kept - 1].a = list[kept - 1].a ? list[kept - 1].a : list[i].a;
			list[kept - 1].b = list[kept - 1].b ? list[kept - 1].b : list[i].b;
			list[kept - 1].ms[0] += list[i].ms[0];
			list[kept - 1].ms[1] += list[i].ms[1];
		} else {
			list[kept++] = list[i];
		}
	}
	if (kept)
		qsort(list, kept, sizeof(*list), by_change);
	return kept;
}

void print_diff(const struct stat *a, const struct stat *b, FILE *to)
{
	CLEANUP(freep) struct change *list = NULL;
	size_t n = changes(a, b, &list), shown = 0;

	fprintf(to, "-- nbox trace: an iteration takes %.3f ms and %.3f: %+.3f\n",
		a->iteration_ns / 1e6, b->iteration_ns / 1e6,
		(b->iteration_ns - a->iteration_ns) / 1e6);
	fprintf(to, "%10s  %12s  %12s  %12s  %s\n", "kind", "first, ms", "second", "change",
		"name");
	for (; shown < n && shown < ROWS; shown++) {
		const struct change *c = &list[shown];
		const struct stat_row *row = c->a ? c->a : c->b;

		if (fabs(c->ms[1] - c->ms[0]) < SMALL_MS)
			break;
		fprintf(to, "%10s  %12.3f  %12.3f  %+12.3f  %.80s%s\n", kind_of(row), c->ms[0],
			c->ms[1], c->ms[1] - c->ms[0], row->name,
			!c->a   ? "  (new)"
			: !c->b ? "  (gone)"
				: "");
	}
	if (!shown)
		fprintf(to, "%10s  nothing that takes a microsecond more or less\n", "");
}

json_t *json_diff(const struct stat *a, const struct stat *b)
{
	CLEANUP(freep) struct change *list = NULL;
	size_t n = changes(a, b, &list);
	json_t *rows = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct stat_row *row = list[i].a ? list[i].a : list[i].b;

		json_array_append_new(rows, json_pack("{ss, ss, sf, sf}", "kind", kind_of(row),
						      "name", row->name, "first_ms", list[i].ms[0],
						      "second_ms", list[i].ms[1]));
	}
	return json_pack("{sf, sf, so}", "first_iteration_ms", a->iteration_ns / 1e6,
			 "second_iteration_ms", b->iteration_ns / 1e6, "rows", rows);
}

/* --- clocks ------------------------------------------------------------------------------------
 */

void print_clocks(const struct trace *t, const struct clocks *c, const uint64_t reversed[2],
		  FILE *to)
{
	fprintf(to, "-- nbox trace: %u hosts by the clock of %s\n", t->n_hosts,
		trace_name(t, t->hosts[0]));
	fprintf(to, "%20s  %14s  %14s  %14s  %10s\n", "host", "offset, us", "at least", "at most",
		"drift, ppm");
	for (uint32_t h = 0; h < t->n_hosts; h++) {
		const struct clocks_host *host = &c->hosts[h];

		fprintf(to, "%20.60s  %14.3f  %14.3f  %14.3f  %10.3f%s\n",
			trace_name(t, t->hosts[h]), round(host->theta_ns) / 1e3 + 0.0 /* no -0 */,
			host->low_ns / 1e3, host->high_ns / 1e3, host->drift * 1e6,
			isinf(host->low_ns) && isinf(host->high_ns) ? "  no message says"
			: isinf(host->low_ns) || isinf(host->high_ns)
				? "  messages go one way: a bound"
				: "");
	}
	fprintf(to, "%20s  %.3f us, %.3f before\n", "spread of receives", c->spread_ns / 1e3,
		c->spread_before_ns / 1e3);
	fprintf(to, "%20s  %" PRIu64 ", %" PRIu64 " before\n", "received too early", reversed[1],
		reversed[0]);
}

static json_t *bound(double ns)
{
	return isfinite(ns) ? json_real(ns / 1e3) : json_null();
}

json_t *json_clocks(const struct trace *t, const struct clocks *c, const uint64_t reversed[2])
{
	json_t *hosts = json_array();

	for (uint32_t h = 0; h < t->n_hosts; h++)
		json_array_append_new(hosts, json_pack("{ss, sf, so, so, sf}", "host",
						       trace_name(t, t->hosts[h]), "offset_us",
						       c->hosts[h].theta_ns / 1e3, "least_us",
						       bound(c->hosts[h].low_ns), "most_us",
						       bound(c->hosts[h].high_ns), "drift_ppm",
						       c->hosts[h].drift * 1e6));
	return json_pack("{so, sf, sf, sI, sI}", "hosts", hosts, "spread_us", c->spread_ns / 1e3,
			 "spread_before_us", c->spread_before_ns / 1e3, "received_too_early",
			 (json_int_t)reversed[1], "received_too_early_before",
			 (json_int_t)reversed[0]);
}
