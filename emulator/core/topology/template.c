/* See template.h. */
#include "topology/template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t local_of(const struct templates *t, uint32_t index)
{
	return membership_world(t->members, t->real[index]) % t->gpus_per_node;
}

static int compare(const void *a, const void *b, void *templates)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t local_x = local_of(templates, x), local_y = local_of(templates, y);

	return local_x != local_y ? (local_x > local_y) - (local_x < local_y) : (x > y) - (x < y);
}

int templates_init(struct templates *t, const struct membership *members, uint32_t gpus_per_node,
		   const uint32_t *real, uint32_t n_real)
{
	*t = (struct templates){.members = members,
				.gpus_per_node = gpus_per_node,
				.n_real = n_real};
	t->real = malloc(n_real * sizeof(*t->real));
	t->by_local = malloc(n_real * sizeof(*t->by_local));
	if (!t->real || !t->by_local) {
		templates_deinit(t);
		return -ENOMEM;
	}
	memcpy(t->real, real, n_real * sizeof(*t->real));
	for (uint32_t i = 0; i < n_real; i++)
		t->by_local[i] = i;
	qsort_r(t->by_local, n_real, sizeof(*t->by_local), compare, t);
	return 0;
}

void templates_deinit(struct templates *t)
{
	free(t->real);
	free(t->by_local);
	*t = (struct templates){0};
}

/* The first entry of by_local whose local index is not below @local. */
static uint32_t first_of_local(const struct templates *t, uint32_t local)
{
	uint32_t low = 0, high = t->n_real;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (local_of(t, t->by_local[mid]) < local)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int compare_ranks(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

uint32_t template_of(const struct templates *t, uint32_t rank)
{
	const uint32_t *self = bsearch(&rank, t->real, t->n_real, sizeof(rank), compare_ranks);
	uint32_t world, first, n;

	if (self)
		return (uint32_t)(self - t->real);
	world = membership_world(t->members, rank);
	first = first_of_local(t, world % t->gpus_per_node);
	n = first_of_local(t, world % t->gpus_per_node + 1) - first;
	return n ? t->by_local[first + world / t->gpus_per_node % n] : rank % t->n_real;
}

void templates_count(const struct templates *t, uint32_t *n)
{
	for (uint32_t rank = 0; rank < t->members->n_ranks; rank++)
		n[template_of(t, rank)]++;
}
