/* See target.h. */
#include "scenario/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"
#include "schedule/coll.h"

static int take_kinds(struct target *t, const char *value, struct err *err)
{
	const char *names[COLL_KINDS], *near;

	if (!strcmp(value, "all"))
		return 0;
	for (size_t n;; value += n + 1) {
		char name[64];
		int kind;

		n = strcspn(value, "+");
		snprintf(name, sizeof(name), "%.*s", (int)n, value);
		kind = coll_kind_parse(name);
		if (kind >= 0 && t->kinds >> kind & 1)
			return err_set(err, EINVAL, "op: '%s' is there twice", name);
		if (kind >= 0) {
			t->kinds |= 1u << kind;
			if (!value[n])
				return 0;
			continue;
		}
		for (uint32_t i = 0; i < COLL_KINDS; i++)
			names[i] = coll_kind_name(i);
		near = suggest(name, names, COLL_KINDS);
		return err_set(err, EINVAL, "op: unknown collective '%s'%s%s%s", name,
			       near ? "; did you mean '" : "; there are allreduce, allgather, ...",
			       near ? near : "", near ? "'?" : "");
	}
}

/* "1MiB-64MiB", "1MiB-", "4KiB". */
static int take_bytes(struct target *t, const char *value, struct err *err)
{
	char first[64];
	size_t n = strcspn(value, "-");
	const char *last = value[n] ? value + n + 1 : NULL;
	int r;

	snprintf(first, sizeof(first), "%.*s", (int)n, value);
	r = units_bytes(first, &t->min_bytes, err);
	t->max_bytes = last ? UINT64_MAX : t->min_bytes;
	if (r == 0 && last && last[0])
		r = units_bytes(last, &t->max_bytes, err);
	if (r < 0)
		return err_prefix(err, r, "bytes");
	if (t->max_bytes < t->min_bytes)
		return err_set(err, EINVAL, "bytes=%.64s: the second is less than the first",
			       value);
	t->has_bytes = true;
	return 0;
}

int target_take(struct target *t, const char *key, const char *value, struct err *err)
{
	if (!strcmp(key, "op"))
		return take_kinds(t, value, err);
	if (!strcmp(key, "bytes"))
		return take_bytes(t, value, err);
	if (strcmp(key, "communicator") != 0)
		return 1;
	if (strlen(value) >= sizeof(t->communicator))
		return err_set(err, EINVAL, "communicator=%.64s... is too long", value);
	snprintf(t->communicator, sizeof(t->communicator), "%s", value);
	return 0;
}

bool target_is_any(const struct target *t)
{
	return !t->kinds && !t->has_bytes && !t->communicator[0];
}

bool target_has_op(const struct target *t, uint32_t kind, uint64_t bytes)
{
	return (!t->kinds || t->kinds >> kind & 1) &&
	       (!t->has_bytes || (bytes >= t->min_bytes && bytes <= t->max_bytes));
}

bool target_has_comm(const struct target *t, const struct target_comm *c)
{
	const char *name = t->communicator;

	if (!name[0] || !c)
		return true;
	if (name[strspn(name, "0123456789")] == '\0')
		return strtoul(name, NULL, 10) == c->number;
	return strcmp(name, "world") == 0 ? c->is_world : strcmp(name, c->axes) == 0;
}
