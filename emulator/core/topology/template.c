/* See template.h. */
#include "topology/template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* By what real members are found: their class, then their local index. */
static uint64_t place_of(const struct templates *t, uint32_t world_rank)
{
	uint64_t class = t->classes ? t->classes[world_rank] : 0;

	return class * t->gpus_per_node + world_rank % t->gpus_per_node;
}

static uint64_t place_at(const struct templates *t, uint32_t i)
{
	return place_of(t, membership_world(t->members, t->real[i]));
}

static int compare(uint64_t a, uint64_t b, uint32_t i, uint32_t k)
{
	return a != b ? (a > b) - (a < b) : (i > k) - (i < k);
}

static int compare_places(const void *a, const void *b, void *templates)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	return compare(place_at(templates, i), place_at(templates, k), i, k);
}

static int compare_classes(const void *a, const void *b, void *templates)
{
	const struct templates *t = templates;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	return compare(place_at(t, i) / t->gpus_per_node, place_at(t, k) / t->gpus_per_node, i, k);
}

int templates_init(struct templates *t, const struct membership *members, uint32_t gpus_per_node,
		   const uint32_t *classes, const uint32_t *real, uint32_t n_real)
{
	*t = (struct templates){.members = members,
				.classes = classes,
				.gpus_per_node = gpus_per_node,
				.n_real = n_real};
	t->real = malloc(n_real * sizeof(*t->real));
	t->by_place = malloc(n_real * sizeof(*t->by_place));
	t->by_class = malloc(n_real * sizeof(*t->by_class));
	if (!t->real || !t->by_place || !t->by_class) {
		templates_deinit(t);
		return -ENOMEM;
	}
	memcpy(t->real, real, n_real * sizeof(*t->real));
	for (uint32_t i = 0; i < n_real; i++)
		t->by_place[i] = t->by_class[i] = i;
	qsort_r(t->by_place, n_real, sizeof(*t->by_place), compare_places, t);
	qsort_r(t->by_class, n_real, sizeof(*t->by_class), compare_classes, t);
	return 0;
}

void templates_deinit(struct templates *t)
{
	free(t->real);
	free(t->by_place);
	free(t->by_class);
	*t = (struct templates){0};
}

/* The first entry of by_place that is not before @place. */
static uint32_t first_at(const struct templates *t, uint64_t place)
{
	uint32_t low = 0, high = t->n_real;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (place_at(t, t->by_place[mid]) < place)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The class of real members that stands for @class. */
static uint64_t nearest_class(const struct templates *t, uint64_t class)
{
	uint32_t i = first_at(t, class * t->gpus_per_node);
	uint64_t above = i < t->n_real ? place_at(t, t->by_place[i]) / t->gpus_per_node
				       : UINT64_MAX,
		 below;

	if (i == 0 || above == class)
		return above;
	below = place_at(t, t->by_place[i - 1]) / t->gpus_per_node;
	return class - below <= above - class ? below : above;
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
	uint64_t class, place;

	if (self)
		return (uint32_t)(self - t->real);
	world = membership_world(t->members, rank);
	class = nearest_class(t, place_of(t, world) / t->gpus_per_node);
	place = class * t->gpus_per_node + world % t->gpus_per_node;
	first = first_at(t, place);
	n = first_at(t, place + 1) - first;
	if (n)
		return t->by_place[first + world / t->gpus_per_node % n];
	first = first_at(t, class * t->gpus_per_node);
	n = first_at(t, (class + 1) * t->gpus_per_node) - first;
	return t->by_class[first + rank % n];
}

void templates_count(const struct templates *t, uint32_t *n)
{
	for (uint32_t rank = 0; rank < t->members->n_ranks; rank++)
		n[template_of(t, rank)]++;
}
