/* See image.h. */
#include "op/image.h"

#include "op/ops.h"

static int by_layout(const struct cluster *cluster, uint32_t axes, uint32_t world_rank,
		     struct radix *ret)
{
	uint32_t number = axes >> 8;

	if (!(axes & 0xff) || number >= cluster->n_layouts)
		return 1;
	layout_group(&cluster->layouts[number], axes & 0xff, world_rank, ret);
	return 0;
}

static int by_family(const struct cluster *cluster, const struct membership *m, uint32_t world_rank,
		     struct radix *ret)
{
	uint32_t block = m->n_ranks * m->stride;

	*ret = (struct radix){.base = m->base};
	if (m->table || !block || topology_world(cluster->topology) % block ||
	    !radix_push(ret, m->n_ranks, m->stride))
		return 1;
	radix_move(ret, world_rank);
	return 0;
}

int image_of(const struct cluster *cluster, const struct membership *m, uint32_t axes,
	     uint32_t world_rank, struct radix *ret)
{
	struct radix image;

	if (by_layout(cluster, axes, world_rank, &image) &&
	    by_family(cluster, m, world_rank, &image))
		return 1;
	if (radix_size(&image) != m->n_ranks || membership_rank(m, radix_at(&image, 0)) >= 0)
		return 1;
	*ret = image;
	return 0;
}

int image_at(const struct comm *c, uint32_t world_rank, struct radix *ret)
{
	return image_of(c->ops->cluster, &c->members.map, c->members.axes, world_rank, ret);
}

void image_warn_none(const struct comm *c, uint32_t world_rank)
{
	struct ops *ops = c->ops;

	if (ops->is_lag_told)
		return;
	ops->is_lag_told = true;
	ops_warn(
		ops,
		"communicator %u of %u ranks: rank %u copies a member of it, and in which like it that rank is "
		"itself is not known: there nobody waits for ranks that are slow; say how the ranks are laid out "
		"(--layout tp=8,dp=64)",
		c->number, c->n_ranks, world_rank);
}
