/* See gather-complete.h. */
#include "nboxd/comm/gather-complete.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nboxd/comm/groups.h"
#include "nboxd/comm/job-lists.h"
#include "nboxd/comm/resolve.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"

/* Two members that claim the same world rank: a process drives several devices and has only one
 * RANK. nboxd could say nothing true of the members of such a communicator. Return: the index of
 * the second; 0: none. */
static uint32_t find_double(const struct gather *g)
{
	for (uint32_t i = 1; i < g->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (g->entries[k].world_rank == g->entries[i].world_rank)
				return i;
	return 0;
}

bool gather_init_complete(struct gather *g, enum members_patience patience)
{
	CLEANUP(freep) uint32_t *ranks = calloc(g->n, sizeof(*ranks));
	CLEANUP(members_deinit) struct members members = {0};
	struct gathers *gs = g->gathers;
	struct err err = {""};
	struct comm *c = NULL;
	uint32_t two;
	int r;

	if (!ranks) {
		gather_fail(g, ENOMEM, "out of memory");
		return true;
	}
	if ((two = find_double(g))) {
		gather_fail(
			g, EINVAL,
			"rank %u and another one both say that they are world rank %u: a process that "
			"drives several devices makes a communicator of all %u ranks first, so that each "
			"device's rank is known",
			g->entries[two].rank, g->entries[two].world_rank, gs->comms->config->world);
		return true;
	}
	for (uint32_t i = 0; i < g->n; i++)
		ranks[i] = g->entries[i].rank;
	r = resolve_init(g, patience, &members, &err);
	if (r == MEMBERS_WAIT)
		return false;
	if (r == 0)
		r = comm_new(gs->comms, &members, g->entries, ranks, g->n, g->id, 0, &c, &err);
	if (r < 0) {
		gather_fail(g, -r, "%s", err.text);
		return true;
	}
	gather_free(g);
	groups_on_comm(gs->groups, c);
	return true;
}

/* A child's members are known no better than its parent's. */
static void inherit(struct members *m, const struct comm *parent)
{
	if (m->sure < parent->members.sure)
		m->sure = parent->members.sure;
}

/* The entries whose parent ranks are in @ranks, in that order, with new ranks. */
static int child_new(struct gather *g, struct members *members, const uint32_t *parent_ranks,
		     struct err *err)
{
	CLEANUP(freep) struct comm_entry *entries = calloc(g->n, sizeof(*entries));
	CLEANUP(freep) uint32_t *ranks = calloc(g->n, sizeof(*ranks));
	struct comm *c;
	size_t n = 0;

	if (!entries || !ranks)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t r = 0; r < members->map.n_ranks; r++) {
		uint32_t low = 0, high = g->n;

		while (low < high) {
			uint32_t mid = low + (high - low) / 2;

			if (g->entries[mid].rank < parent_ranks[r])
				low = mid + 1;
			else
				high = mid;
		}
		if (low < g->n && g->entries[low].rank == parent_ranks[r]) {
			entries[n] = g->entries[low];
			ranks[n++] = r;
		}
	}
	return comm_new(g->gathers->comms, members, entries, ranks, n, NULL, g->parent, &c, err);
}

static void tell_no_color(const struct comm_entry *e)
{
	struct wire_comm_ready m = {.cookie = e->cookie};
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_COMM_READY, sizeof(m));
	if (e->worker)
		worker_send(e->worker, &h, &m);
}

/* Parent ranks of the list. Return: 0; -EINVAL one is not in the parent; -ENOMEM. */
static int parent_ranks(const struct membership *parent, const struct job_list *t, uint32_t **ret)
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

/* The members of @color by the job's list. Return: 0; NO_LIST: there is none, or it contradicts the
 * votes (a warning); -ENOMEM. */
enum { NO_LIST = 1 };
static int by_job_list(const struct gather *g, const struct comm *parent, int32_t color,
		       struct members *ret, uint32_t **ret_ranks)
{
	const struct job_list *t = job_list_find(g->lists, color);
	CLEANUP(freep) struct wire_member *known = calloc(g->n, sizeof(*known));
	struct err why = {""};
	size_t n_known = 0;
	int r;

	if (!known)
		return -ENOMEM;
	if (!t)
		return NO_LIST;
	for (uint32_t i = 0; i < g->n; i++) {
		if (g->entries[i].color != color)
			continue;
		if (g->entries[i].key < 0)
			return NO_LIST; /* no place in a list */
		known[n_known++] =
			(struct wire_member){(uint32_t)g->entries[i].key, g->entries[i].world_rank};
	}
	r = members_by_list(g->gathers->comms->cluster, t->world_ranks, t->n, known, n_known,
			    MEMBERS_JOB_LIST, ret, &why);
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
	return r == -EINVAL ? NO_LIST : r;
}

/* All of one color. Return: 0; negative errno with the sentence. */
static int split_color(struct gather *g, const struct comm *parent, const struct split_vote *votes,
		       int32_t color, struct err *err)
{
	CLEANUP(members_deinit) struct members members = {0};
	CLEANUP(freep) uint32_t *ranks = NULL;
	struct err warning = {""};
	int r = by_job_list(g, parent, color, &members, &ranks);

	if (r == NO_LIST)
		r = members_split(g->gathers->comms->cluster, &parent->members.map, votes, g->n,
				  g->gathers->comms->config->split, color, &members, &ranks,
				  &warning);
	if (r < 0)
		return err_set(err, -r, "out of memory");
	if (warning.text[0])
		warn_run("%s", warning.text);
	inherit(&members, parent);
	return child_new(g, &members, ranks, err);
}

void gather_split_complete(struct gather *g, const struct comm *parent)
{
	CLEANUP(freep) struct split_vote *votes = calloc(g->n, sizeof(*votes));
	struct err err = {""};

	if (!votes) {
		gather_fail(g, ENOMEM, "out of memory");
		return;
	}
	for (uint32_t i = 0; i < g->n; i++)
		votes[i] = (struct split_vote){g->entries[i].rank, g->entries[i].color,
					       g->entries[i].key};
	for (uint32_t i = 0; i < g->n; i++) {
		bool is_first = true;

		if (votes[i].color < 0) {
			tell_no_color(&g->entries[i]);
			continue;
		}
		for (uint32_t k = 0; k < i; k++)
			is_first = is_first && votes[k].color != votes[i].color;
		if (!is_first)
			continue;
		if (split_color(g, parent, votes, votes[i].color, &err) == 0)
			continue;
		for (uint32_t k = i; k < g->n; k++)
			if (votes[k].color == votes[i].color)
				gather_tell_failed(g->entries[k].worker, g->entries[k].cookie,
						   ENOMEM, err.text);
	}
	gather_free(g);
}

void gather_shrink_complete(struct gather *g, const struct comm *parent)
{
	CLEANUP(members_deinit) struct members members = {0};
	CLEANUP(freep) uint32_t *ranks = NULL;
	struct err err = {""};
	int r = members_shrink(&parent->members.map, g->excluded, g->n_excluded, &members, &ranks);

	inherit(&members, parent);
	if (r == 0)
		r = child_new(g, &members, ranks, &err);
	else
		err_set(&err, ENOMEM, "out of memory");
	if (r < 0)
		gather_fail(g, -r, "%s", err.text);
	else
		gather_free(g);
}
