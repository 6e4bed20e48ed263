/* See radix.h. */
#include "members/radix.h"

#include <string.h>

#define DIVISORS_MAX 128 /* numbers up to 65536 have at most 120 */

bool radix_push(struct radix *r, uint32_t n, uint32_t stride)
{
	struct radix_level *last = r->n_levels ? &r->level[r->n_levels - 1] : NULL;

	if (n <= 1)
		return true;
	if (last && (uint64_t)last->n * last->stride == stride) {
		last->n *= n;
		return true;
	}
	if (stride == 0 || r->n_levels == RADIX_LEVELS ||
	    (last && (uint64_t)last->n * last->stride > stride))
		return false;
	r->level[r->n_levels++] = (struct radix_level){n, stride};
	return true;
}

uint32_t radix_size(const struct radix *r)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i < r->n_levels; i++)
		n *= r->level[i].n;
	return n;
}

uint32_t radix_at(const struct radix *r, uint32_t rank)
{
	uint32_t value = r->base;

	for (uint32_t i = 0; i < r->n_levels; i++) {
		value += rank % r->level[i].n * r->level[i].stride;
		rank /= r->level[i].n;
	}
	return value;
}

int64_t radix_find(const struct radix *r, uint32_t value)
{
	int64_t rank = 0;

	if (value < r->base)
		return -1;
	value -= r->base;
	for (uint32_t i = r->n_levels; i > 0; i--) {
		const struct radix_level *l = &r->level[i - 1];

		if (value / l->stride >= l->n)
			return -1;
		rank = rank * l->n + value / l->stride;
		value %= l->stride;
	}
	return value ? -1 : rank;
}

bool radix_equal(const struct radix *a, const struct radix *b)
{
	return a->base == b->base && a->n_levels == b->n_levels &&
	       memcmp(a->level, b->level, a->n_levels * sizeof(a->level[0])) == 0;
}

uint32_t radix_move(struct radix *r, uint32_t value)
{
	uint32_t rank = 0, weight = 1;

	r->base = value;
	for (uint32_t i = 0; i < r->n_levels; i++) {
		uint32_t digit = value / r->level[i].stride % r->level[i].n;

		rank += digit * weight;
		weight *= r->level[i].n;
		r->base -= digit * r->level[i].stride;
	}
	return rank;
}

/* --- families ------------------------------------------------------------------ */

struct walk {
	uint32_t world, n_levels;
	uint32_t divisors[DIVISORS_MAX], n_divisors;
	bool (*each)(void *ctx, const struct radix *r);
	void *ctx;
};

/* Appends the levels from @r->n_levels on. */
static bool walk_levels(const struct walk *w, const struct radix *r)
{
	uint32_t floor = 1, level = r->n_levels;

	if (level == w->n_levels)
		return w->each(w->ctx, r);
	if (level)
		floor = r->level[level - 1].n * r->level[level - 1].stride + 1;
	for (uint32_t i = 0; i < w->n_divisors; i++) {
		uint32_t stride = w->divisors[i];

		if (stride < floor || stride == w->world || (level && stride % (floor - 1)))
			continue;
		for (uint32_t k = 1; k < w->n_divisors; k++) {
			uint32_t n = w->divisors[k];
			struct radix next = *r;

			if ((uint64_t)stride * n > w->world)
				break;
			if (w->world / stride % n)
				continue;
			next.level[level] = (struct radix_level){n, stride};
			next.n_levels = level + 1;
			if (!walk_levels(w, &next))
				return false;
		}
	}
	return true;
}

void radix_each(uint32_t world, uint32_t n_levels, bool (*each)(void *ctx, const struct radix *r),
		void *ctx)
{
	struct walk w = {.world = world, .n_levels = n_levels, .each = each, .ctx = ctx};
	static const struct radix none;

	for (uint32_t d = 1; d <= world && w.n_divisors < DIVISORS_MAX; d++)
		if (world % d == 0)
			w.divisors[w.n_divisors++] = d;
	walk_levels(&w, &none);
}
