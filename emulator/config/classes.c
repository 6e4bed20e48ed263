/* See classes.h. */
#include "config/classes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/did-you-mean.h"

#define NAMES_MAX (8 * LAYOUT_AXES_MAX)

/* The bits of the axes @text of @l; 0: it does not have them all, or not once each. */
static uint32_t find_axes(const char *text, const struct layout *l)
{
	uint32_t axes = 0;

	for (size_t n;; text += n + 1) {
		uint32_t k = 0;

		n = strcspn(text, "+");
		while (k < l->n_axes &&
		       (strlen(l->axis[k].name) != n || memcmp(l->axis[k].name, text, n) != 0))
			k++;
		if (k == l->n_axes || axes >> k & 1)
			return 0;
		axes |= 1u << k;
		if (!text[n])
			return axes;
	}
}

static int refuse(const char *text, const struct layout *layouts, size_t n_layouts, struct err *err)
{
	const char *names[NAMES_MAX] = {NULL};
	char near[96];
	size_t n = 0;

	for (size_t i = 0; i < n_layouts; i++)
		for (uint32_t k = 0; k < layouts[i].n_axes && n < NAMES_MAX; k++)
			names[n++] = layouts[i].axis[k].name;
	did_you_mean(text, names, n, near, sizeof(near));
	return err_set(err, EINVAL, "'%.64s' are no axes of one declared layout%s", text,
		       n_layouts ? near : " (there is none: --layout)");
}

static int take_axes(struct classes *c, const char *text, const struct layout *layouts,
		     size_t n_layouts, struct err *err)
{
	if (text && strcmp(text, "none") == 0)
		return 0;
	for (size_t i = 0; i < n_layouts && !c->axes; i++) {
		c->layout = layouts[i];
		c->axes = find_axes(text ? text : "pp", &layouts[i]);
	}
	return c->axes || !text ? 0 : refuse(text, layouts, n_layouts, err);
}

static uint32_t digit_of(const struct layout_axis *a, uint32_t world_rank)
{
	return world_rank / a->stride % a->size;
}

/* Nodes with the same GPU have the same number, their first class's. */
static uint32_t gpu_of(const struct fabric *f, uint32_t node)
{
	const struct fabric_class *own = f ? fabric_class_of(f, node) : NULL;
	uint32_t i = 0;

	while (own && strcmp(f->classes[i].gpu, own->gpu) != 0)
		i++;
	return i;
}

/* Numbers without gaps for the @n keys in @of, and in their order. Return: 0; -ENOMEM. */
static int close_gaps(struct classes *c, uint32_t world, uint32_t n)
{
	CLEANUP(freep) uint32_t *number = calloc(n, sizeof(*number));

	if (!number)
		return -ENOMEM;
	for (uint32_t i = 0; i < world; i++)
		number[c->of[i]] = 1;
	for (uint32_t i = 0; i < n; i++)
		if (number[i])
			number[i] = c->n++;
	for (uint32_t i = 0; i < world; i++)
		c->of[i] = number[c->of[i]];
	return 0;
}

static int share_out(struct classes *c, const struct fabric *f, uint32_t world,
		     uint32_t gpus_per_node)
{
	uint32_t n = FABRIC_CLASSES_MAX;

	c->of = malloc(world * sizeof(*c->of));
	if (!c->of)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < world; rank++)
		c->of[rank] = gpu_of(f, rank / gpus_per_node);
	for (uint32_t i = 1; i < world; i++)
		c->has_gpus |= c->of[i] != c->of[0];
	for (uint32_t k = 0; k < c->layout.n_axes; k++) {
		if (!(c->axes >> k & 1))
			continue;
		n *= c->layout.axis[k].size;
		for (uint32_t rank = 0; rank < world; rank++)
			c->of[rank] = c->of[rank] * c->layout.axis[k].size +
				      digit_of(&c->layout.axis[k], rank);
	}
	return close_gaps(c, world, n);
}

int classes_make(const char *axes, const struct layout *layouts, size_t n_layouts,
		 const struct fabric *f, uint32_t world, uint32_t gpus_per_node,
		 struct classes *ret, struct err *err)
{
	struct classes c = {.n = 0};
	int r = take_axes(&c, axes, layouts, n_layouts, err);

	if (r < 0)
		return r;
	if (share_out(&c, f, world, gpus_per_node) < 0) {
		classes_deinit(&c);
		return err_set(err, ENOMEM, "out of memory");
	}
	if (c.n == 1)
		classes_deinit(&c);
	*ret = c;
	return 0;
}

void classes_deinit(struct classes *c)
{
	free(c->of);
	*c = (struct classes){.n = 1};
}

char *classes_name(const struct classes *c, uint32_t world_rank, const char *gpu, char *buf,
		   size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (uint32_t k = 0; k < c->layout.n_axes && used < size; k++)
		if (c->axes >> k & 1)
			used += (size_t)snprintf(buf + used, size - used, "%s%s=%u",
						 used ? " " : "", c->layout.axis[k].name,
						 digit_of(&c->layout.axis[k], world_rank));
	if (c->has_gpus && gpu && used < size)
		snprintf(buf + used, size - used, "%s%s", used ? " " : "", gpu);
	return buf;
}
