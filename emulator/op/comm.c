/* See comm.h. */
#include "op/comm.h"

#include <errno.h>
#include <stdlib.h>

#include "op/ops.h"

int comm_init(struct comm *c, struct ops *ops, struct members *members,
	      const struct wire_member *real, size_t n_real)
{
	const struct topology *t = ops->cluster->topology;
	uint32_t *ranks = malloc(n_real * sizeof(*ranks));
	int r = -ENOMEM;

	c->ops = ops;
	c->n_ranks = members->map.n_ranks;
	c->real = calloc(n_real, sizeof(*c->real));
	if (!ranks || !c->real || bitmap_init(&c->is_real, c->n_ranks) < 0 ||
	    bitmap_init(&c->has_process, c->n_ranks) < 0)
		goto out;
	for (c->n_real = 0; c->n_real < n_real; c->n_real++) {
		struct comm_member *m = &c->real[c->n_real];

		ranks[c->n_real] = m->rank = real[c->n_real].rank;
		m->world_rank = real[c->n_real].world_rank;
		m->is_recorded = ops->recorded && bitmap_test(ops->recorded, m->world_rank);
		bitmap_set(&c->is_real, m->rank);
		if (!m->is_recorded)
			bitmap_set(&c->has_process, m->rank);
	}
	c->ranks_per_node = members_per_node(&members->map, t);
	c->members = *members;
	r = templates_init(&c->templates, &c->members.map, t->gpus_per_node,
			   ops->config->classes.of, ranks, c->n_real);
	if (r == 0)
		*members = (struct members){0};
	else
		c->members = (struct members){0};
out:
	free(ranks);
	if (r < 0)
		comm_deinit(c);
	return r;
}

void comm_deinit(struct comm *c)
{
	bitmap_deinit(&c->is_real);
	bitmap_deinit(&c->has_process);
	templates_deinit(&c->templates);
	members_deinit(&c->members);
	free(c->real);
	c->real = NULL;
}

struct comm_member *comm_member(struct comm *c, uint32_t rank)
{
	uint32_t low = 0, high = c->n_real;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (c->real[mid].rank < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < c->n_real && c->real[low].rank == rank ? &c->real[low] : NULL;
}
