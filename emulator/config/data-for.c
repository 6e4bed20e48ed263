/* See data-for.h. */
#include "config/data-for.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/did-you-mean.h"
#include "wire/wire.h"

#define NAMES_MAX (COLL_KINDS + 2 * LAYOUT_AXES_MAX + 1)

/* What may stand in front of "=". Return: how many. */
static size_t list_names(const struct layout *layouts, size_t n_layouts,
			 const char *names[NAMES_MAX])
{
	size_t n = 0;

	for (uint32_t i = 0; i < COLL_KINDS; i++)
		names[n++] = coll_kind_name(i);
	names[n++] = "world";
	for (size_t i = 0; i < n_layouts; i++)
		for (uint32_t j = 0; j < layouts[i].n_axes && n < NAMES_MAX; j++)
			names[n++] = layouts[i].axis[j].name;
	return n;
}

/* Does @list, words joined by '+', hold the @len bytes at @word? */
static bool holds(const char *list, const char *word, size_t len)
{
	for (size_t n;; list += n + 1) {
		n = strcspn(list, "+");
		if (n == len && !memcmp(word, list, len))
			return true;
		if (!list[n])
			return false;
	}
}

static bool is_axis(const char *name, size_t len, const struct layout *layouts, size_t n_layouts)
{
	for (size_t i = 0; i < n_layouts; i++)
		for (uint32_t j = 0; j < layouts[i].n_axes; j++)
			if (holds(layouts[i].axis[j].name, name, len))
				return true;
	return false;
}

/* "world", or axes of the layouts joined by '+'. */
static bool are_axes(const char *text, const struct layout *layouts, size_t n_layouts)
{
	if (!strcmp(text, "world"))
		return true;
	for (size_t len;; text += len + 1) {
		len = strcspn(text, "+");
		if (!is_axis(text, len, layouts, n_layouts))
			return false;
		if (!text[len])
			return true;
	}
}

/* Do the axes @text, joined by '+', make all of one of the layouts, and so the world? */
static bool are_all_axes(const char *text, const struct layout *layouts, size_t n_layouts)
{
	for (size_t i = 0; i < n_layouts; i++) {
		bool is_all = are_axes(text, &layouts[i], 1);

		for (uint32_t j = 0; is_all && j < layouts[i].n_axes; j++)
			is_all = layouts[i].axis[j].size == 1 ||
				 holds(text, layouts[i].axis[j].name,
				       strlen(layouts[i].axis[j].name));
		if (is_all)
			return true;
	}
	return false;
}

int data_for_check_axes(const char *text, const struct layout *layouts, size_t n_layouts,
			struct err *err)
{
	const char *names[NAMES_MAX];
	char near[96];

	if (text[strspn(text, "0123456789")] == '\0' || are_axes(text, layouts, n_layouts))
		return 0;
	did_you_mean(text, names, list_names(layouts, n_layouts, names), near, sizeof(near));
	return err_set(err, EINVAL, "communicator=%.64s is no axis of the declared layout%s", text,
		       near[0]          ? near
		       : n_layouts == 0 ? " (there is none: --layout), nor world or a number"
					: ", nor world or a number");
}

int data_for_parse(const char *text, const struct layout *layouts, size_t n_layouts,
		   struct data_for *ret, struct err *err)
{
	struct data_for f = {.kind = COLL_KINDS};
	const char *names[NAMES_MAX], *eq = strchr(text, '=');
	char what[DATA_FOR_AXES_MAX + 32], near[96], *slash;
	int kind, r;

	if (!eq || eq == text || (size_t)(eq - text) >= DATA_FOR_AXES_MAX)
		return err_set(err, EINVAL,
			       "'%.64s' is no WHAT=POLICY, such as allgather=identity or dp=fill",
			       text);
	r = wire_data_parse(eq + 1, &f.data, err);
	if (r)
		return r;
	snprintf(what, sizeof(what), "%.*s", (int)(eq - text), text);
	slash = strchr(what, '/');
	if (slash)
		*slash++ = '\0';
	kind = coll_kind_parse(slash ? slash : what);
	if (kind >= 0)
		f.kind = (uint32_t)kind;
	if (kind < 0 && slash) {
		did_you_mean(slash, names, list_names(NULL, 0, names) - 1, near, sizeof(near));
		return err_set(err, EINVAL, "unknown collective '%.32s'%s", slash,
			       near[0] ? near : "; there are allreduce, allgather, ...");
	}
	if (slash || kind < 0) {
		if (!are_axes(what, layouts, n_layouts)) {
			did_you_mean(what, names, list_names(layouts, n_layouts, names), near,
				     sizeof(near));
			return err_set(err, EINVAL,
				       "'%.32s' is no kind of collective, and no axis of the "
				       "declared layout%s",
				       what,
				       near[0]          ? near
				       : n_layouts == 0 ? " (there is none: --layout)"
							: "");
		}
		snprintf(f.axes, sizeof(f.axes), "%.*s", DATA_FOR_AXES_MAX - 1,
			 are_all_axes(what, layouts, n_layouts) ? "world" : what);
	}
	*ret = f;
	return 0;
}

/* Does @b hold each word of @a, both joined by '+'? */
static bool is_within(const char *a, const char *b)
{
	for (size_t len;; a += len + 1) {
		len = strcspn(a, "+");
		if (!holds(b, a, len))
			return false;
		if (!a[len])
			return true;
	}
}

/* How exactly @f names the communicator and the kind; -1: not at all. */
static int exactness(const struct data_for *f, uint32_t kind, const char *axes, bool is_world)
{
	bool is_here = !strcmp(f->axes, "world")
			       ? is_world
			       : is_within(f->axes, axes) && is_within(axes, f->axes);

	if (f->kind != COLL_KINDS && f->kind != kind)
		return -1;
	if (f->axes[0] && !is_here)
		return -1;
	return (f->axes[0] ? 2 : 0) + (f->kind != COLL_KINDS);
}

void data_for_resolve(const struct data_for *list, size_t n, uint32_t data, const char *axes,
		      bool is_world, uint8_t ret[COLL_KINDS])
{
	for (uint32_t kind = 0; kind < COLL_KINDS; kind++) {
		int best = 0, now;

		ret[kind] = (uint8_t)data;
		for (size_t i = 0; i < n; i++) {
			now = exactness(&list[i], kind, axes, is_world);
			if (now < best)
				continue;
			best = now;
			ret[kind] = (uint8_t)list[i].data;
		}
	}
}
