/* See sample.h. */
#include "calibrate/sample.h"

#include <errno.h>
#include <stdlib.h>

int sample_band(double bytes)
{
	return bytes <= 65536 ? BAND_SMALL : bytes >= 67108864 ? BAND_LARGE : BAND_BETWEEN;
}

double sample_size(uint32_t kind, double bytes, uint32_t n_ranks)
{
	bool is_part = kind == COLL_ALLGATHER || kind == COLL_REDUCESCATTER ||
		       kind == COLL_ALLTOALL || kind == COLL_GATHER || kind == COLL_SCATTER;

	return is_part ? bytes * n_ranks : bytes;
}

void samples_deinit(struct samples *s)
{
	free(s->list);
	*s = (struct samples){.list = NULL};
}

int samples_add(struct samples *s, const struct sample *one)
{
	if (s->n == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 64;
		struct sample *more = realloc(s->list, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->list = more;
		s->capacity = capacity;
	}
	s->list[s->n++] = *one;
	return 0;
}

static int compare(double a, double b)
{
	return (a > b) - (a < b);
}

static int by_group(const struct sample *a, const struct sample *b)
{
	int r = compare(a->kind, b->kind);

	r = r ? r : compare(a->n_ranks, b->n_ranks);
	r = r ? r : compare(a->n_nodes, b->n_nodes);
	return r ? r : compare(a->proto, b->proto);
}

static int by_all(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int r = by_group(x, y);

	return r ? r : compare(x->bytes, y->bytes);
}

static int by_time(const void *a, const void *b)
{
	return compare(((const struct sample *)a)->ns, ((const struct sample *)b)->ns);
}

/* Their medians; @run: sorted by bytes. */
static struct sample middle_of(struct sample *run, size_t n)
{
	struct sample middle = *run;

	middle.bytes = (run[(n - 1) / 2].bytes + run[n / 2].bytes) / 2;
	qsort(run, n, sizeof(*run), by_time);
	middle.ns = (run[(n - 1) / 2].ns + run[n / 2].ns) / 2;
	return middle;
}

void samples_merge(struct samples *s)
{
	size_t kept = 0, n;

	if (s->n)
		qsort(s->list, s->n, sizeof(*s->list), by_all);
	for (size_t i = 0; i < s->n; i += n) {
		struct sample *run = &s->list[i];

		for (n = 1; i + n < s->n && by_group(&run[n], run) == 0 &&
			    run[n].bytes <= run->bytes * SAMPLE_NEAR;)
			n++;
		s->list[kept++] = middle_of(run, n);
	}
	s->n = kept;
}

int samples_next(const struct samples *s, size_t *from, struct curve *ret)
{
	size_t first = *from, end = first;
	const struct sample *list = s->list;
	struct curve c = {.kind = 0};
	double factor;

	if (first == s->n)
		return 0;
	while (end < s->n && by_group(&list[end], &list[first]) == 0)
		end++;
	c.kind = list[first].kind;
	c.n_ranks = list[first].n_ranks;
	c.n_nodes = list[first].n_nodes;
	c.proto = list[first].proto;
	c.points = calloc(end - first, sizeof(*c.points));
	if (!c.points)
		return -ENOMEM;
	factor = curve_wire_factor(c.kind, c.n_ranks);
	for (size_t i = first; i < end; i++)
		c.points[c.n_points++] = (struct curve_point){list[i].bytes * factor, list[i].ns};
	*from = end;
	*ret = c;
	return 1;
}
