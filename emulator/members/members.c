/* The membership of a communicator; see members.h. */
#include "members/members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/cleanup.h"

const char *members_source_name(uint32_t source)
{
	static const char *const names[MEMBERS_SOURCES] = {
		[MEMBERS_WORLD] = "world",         [MEMBERS_ALL_REAL] = "all real",
		[MEMBERS_PARENT] = "parent",       [MEMBERS_COLOR] = "color",
		[MEMBERS_JOB_LIST] = "job's list", [MEMBERS_STORE] = "store",
		[MEMBERS_LAYOUT] = "layout",       [MEMBERS_TEMPLATE] = "template",
		[MEMBERS_GUESS] = "guess",
	};

	return source < MEMBERS_SOURCES ? names[source] : "?";
}

const char *members_sure_name(uint32_t sure)
{
	static const char *const names[] = {"exact", "guessed"};

	return sure <= MEMBERS_GUESSED ? names[sure] : "?";
}

void members_deinit(struct members *m)
{
	free(m->table);
	*m = (struct members){0};
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int cluster_is_real(const struct cluster *c, uint32_t world_rank)
{
	return bsearch(&world_rank, c->real, c->n_real, sizeof(*c->real), compare_u32) != NULL;
}

static int by_rank(const void *a, const void *b)
{
	return compare_u32(&((const struct wire_member *)a)->rank,
			   &((const struct wire_member *)b)->rank);
}

void members_sort(struct wire_member *list, size_t n)
{
	qsort(list, n, sizeof(*list), by_rank);
}

void members_set_table(struct members *m, uint32_t n_ranks, uint32_t *table)
{
	int64_t stride = n_ranks > 1 ? (int64_t)table[1] - (int64_t)table[0] : 1;
	uint32_t r = 2;

	while (r < n_ranks && (int64_t)table[r] - (int64_t)table[r - 1] == stride)
		r++;
	if (n_ranks && (stride <= 0 || r < n_ranks)) {
		*m = (struct members){.map = {n_ranks, 0, 0, table}, .table = table};
		return;
	}
	*m = (struct members){.map = {n_ranks, n_ranks ? table[0] : 0, (uint32_t)stride, NULL}};
	free(table);
}

int members_from_list(const uint32_t *world_ranks, uint32_t n_ranks, struct members *ret)
{
	uint32_t *table = malloc(((size_t)n_ranks + 1) * sizeof(*table));

	if (!table)
		return -ENOMEM;
	memcpy(table, world_ranks, n_ranks * sizeof(*table));
	members_set_table(ret, n_ranks, table);
	return 0;
}

int members_from_radix(const struct radix *r, struct members *ret)
{
	uint32_t n = radix_size(r), *table = malloc((size_t)n * sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		table[i] = radix_at(r, i);
	members_set_table(ret, n, table);
	return 0;
}

int members_of_parent(const struct membership *parent, const uint32_t *ranks, uint32_t n_ranks,
		      struct members *ret)
{
	uint32_t *table = malloc(((size_t)n_ranks + 1) * sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_ranks; i++)
		table[i] = membership_world(parent, ranks[i]);
	members_set_table(ret, n_ranks, table);
	return 0;
}

bool cluster_next_group(const struct cluster *c, uint32_t world_rank, uint32_t *axes,
			struct radix *ret)
{
	uint32_t i = *axes >> 8, bits = (*axes & 0xff) + 1;

	if (i < c->n_layouts && bits == 1u << c->layouts[i].n_axes) {
		i++;
		bits = 1;
	}
	if (i >= c->n_layouts)
		return false;
	*axes = i << 8 | bits;
	layout_group(&c->layouts[i], bits, world_rank, ret);
	return true;
}

enum fit cluster_fit(const struct cluster *c, const struct radix *r,
		     const struct wire_member *known, size_t n_known)
{
	size_t n_real = 0;

	for (size_t i = 0; i < n_known; i++)
		if (radix_find(r, known[i].world_rank) != (int64_t)known[i].rank)
			return FIT_NO;
	for (size_t i = 0; i < c->n_real; i++)
		n_real += radix_find(r, c->real[i]) >= 0;
	return n_real == n_known ? FIT_YES : FIT_LACKS;
}

static bool is_radix(const struct membership *m, const struct radix *r)
{
	if (radix_size(r) != m->n_ranks)
		return false;
	for (uint32_t i = 0; i < m->n_ranks; i++)
		if (radix_at(r, i) != membership_world(m, i))
			return false;
	return true;
}

uint32_t members_axes(const struct cluster *c, const struct membership *m)
{
	uint32_t axes = 0;
	struct radix r;

	while (m->n_ranks > 1 && cluster_next_group(c, membership_world(m, 0), &axes, &r))
		if (is_radix(m, &r))
			return axes;
	return 0;
}

char *members_axes_name(const struct layout *layouts, size_t n_layouts, uint32_t axes, char *buf,
			size_t size)
{
	buf[0] = '\0';
	if (axes && axes >> 8 < n_layouts)
		layout_axes_name(&layouts[axes >> 8], axes & 0xff, buf, size);
	return buf;
}

int members_by_list(const struct cluster *c, const uint32_t *world_ranks, uint32_t n_ranks,
		    const struct wire_member *known, size_t n_known, enum members_source source,
		    struct members *ret, struct err *err)
{
	CLEANUP(bitmap_deinit) struct bitmap taken = {0};
	size_t n_real = 0;
	int r;

	if (bitmap_init(&taken, topology_world(c->topology)) < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n_ranks; i++) {
		if (world_ranks[i] >= topology_world(c->topology))
			return err_set(err, EINVAL, "rank %u is world rank %u of a world of %u", i,
				       world_ranks[i], topology_world(c->topology));
		if (!bitmap_test_and_set(&taken, world_ranks[i]))
			return err_set(err, EINVAL, "world rank %u is in it twice", world_ranks[i]);
		n_real += (size_t)cluster_is_real(c, world_ranks[i]);
	}
	for (size_t i = 0; i < n_known; i++)
		if (known[i].rank >= n_ranks || world_ranks[known[i].rank] != known[i].world_rank)
			return err_set(err, EINVAL, "rank %u says that it is world rank %u",
				       known[i].rank, known[i].world_rank);
	if (n_real != n_known)
		return err_set(err, EINVAL, "%zu of %u ranks are real, but %zu checked in", n_real,
			       n_ranks, n_known);
	r = members_from_list(world_ranks, n_ranks, ret);
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	ret->source = source;
	ret->axes = members_axes(c, &ret->map);
	return 0;
}

bool members_differ_from_layout(const struct cluster *c, const struct members *m,
				const struct wire_member *known, size_t n_known)
{
	uint32_t axes = 0;
	struct radix r;

	if (m->axes || m->map.n_ranks >= topology_world(c->topology))
		return false;
	while (cluster_next_group(c, known[0].world_rank, &axes, &r))
		if (radix_size(&r) == m->map.n_ranks &&
		    cluster_fit(c, &r, known, n_known) == FIT_YES)
			return true;
	return false;
}

/* --- shrink ------------------------------------------------------------------------ */

int members_shrink(const struct membership *parent, const uint32_t *excluded, size_t n_excluded,
		   struct members *ret, uint32_t **ret_ranks)
{
	CLEANUP(bitmap_deinit) struct bitmap out = {0};
	CLEANUP(freep) uint32_t *ranks = malloc(((size_t)parent->n_ranks + 1) * sizeof(*ranks));
	uint32_t n = 0;

	if (!ranks || bitmap_init(&out, parent->n_ranks) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n_excluded; i++)
		if (excluded[i] < parent->n_ranks)
			bitmap_set(&out, excluded[i]);
	for (uint32_t rank = 0; rank < parent->n_ranks; rank++)
		if (!bitmap_test(&out, rank))
			ranks[n++] = rank;
	if (members_of_parent(parent, ranks, n, ret) < 0)
		return -ENOMEM;
	ret->source = MEMBERS_PARENT;
	*ret_ranks = steal_ptr(ranks);
	return 0;
}

uint32_t members_per_node(const struct membership *m, const struct topology *t)
{
	uint32_t run = 1;

	if (m->n_ranks == 0)
		return 1;
	while (run < m->n_ranks && topology_node(t, membership_world(m, run)) ==
					   topology_node(t, membership_world(m, 0)))
		run++;
	if (m->n_ranks % run)
		return 1;
	for (uint32_t r = run + 1; r <= m->n_ranks; r++) {
		bool same = r < m->n_ranks && topology_node(t, membership_world(m, r)) ==
						      topology_node(t, membership_world(m, r - 1));

		if (r % run == 0 ? same : !same)
			return 1;
	}
	return run;
}
