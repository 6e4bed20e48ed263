/* See write.h. */
#include "nbox/kernels/write.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "kernels/table.h"

/* Launches of one name: those from @first on. */
struct group {
	const struct launch *first;
	size_t n;
	double sum_us;
};

static int by_op(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;

	return (x->op > y->op) - (x->op < y->op);
}

static int by_time(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;

	return (x->us > y->us) - (x->us < y->us);
}

static int by_name(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : by_time(a, b);
}

/* The largest first. */
static int by_sum(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return (x->sum_us < y->sum_us) - (x->sum_us > y->sum_us);
}

/* Makes one launch of the kernels of an operator that is a product. */
static void join_products(struct launches *t)
{
	size_t n = 0;
	double last = -1;

	qsort(t->list, t->n, sizeof(t->list[0]), by_op);
	for (size_t i = 0; i < t->n; i++) {
		struct launch *l = &t->list[i];
		const char *product = NULL;
		char key[32];

		snprintf(key, sizeof(key), "%.0f", l->op);
		if (l->op >= 0)
			product = json_string_value(json_object_get(t->products, key));
		if (product && l->op == last) {
			t->list[n - 1].us = fmin(t->list[n - 1].us + l->us, LAUNCH_MAX_US);
			continue;
		}
		last = product ? l->op : -1;
		t->list[n] = *l;
		if (product)
			t->list[n].name = product;
		n++;
	}
	t->n = n;
}

/* @launches are sorted by time. */
static double median(const struct launch *launches, size_t n)
{
	return (launches[(n - 1) / 2].us + launches[n / 2].us) / 2;
}

static int write_group(const struct group *g, FILE *to)
{
	CLEANUP(freep) char *pattern = malloc(2 * strlen(g->first->name) + 2);

	if (!pattern)
		return -ENOMEM;
	/* what cannot be printed becomes ?, which fits it */
	plain_text(kernel_pattern_escape(g->first->name, pattern));
	fprintf(to, "# %zu launch%s", g->n, g->n == 1 ? "" : "es");
	if (g->n > 1)
		fprintf(to, ", %.3fus to %.3fus", g->first[0].us, g->first[g->n - 1].us);
	fprintf(to, "\n%s %.3fus\n", pattern, median(g->first, g->n));
	return 0;
}

static size_t make_groups(const struct launches *t, struct group *groups)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!n || strcmp(groups[n - 1].first->name, t->list[i].name) != 0)
			groups[n++] = (struct group){.first = &t->list[i]};
		groups[n - 1].n++;
		groups[n - 1].sum_us += t->list[i].us;
	}
	return n;
}

int kernels_write(struct launches *t, const char *file, FILE *to)
{
	CLEANUP(freep) struct group *groups = calloc(t->n, sizeof(struct group));
	CLEANUP(freep) char *heading = strdup(file);
	size_t n;
	int r = 0;

	if (!groups || !heading)
		return -ENOMEM;
	join_products(t);
	qsort(t->list, t->n, sizeof(t->list[0]), by_name);
	n = make_groups(t, groups);
	qsort(groups, n, sizeof(groups[0]), by_sum);
	fprintf(to, "# Kernels of %s, by `nbox kernels`: the median of each. For nbox run --gpu.\n",
		plain_text(heading));
	if (t->n_nccl)
		fprintf(to,
			"# %zu launches of NCCL are left out: nbox says how long its ops take.\n",
			t->n_nccl);
	if (t->n_unsized)
		fprintf(to,
			"# %zu products of matrices have no sizes, and no row: profile with record_shapes=True.\n",
			t->n_unsized);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = write_group(&groups[i], to);
	qsort(t->list, t->n, sizeof(t->list[0]), by_time);
	if (r == 0)
		fprintf(to, "# all other kernels: the median of all\n* %.3fus\n",
			median(t->list, t->n));
	return r;
}
