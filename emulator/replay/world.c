/* See world.h. */
#include "replay/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int as_it_was(const struct record_comm *c, struct members *ret)
{
	if (c->n_members)
		return members_from_list(c->members, c->n_ranks, ret);
	*ret = (struct members){.map = {c->n_ranks, c->base, c->stride, NULL}};
	return 0;
}

/* The group along the same axes of the layout that now is declared. Return: 1: there is none. */
static int by_layout(const struct record_comm *c, const struct world *to, uint32_t rank,
		     struct members *ret)
{
	uint32_t number = c->axes >> 8, bits = c->axes & 0xff;
	struct radix group;

	if (!bits || number >= to->n_layouts)
		return 1;
	layout_group(&to->layouts[number], bits, rank, &group);
	return members_from_radix(&group, ret);
}

static bool is_on_a_node(const struct record_comm *c, const struct world *w)
{
	uint32_t gpus = w->size / w->n_nodes;
	uint32_t last = c->base + (c->n_ranks - 1) * c->stride;

	return !c->n_members && c->base / gpus == last / gpus;
}

static int by_shape(const struct record_comm *c, const struct world *from, const struct world *to,
		    struct members *ret)
{
	uint32_t base = c->base, stride = c->stride ? c->stride : 1;
	bool is_even = !c->n_members;

	if (is_even && c->n_ranks == from->size) {
		*ret = (struct members){.map = {to->size, 0, 1, NULL}};
		return 0;
	}
	if (is_on_a_node(c, from))
		return as_it_was(c, ret);
	if (is_even && base < stride && c->n_ranks * stride == from->size &&
	    to->size % stride == 0) {
		*ret = (struct members){.map = {to->size / stride, base, stride, NULL}};
		return 0;
	}
	return 1;
}

/* Axis by axis. */
static int check_layout(const struct layout *was, const struct layout *is, struct err *err)
{
	if (was->n_axes != is->n_axes)
		return err_set(err, EINVAL, "layout: the run had %u axes, not %u", was->n_axes,
			       is->n_axes);
	for (uint32_t i = 0; i < was->n_axes; i++) {
		const struct layout_axis *a = &was->axis[i], *b = &is->axis[i];

		if (strcmp(a->name, b->name) != 0)
			return err_set(err, EINVAL, "layout: axis %u of the run was %s, not %s",
				       i + 1, a->name, b->name);
		if (a->size != b->size && !layout_is_data_parallel(a->name))
			return err_set(err, EINVAL,
				       "layout: %s=%u instead of %u: each rank would compute "
				       "something else than it did in the run; nbox run plays it",
				       a->name, b->size, a->size);
	}
	return 0;
}

int world_of_record(const struct record_header *h, struct world *ret, struct err *err)
{
	char texts[sizeof(h->layout)], *rest = NULL;
	int r = 0;

	*ret = (struct world){.size = h->world_size, .n_nodes = h->n_nodes};
	memcpy(texts, h->layout, sizeof(texts));
	for (char *text = strtok_r(texts, ";", &rest); text && r == 0;
	     text = strtok_r(NULL, ";", &rest)) {
		if (ret->n_layouts == CONFIG_LAYOUTS_MAX)
			return err_set(err, EINVAL, "the record has more than %d layouts",
				       CONFIG_LAYOUTS_MAX);
		r = layout_parse(text, h->world_size, &ret->layouts[ret->n_layouts++], err);
	}
	return r;
}

void world_of_config(const struct config *c, struct world *ret)
{
	*ret = (struct world){.size = c->world,
			      .n_nodes = c->topology.n_nodes,
			      .n_layouts = c->n_layouts};
	memcpy(ret->layouts, c->layouts, sizeof(ret->layouts));
}

int world_check(const struct world *from, const struct world *to, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < from->n_layouts && i < to->n_layouts && r == 0; i++)
		r = check_layout(&from->layouts[i], &to->layouts[i], err);
	if (r == 0 && from->n_layouts != to->n_layouts)
		return err_set(
			err, EINVAL,
			"layout: the run was recorded with %zu --layout, not %zu: who is in which "
			"communicator is in its record; for another layout, run the job again",
			from->n_layouts, to->n_layouts);
	return r;
}

/* Each rank of the one is that of the same number in the other. */
static bool are_alike(const struct world *a, const struct world *b)
{
	bool are = a->size == b->size;

	for (size_t i = 0; i < a->n_layouts && are; i++)
		for (uint32_t k = 0; k < a->layouts[i].n_axes; k++)
			are &= a->layouts[i].axis[k].size == b->layouts[i].axis[k].size;
	return are;
}

static int64_t by_coordinates(const struct layout *from, const struct layout *to, uint32_t rank)
{
	int64_t ret = 0;

	for (uint32_t i = 0; i < from->n_axes; i++) {
		uint32_t at = rank / from->axis[i].stride % from->axis[i].size;

		if (at >= to->axis[i].size)
			return -1;
		ret += (int64_t)at * to->axis[i].stride;
	}
	return ret;
}

int64_t world_rank(const struct world *from, const struct world *to, uint32_t rank)
{
	int64_t ret = rank < to->size ? (int64_t)rank : -1;

	if (are_alike(from, to))
		return ret;
	for (size_t i = 0; i < from->n_layouts; i++) {
		int64_t at = by_coordinates(&from->layouts[i], &to->layouts[i], rank);

		if (i && at != ret)
			return -1; /* another expert than dense rank */
		ret = at;
	}
	return ret;
}

int world_members(const struct record_comm *c, const struct world *from, const struct world *to,
		  struct members *ret, struct err *err)
{
	int64_t first = c->n_real ? world_rank(from, to, c->real[0].world_rank) : -1;
	int r = 1;

	if (are_alike(from, to))
		r = as_it_was(c, ret);
	else if (first >= 0)
		r = by_layout(c, to, (uint32_t)first, ret);
	if (r == 1)
		r = by_shape(c, from, to, ret);
	if (r == 1)
		return err_set(
			err, EINVAL,
			"communicator %u of %u ranks: who is in it in a world of %u ranks is not "
			"known: declare the layout (--layout tp=8,dp=%u), when the run is "
			"recorded, too",
			c->number, c->n_ranks, to->size, to->size / 8);
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	ret->source = (enum members_source)c->source;
	ret->sure = (enum members_sure)c->sure;
	ret->axes = c->axes;
	for (uint32_t i = 0; i < c->n_real; i++) {
		int64_t rank = world_rank(from, to, c->real[i].world_rank);

		if (rank >= 0 && membership_rank(&ret->map, (uint32_t)rank) >= 0)
			continue;
		members_deinit(ret);
		return err_set(
			err, EINVAL,
			"communicator %u: rank %u of the run is not in it in a world of %u ranks",
			c->number, c->real[i].world_rank, to->size);
	}
	return 0;
}
