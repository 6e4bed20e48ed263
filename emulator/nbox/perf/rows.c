/* See rows.h. */
#include "nbox/perf/rows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 4096

uint32_t perf_dtype(const struct perf_options *o)
{
	const char *name = options[FLAG_DTYPE].choices[o->dtype];
	uint32_t t = 0;

	while (t < COLL_DTYPES && strcmp(coll_dtype_name(t), name) != 0)
		t++;
	return t;
}

static int ask_row(struct ask *a, const struct perf_rows *all, uint32_t root, struct perf_row *row,
		   struct err *err)
{
	uint32_t element = (uint32_t)coll_dtype_bytes(all->dtype);
	int r = ask_op(a, all->kind, row->count * element, element, root, &row->answer, err);

	if (r < 0)
		return r;
	row->algbw = row->answer.ns > 0 ? (double)row->bytes / row->answer.ns : 0;
	row->busbw = row->algbw * coll_busbw_factor(all->kind, all->n_ranks);
	return 0;
}

int perf_rows_ask(struct ask *a, const struct config *c, const struct perf_options *o,
		  enum coll_kind kind, struct perf_rows *ret, struct err *err)
{
	struct perf_rows all = {.kind = kind, .dtype = perf_dtype(o), .n_ranks = c->world};
	uint32_t element = (uint32_t)coll_dtype_bytes(all.dtype);
	int r = 0;

	all.rows = calloc(ROWS_MAX + 1, sizeof(*all.rows));
	if (!all.rows)
		return err_set(err, ENOMEM, "out of memory");
	for (uint64_t bytes = o->min_bytes; r == 0 && bytes <= o->max_bytes;
	     bytes = perf_options_next(o, bytes)) {
		struct perf_row *row = &all.rows[all.n];

		row->count = ask_bytes(kind, bytes, element, c->world) / element;
		if (!row->count)
			continue;
		if (all.n == ROWS_MAX) {
			r = err_set(err, EINVAL,
				    "there are more than %d sizes from -b %zu to -e %zu", ROWS_MAX,
				    o->min_bytes, o->max_bytes);
			break;
		}
		row->bytes = ask_size(kind, row->count * element, c->world);
		r = ask_row(a, &all, (uint32_t)o->root, row, err);
		all.n++;
	}
	if (r == 0 && !all.n)
		r = err_set(
			err, EINVAL,
			"there is nothing to print: a size is that of all ranks' parts, and none "
			"has an element for each of the %u ranks; take a larger -e",
			c->world);
	if (r < 0)
		perf_rows_deinit(&all);
	else
		*ret = all;
	return r;
}

void perf_rows_deinit(struct perf_rows *r)
{
	free(r->rows);
	*r = (struct perf_rows){0};
}

double perf_rows_average_busbw(const struct perf_rows *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->n; i++)
		sum += r->rows[i].busbw;
	return r->n ? sum / (double)r->n : 0;
}
