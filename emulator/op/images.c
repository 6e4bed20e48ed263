/* See images.h. */
#include "op/images.h"

#include <errno.h>
#include <stdlib.h>

#include "config/config.h"
#include "fabric/fabric.h"
#include "op/image.h"
#include "op/ops.h"

/* A communicator with a real rank plays ops of its own. */
static bool has_real(const struct cluster *c, const uint32_t *table, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (cluster_is_real(c, table[i]))
			return true;
	return false;
}

static bool is_shared(const struct comm *c)
{
	const struct fabric *f = delay_fabric(c->ops->delay);
	uint32_t first;

	if (!f)
		return false;
	first = fabric_domain(f, membership_world(&c->members.map, 0));
	for (uint32_t i = 1; i < c->n_ranks; i++)
		if (fabric_domain(f, membership_world(&c->members.map, i)) != first)
			return true;
	return false;
}

int images_next(void *ctx, struct membership *ret)
{
	struct images *x = ctx;
	const struct config *config = x->comm->ops->config;
	uint32_t n = x->comm->n_ranks;

	if (!x->table) {
		if (!is_shared(x->comm))
			return 1;
		x->table = malloc(n * sizeof(*x->table));
		if (!x->table || bitmap_init(&x->met, config->world) < 0)
			return -ENOMEM;
	}
	for (uint32_t rank = 0; rank < config->world; rank++) {
		struct radix image;

		if (!bitmap_test_and_set(&x->met, rank) || image_at(x->comm, rank, &image))
			continue;
		for (uint32_t k = 0; k < n; k++) {
			x->table[k] = radix_at(&image, k);
			bitmap_set(&x->met, x->table[k]);
		}
		if (has_real(x->comm->ops->cluster, x->table, n))
			continue;
		*ret = (struct membership){.n_ranks = n, .table = x->table};
		return 0;
	}
	return 1;
}

void images_deinit(struct images *x)
{
	free(x->table);
	bitmap_deinit(&x->met);
}
