/* Lists of world ranks that the job itself has for its communicators: the shim asked (see
 * ../../shim/job-ranks.h) and sent them with the check-ins. They are checked against each
 * other and against who checked in; a list that fails is not believed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nboxd/comm/gather-private.h"
#include "nboxd/loop/warn.h"
#include "nboxd/server.h"

int told_add(struct gather *g, int32_t color, uint32_t rank, const void *list, uint64_t n_bytes)
{
	uint32_t n = (uint32_t)(n_bytes / sizeof(uint32_t));
	struct told *t = g->told;

	if (n == 0 || n > g->server->config->world)
		return 0;
	g->server->cluster.is_torch = true; /* nobody else has such lists */
	while (t && t->color != color)
		t = t->next;
	if (t) {
		if (t->n == 0 || (t->n == n && memcmp(t->world_ranks, list, n_bytes) == 0))
			return 0;
		warn_run("the job's own lists of who is in a communicator differ: ranks "
			 "%u and %u have %u and %u ranks, or others; neither is believed",
			 t->by, rank, t->n, n);
		t->n = 0;
		return 0;
	}
	t = malloc(sizeof(*t) + n_bytes);
	if (!t)
		return -ENOMEM;
	*t = (struct told){.next = g->told, .color = color, .by = rank, .n = n};
	memcpy(t->world_ranks, list, n_bytes);
	g->told = t;
	return 0;
}

void told_free(struct told *t)
{
	while (t) {
		struct told *next = t->next;

		free(t);
		t = next;
	}
}

const struct told *told_find(const struct gather *g, int32_t color)
{
	const struct told *t = g->told;

	while (t && t->color != color)
		t = t->next;
	return t && t->n ? t : NULL;
}

bool told_all_here(const struct gather *g, const struct told *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		n += (uint32_t)cluster_is_real(&g->server->cluster, t->world_ranks[i]);
	return n <= g->n;
}

/* Parent ranks of the list. Return: 0; -EINVAL one is not in the parent; -ENOMEM. */
static int parent_ranks(const struct membership *parent, const struct told *t, uint32_t **ret)
{
	CLEANUP(freep) uint32_t *ranks = malloc(t->n * sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++) {
		int64_t rank = membership_rank(parent, t->world_ranks[i]);

		if (rank < 0)
			return -EINVAL;
		ranks[i] = (uint32_t)rank;
	}
	*ret = steal_ptr(ranks);
	return 0;
}

int told_split(const struct gather *g, const struct comm *parent, int32_t color,
	       struct members *ret, uint32_t **ret_ranks)
{
	const struct told *t = told_find(g, color);
	CLEANUP(freep) struct wire_member *known = calloc(g->n, sizeof(*known));
	struct server *s = g->server;
	struct err why = {""};
	size_t n_known = 0;
	int r;

	if (!known)
		return -ENOMEM;
	if (!t)
		return TOLD_NOTHING;
	for (uint32_t i = 0; i < g->n; i++)
		if (g->entries[i].color == color && g->entries[i].key >= 0)
			known[n_known++] = (struct wire_member){(uint32_t)g->entries[i].key,
								g->entries[i].world_rank};
	r = members_told(&s->cluster, t->world_ranks, t->n, known, n_known, MEMBERS_TOLD, ret,
			 &why);
	if (r == 0) {
		r = parent_ranks(&parent->members.map, t, ret_ranks);
		if (r == -EINVAL)
			err_set(&why, EINVAL, "a rank of it is not in the parent");
		if (r < 0)
			members_deinit(ret);
	}
	if (r == -EINVAL)
		warn_run("a split (color %d): the job's own list has %u ranks, but %s; the list is "
			 "not believed",
			 color, t->n, why.text);
	return r == -EINVAL ? TOLD_NOTHING : r;
}
