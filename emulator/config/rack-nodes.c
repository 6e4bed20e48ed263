/* See rack-nodes.h. */
#include "config/rack-nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "fabric/leaf.h"

/* Where "rack=" stands as a key; NULL: nowhere. */
static const char *find_key(const char *text)
{
	const char *p = strpbrk(text, ":,");

	while (p && strncmp(p + 1, "rack=", strlen("rack=")) != 0)
		p = strpbrk(p + 1, ",");
	return p ? p + 1 : NULL;
}

/* The leaves of one row, which has one a rail, have the same nodes. */
static void write_nodes(FILE *out, const struct fabric *f, const uint32_t *leaves, size_t n)
{
	uint32_t per_leaf = f->network.nodes_per_leaf;

	for (size_t i = 0; i < n; i++) {
		uint32_t row = leaves[i] / leaf_rails(f), first = row * per_leaf;
		uint32_t last = first + per_leaf - 1;

		if (i && leaves[i - 1] / leaf_rails(f) == row)
			continue;
		last = last < f->n_nodes ? last : f->n_nodes - 1;
		fprintf(out, "%s%u", i ? "+" : "node=", first);
		if (last > first)
			fprintf(out, "-%u", last);
	}
}

int rack_nodes(const char *text, const struct fabric *f, char **ret, struct err *err)
{
	const char *key = find_key(text), *value = key ? key + strlen("rack=") : NULL;
	CLEANUP(freep) uint32_t *leaves = NULL;
	CLEANUP(freep) char *racks = NULL, *made = NULL;
	size_t n_value = value ? strcspn(value, ",") : 0, n, size;
	FILE *out;
	int r;

	*ret = NULL;
	if (!key)
		return 0;
	if (!f || !leaf_count(f))
		return err_set(err, EINVAL, "'%.200s': rack= is a leaf of the fabric, and %s%s",
			       text,
			       f ? "there is none in " : "there is no fabric: --preset or --fabric",
			       f ? f->name : "");
	racks = strndup(value, n_value);
	if (!racks)
		return err_set(err, ENOMEM, "out of memory");
	r = units_numbers(racks, "rack", leaf_count(f), &leaves, &n, err);
	if (r < 0)
		return err_prefix(err, r, "'%.200s'", text);
	out = open_memstream(&made, &size);
	if (!out)
		return err_set(err, ENOMEM, "out of memory");
	fprintf(out, "%.*s", (int)(key - text), text);
	write_nodes(out, f, leaves, n);
	fputs(value + n_value, out);
	if (fclose(out) != 0)
		return err_set(err, ENOMEM, "out of memory");
	*ret = steal_ptr(made);
	return 0;
}
