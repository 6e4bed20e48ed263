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
static int by_layout(const struct record_comm *c, const struct config *to, struct members *ret)
{
	uint32_t number = c->axes >> 8, bits = c->axes & 0xff;
	struct radix group;

	if (!bits || number >= to->n_layouts || c->n_real == 0)
		return 1;
	layout_group(&to->layouts[number], bits, c->real[0].world_rank, &group);
	return members_from_radix(&group, ret);
}

static bool is_on_a_node(const struct record_comm *c, const struct record_header *h)
{
	uint32_t last = c->base + (c->n_ranks - 1) * c->stride;

	return !c->n_members && c->base / h->gpus_per_node == last / h->gpus_per_node;
}

static int by_shape(const struct record_comm *c, const struct record_header *h,
		    const struct config *to, struct members *ret)
{
	uint32_t base = c->base, stride = c->stride ? c->stride : 1;
	bool is_even = !c->n_members;

	if (is_even && c->n_ranks == h->world_size) {
		*ret = (struct members){.map = {to->world, 0, 1, NULL}};
		return 0;
	}
	if (is_on_a_node(c, h))
		return as_it_was(c, ret);
	if (is_even && base < stride && c->n_ranks * stride == h->world_size &&
	    to->world % stride == 0) {
		*ret = (struct members){.map = {to->world / stride, base, stride, NULL}};
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

/* A real rank is where it was along all axes along which ranks compute differently. */
static int check_places(const struct layout *was, const struct layout *is, const struct config *to,
			struct err *err)
{
	for (uint32_t i = 0; i < was->n_axes; i++)
		for (size_t k = 0; k < to->n_real && !layout_is_data_parallel(was->axis[i].name);
		     k++) {
			const struct layout_axis *a = &was->axis[i], *b = &is->axis[i];
			uint32_t from = to->real[k] / a->stride % a->size,
				 at = to->real[k] / b->stride % b->size;

			if (from != at)
				return err_set(
					err, EINVAL,
					"layout: rank %u computed as number %u of %s, and would be "
					"number %u: an axis that grows comes behind all that do "
					"not (dp last, as in tp=8,pp=4,dp=16)",
					to->real[k], from, a->name, at);
		}
	return 0;
}

int world_check_layouts(const struct record_header *h, const struct config *to, struct err *err)
{
	char texts[sizeof(h->layout)], *rest = NULL;
	size_t n = 0;

	memcpy(texts, h->layout, sizeof(texts));
	for (char *text = strtok_r(texts, ";", &rest); text; text = strtok_r(NULL, ";", &rest)) {
		struct layout was;
		int r = layout_parse(text, h->world_size, &was, err);

		if (r == 0 && n < to->n_layouts)
			r = check_layout(&was, &to->layouts[n], err);
		if (r == 0 && n < to->n_layouts)
			r = check_places(&was, &to->layouts[n], to, err);
		if (r < 0)
			return r;
		n++;
	}
	if (n != to->n_layouts)
		return err_set(
			err, EINVAL,
			"layout: the run had %zu, not %zu: which ranks are together is in its "
			"record",
			n, to->n_layouts);
	return 0;
}

int world_members(const struct record_comm *c, const struct record_header *h,
		  const struct config *to, struct members *ret, struct err *err)
{
	bool is_same = to->world == h->world_size;
	int r = is_same ? as_it_was(c, ret) : by_layout(c, to, ret);

	if (r == 1)
		r = by_shape(c, h, to, ret);
	if (r == 1)
		return err_set(
			err, EINVAL,
			"communicator %u of %u ranks: who is in it in a world of %u ranks is not "
			"known: declare the layout (--layout tp=8,dp=%u), when the run is "
			"recorded, too",
			c->number, c->n_ranks, to->world, to->world / 8);
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	ret->source = (enum members_source)c->source;
	ret->sure = (enum members_sure)c->sure;
	ret->axes = c->axes;
	for (uint32_t i = 0; i < c->n_real; i++) {
		if (membership_rank(&ret->map, c->real[i].world_rank) >= 0)
			continue;
		members_deinit(ret);
		return err_set(
			err, EINVAL,
			"communicator %u: rank %u of the run is not in it in a world of %u ranks",
			c->number, c->real[i].world_rank, to->world);
	}
	return 0;
}
