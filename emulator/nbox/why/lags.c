/* See lags.h. */
#include "nbox/why/lags.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void *copy(const void *from, size_t bytes)
{
	void *made = malloc(bytes + 1);

	return made ? memcpy(made, from, bytes) : NULL;
}

/* Return: 0; -ENOMEM. */
static int keep_ranks(struct lags *l, const struct replay_lags *told)
{
	struct lags_of *more;

	for (uint32_t i = 0; i < l->n_of; i++)
		if (l->of[i].real_rank == told->real_rank)
			return 0;
	more = reallocarray(l->of, (size_t)l->n_of + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->of = more;
	more[l->n_of] = (struct lags_of){.real_rank = told->real_rank,
					 .ranks = copy(told->ranks, told->n * sizeof(*told->ranks)),
					 .n = told->n};
	return more[l->n_of++].ranks ? 0 : -ENOMEM;
}

static int keep(void *ctx, const struct replay_lags *told)
{
	struct lags *l = ctx;
	struct lags_row *row = &l->rows[told->row];
	double *ns = NULL;

	if (!l->is_wanted[told->row])
		return 0;
	if (told->ns) {
		ns = copy(told->ns, told->n * sizeof(*ns));
		if (!ns)
			return -ENOMEM;
	}
	if (told->is_over)
		row->end = ns;
	else
		row->at = ns;
	return keep_ranks(l, told);
}

int lags_play(const struct replay *in, const bool *is_wanted, struct lags *ret, struct err *err)
{
	struct replay again = *in;
	struct replay_told told = {.n_lost = 0};
	struct record rec = {.n_ops = 0};
	int r;

	*ret = (struct lags){.is_wanted = is_wanted, .n = in->graph->n};
	ret->rows = calloc((size_t)in->graph->n + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return err_set(err, ENOMEM, "out of memory");
	again.terms = NULL;
	again.sink = (struct replay_sink){.lags = keep, .ctx = ret};
	r = replay_play(&again, &rec, &told, err);
	record_deinit(&rec);
	return r;
}

void lags_deinit(struct lags *l)
{
	for (uint32_t i = 0; l->rows && i < l->n; i++) {
		free(l->rows[i].at);
		free(l->rows[i].end);
	}
	for (uint32_t i = 0; i < l->n_of; i++)
		free(l->of[i].ranks);
	free(l->rows);
	free(l->of);
}

const struct lags_of *lags_find(const struct lags *l, uint32_t rank, uint32_t *ret_index)
{
	for (uint32_t i = 0; i < l->n_of; i++) {
		const struct lags_of *of = &l->of[i];
		uint32_t from = 0, to = of->n;

		while (from < to) {
			uint32_t middle = from + (to - from) / 2;

			if (of->ranks[middle] < rank)
				from = middle + 1;
			else
				to = middle;
		}
		if (from < of->n && of->ranks[from] == rank) {
			*ret_index = from;
			return of;
		}
	}
	return NULL;
}

static double lag(const struct lags *l, uint32_t row, const double *ns, uint32_t index)
{
	if (!l->is_wanted[row])
		return NAN;
	return ns ? ns[index] : 0;
}

double lags_at(const struct lags *l, uint32_t row, uint32_t index)
{
	return lag(l, row, l->rows[row].at, index);
}

double lags_end(const struct lags *l, uint32_t row, uint32_t index)
{
	return lag(l, row, l->rows[row].end, index);
}
