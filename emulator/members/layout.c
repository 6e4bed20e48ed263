/* See layout.h. */
#include "members/layout.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"
#include "wire/wire.h"

static struct layout_axis *axis_find(struct layout *l, const char *name)
{
	for (uint32_t i = 0; i < l->n_axes; i++)
		if (strcmp(l->axis[i].name, name) == 0)
			return &l->axis[i];
	return NULL;
}

static bool is_name(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n >= LAYOUT_NAME_MAX || !isalpha((unsigned char)text[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

/* Copies the next word of *text up to @end and moves *text behind it, from the last one to NULL.
 * Return: false: too long. */
static bool take_word(const char **text, char end, char *ret, size_t size)
{
	size_t n = strcspn(*text, (char[]){end, '\0'});

	if (n >= size)
		return false;
	memcpy(ret, *text, n);
	ret[n] = '\0';
	*text = (*text)[n] ? *text + n + 1 : NULL;
	return true;
}

/* Puts the axes into the order that "tp-pp-dp" says. */
static int reorder(struct layout *l, const char *order, struct err *err)
{
	struct layout sorted = {0};
	const char *names[LAYOUT_AXES_MAX], *near, *left = order;
	char word[LAYOUT_NAME_MAX];

	for (uint32_t i = 0; i < l->n_axes; i++)
		names[i] = l->axis[i].name;
	do {
		struct layout_axis *a;

		if (!take_word(&left, '-', word, sizeof(word)))
			return err_set(err, EINVAL, "order=%.64s: a name is too long", order);
		a = axis_find(l, word);
		if (!a) {
			near = suggest(word, names, l->n_axes);
			return err_set(err, EINVAL,
				       "order=%.64s names axis '%s', which has no size; %s%s%s",
				       order, word, near ? "did you mean '" : "write it as ",
				       near ? near : word, near ? "'?" : "=N");
		}
		if (axis_find(&sorted, word))
			return err_set(err, EINVAL, "order=%.64s names axis '%s' twice", order,
				       word);
		sorted.axis[sorted.n_axes++] = *a;
	} while (left);
	for (uint32_t i = 0; i < l->n_axes; i++)
		if (!axis_find(&sorted, names[i]))
			return err_set(err, EINVAL, "order=%.64s lacks axis '%s'", order, names[i]);
	*l = sorted;
	return 0;
}

/* Names the last axis that could have another size. */
static int refuse_product(const struct layout *l, uint64_t product, uint32_t world, struct err *err)
{
	char hint[64] = "";

	for (uint32_t i = 0; i < l->n_axes; i++) {
		uint64_t others = product / l->axis[i].size;

		if (world % others == 0)
			snprintf(hint, sizeof(hint), "; %s=%llu would fit", l->axis[i].name,
				 (unsigned long long)(world / others));
	}
	return err_set(err, EINVAL, "the axes make %llu ranks, but the world has %u%s",
		       (unsigned long long)product, world, hint);
}

/* As layout_parse(); @world 0: of any. */
static int parse(const char *text, uint32_t world, struct layout *ret, struct err *err)
{
	struct layout l = {0};
	char item[160], order[160] = "";
	const char *left = text;
	uint64_t product = 1;
	int r;

	do {
		char *value;
		uint64_t n;

		if (!take_word(&left, ',', item, sizeof(item)))
			return err_set(err, EINVAL, "'%.32s...' is too long", text);
		value = strchr(item, '=');
		if (!value)
			return err_set(err, EINVAL,
				       "'%.64s' is no AXIS=SIZE; write for example tp=8,pp=4,dp=16",
				       item);
		*value++ = '\0';
		if (strcmp(item, "order") == 0 && !order[0] && *value) {
			snprintf(order, sizeof(order), "%s", value);
			continue;
		}
		if (!is_name(item))
			return err_set(
				err, EINVAL,
				"'%.64s' is no name of an axis: at most %d letters and digits",
				item, LAYOUT_NAME_MAX - 1);
		if (axis_find(&l, item) || strcmp(item, "order") == 0)
			return err_set(err, EINVAL, "'%.64s' is given twice, or empty", item);
		if ((r = units_count(value, &n, err)) < 0)
			return r;
		if (n < 1 || n > WIRE_WORLD_MAX)
			return err_set(err, EINVAL, "%.32s=%.32s: a size is 1 to %u", item, value,
				       WIRE_WORLD_MAX);
		if (l.n_axes == LAYOUT_AXES_MAX)
			return err_set(err, EINVAL, "more than %d axes", LAYOUT_AXES_MAX);
		snprintf(l.axis[l.n_axes].name, sizeof(l.axis[0].name), "%s", item);
		l.axis[l.n_axes++].size = (uint32_t)n;
		product *= n;
		if (product > WIRE_WORLD_MAX)
			return err_set(err, EINVAL, "the axes make more than %u ranks",
				       WIRE_WORLD_MAX);
	} while (left);
	if (l.n_axes == 0)
		return err_set(err, EINVAL, "there is no axis; write for example tp=8,pp=4,dp=16");
	if (order[0] && (r = reorder(&l, order, err)) < 0)
		return r;
	if (world && product != world)
		return refuse_product(&l, product, world, err);
	product = 1;
	for (uint32_t i = 0; i < l.n_axes; i++) {
		l.axis[i].stride = (uint32_t)product;
		product *= l.axis[i].size;
	}
	*ret = l;
	return 0;
}

int layout_parse(const char *text, uint32_t world, struct layout *ret, struct err *err)
{
	return parse(text, world ? world : 1, ret, err);
}

bool layout_is_data_parallel(const char *axis)
{
	return strstr(axis, "dp") != NULL;
}

int layout_grow(const char *text, uint32_t world, char *ret, struct err *err)
{
	struct layout l;
	struct layout_axis *grows = NULL;
	uint32_t others = 1;
	size_t used = 0;
	int r = parse(text, 0, &l, err);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < l.n_axes; i++) {
		others *= l.axis[i].size;
		if (layout_is_data_parallel(l.axis[i].name))
			grows = &l.axis[i];
	}
	if (!grows)
		return err_set(err, EINVAL,
			       "%s has no data-parallel axis (dp) that could grow to a world of %u "
			       "ranks",
			       text, world);
	others /= grows->size;
	if (world % others)
		return err_set(err, EINVAL,
			       "%s does not fit a world of %u ranks: all axes but %s make %u, and "
			       "%s would be no whole number",
			       text, world, grows->name, others, grows->name);
	grows->size = world / others;
	for (uint32_t i = 0; i < l.n_axes && used < LAYOUT_TEXT_MAX; i++)
		used += (size_t)snprintf(ret + used, LAYOUT_TEXT_MAX - used, "%s%s=%u",
					 i ? "," : "", l.axis[i].name, l.axis[i].size);
	return 0;
}

void layout_group(const struct layout *l, uint32_t axes, uint32_t world_rank, struct radix *ret)
{
	struct radix r = {0};

	for (uint32_t i = 0; i < l->n_axes; i++)
		if (axes >> i & 1)
			radix_push(&r, l->axis[i].size, l->axis[i].stride);
	radix_move(&r, world_rank);
	*ret = r;
}

char *layout_axes_name(const struct layout *l, uint32_t axes, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < l->n_axes && used < size; i++)
		if (axes >> i & 1)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? "+" : "",
						 l->axis[i].name);
	return buf;
}
