/* See pieces.h. */
#include "predict/pieces.h"

#include <math.h>
#include <stdlib.h>

static int by_stream(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* A stream computes one thing at a time: where two of it overlap, both were seen to end, and it is
 * the same computation. */
static void clip(struct piece *list, uint32_t n)
{
	double end = -INFINITY;

	qsort(list, n, sizeof(*list), by_stream);
	for (uint32_t i = 0; i < n; i++) {
		struct piece *p = &list[i];

		if (i && p->stream != list[i - 1].stream)
			end = -INFINITY;
		if (p->is_exchange)
			continue;
		p->end = fmax(p->end, end);
		p->start = fmax(p->start, end);
		end = p->end;
	}
}

/* What starts first; of a collective and a computation that start together the collective, which
 * does not wait for that. */
static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->is_exchange != y->is_exchange)
		return x->is_exchange ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

uint32_t pieces_cut(struct piece *list, uint32_t n, uint32_t capacity)
{
	uint32_t made = n;

	clip(list, n);
	qsort(list, n, sizeof(*list), by_start);
	for (uint32_t i = 0; i < n; i++) {
		struct piece *p = &list[i];

		for (uint32_t k = i + 1; !p->is_exchange && k < n && list[k].start < p->end; k++) {
			if (!list[k].is_exchange || list[k].start <= p->start || made == capacity)
				continue;
			list[made++] =
				(struct piece){p->start, list[k].start, p->op, p->stream, false};
			p->start = list[k].start;
		}
	}
	qsort(list, made, sizeof(*list), by_start);
	return made;
}
