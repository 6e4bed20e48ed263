/* See gather-frames.h. */
#include "nboxd/comm/gather-frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "nboxd/comm/gather-complete.h"
#include "nboxd/comm/job-lists.h"
#include "nboxd/job/players.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/store/serve/virtual.h"
#include "wire/unique-id.h"

/* The process that plays real rank number @i, but for @w. A launcher that starts a rank again has
 * seen the old process end; nboxd may not have yet. */
static const struct worker *other_player(const struct players *p, const struct worker *w, int i)
{
	struct worker *other = p->workers[i];

	return other && other != w && !worker_has_gone(other) ? other : NULL;
}

/* A world rank is played by one process. Return: false, and the worker was told. */
static bool claim_rank(struct gathers *gs, struct worker *w, const struct wire_comm_init *m)
{
	int i = players_index(gs->players, m->world_rank);
	const struct worker *other = i < 0 ? NULL : other_player(gs->players, w, i);
	char name[WORKER_NAME_MAX], why[WIRE_TEXT_MAX];

	if (i < 0) {
		const struct config *c = gs->comms->config;

		snprintf(
			why, sizeof(why),
			"world rank %u is not one of the %zu real ranks (%u to %u) of a world of %u: "
			"set real of nboxd, or RANK of the worker",
			m->world_rank, c->n_real, c->real[0], c->real[c->n_real - 1], c->world);
	} else if (other) {
		snprintf(
			why, sizeof(why),
			"world rank %u is played by %s already: a command that starts its ranks "
			"itself wants 'nbox run --launcher' (a script around torchrun) or '--procs 1' (mp.spawn)",
			m->world_rank, worker_name(other, name, sizeof(name)));
	} else {
		gs->players->workers[i] = w;
		return true;
	}
	warn_run("%s: %s", worker_name(w, name, sizeof(name)), why);
	gather_tell_failed(w, m->cookie, EINVAL, why);
	return false;
}

/* Was a communicator with this id made without this rank? */
static bool is_late(struct gathers *gs, struct worker *w, const struct wire_comm_init *m)
{
	char why[WIRE_TEXT_MAX], name[WORKER_NAME_MAX];
	struct comm *c, *next;

	HASH_ITER(hh, gs->comms->by_number, c, next) {
		if (c->parent || memcmp(c->id, m->id, sizeof(c->id)) != 0)
			continue;
		if (wire_unique_id_is_common(m->id) &&
		    (c->n_ranks != m->n_ranks || bitmap_test(&c->is_real, m->rank) ||
		     membership_world(&c->members.map, m->rank) != m->world_rank))
			continue; /* another one with this id */
		snprintf(why, sizeof(why),
			 "rank %u came after communicator %u was complete without it; raise settle "
			 "(now %.0f ms) of nboxd",
			 m->rank, c->number, (double)gs->comms->config->settle_ns / 1e6);
		warn_run("%s: %s", worker_name(w, name, sizeof(name)), why);
		gather_tell_failed(w, m->cookie, ETIMEDOUT, why);
		return true;
	}
	return false;
}

/* @entry joins @g, with the list that the job has: @n_bytes behind the body of its frame. Return:
 * 0; -EEXIST: its rank was here, and it is told @twice; -ENOMEM: all are told, @g is not to be
 * used. */
static int check_in(struct gather *g, const struct comm_entry *entry, int32_t color,
		    const void *list, uint64_t n_bytes, const char *twice)
{
	struct comms *comms = g->gathers->comms;
	int r = gather_add(g, entry);

	if (n_bytes)
		comms->cluster->is_torch = true; /* no other job has such lists */
	if (r == 0)
		r = job_list_add(&g->lists, comms->config->world, color, entry->rank, list,
				 n_bytes);
	if (r < 0)
		gather_tell_failed(entry->worker, entry->cookie, -r,
				   r == -EEXIST ? twice : "nboxd is out of memory");
	if (r == -ENOMEM)
		gather_fail(g, ENOMEM, "out of memory");
	return r;
}

int gather_on_init(struct gathers *gs, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct comm_entry entry;
	struct wire_comm_init m;
	struct gather_wanted wanted;
	struct gather *g;
	int r;

	memcpy(&m, body, sizeof(m));
	store_server_canonical_id(gs->store, m.id);
	if (!claim_rank(gs, w, &m))
		return 0;
	entry = (struct comm_entry){.worker = w,
				    .rank = m.rank,
				    .world_rank = m.world_rank,
				    .cookie = m.cookie};
	wanted = (struct gather_wanted){.kind = GATHER_INIT,
					.id = m.id,
					.n_ranks = m.n_ranks,
					.rank = m.rank,
					.world_rank = m.world_rank};
	if (gather_has_failed(gs, &wanted, &entry))
		return 0;
	g = gather_find(gs, &wanted);
	if (!g) {
		if (is_late(gs, w, &m))
			return 0;
		g = gather_new(gs, GATHER_INIT);
		if (!g) {
			gather_tell_failed(w, m.cookie, ENOMEM,
					   "too many communicators are being made");
			return 0;
		}
		memcpy(g->id, m.id, sizeof(g->id));
		g->n_ranks = m.n_ranks;
		g->n_wanted = m.n_ranks < gs->comms->cluster->n_real
				      ? m.n_ranks
				      : (uint32_t)gs->comms->cluster->n_real;
	}
	r = check_in(g, &entry, 0, (const char *)body + sizeof(m), h->body_bytes - sizeof(m),
		     "this rank checked in a second time");
	if (r == -ENOMEM)
		return 0;
	if (m.n_ranks != g->n_ranks)
		gather_fail(g, EINVAL, "rank %u says %u ranks, rank %u says %u", g->entries[0].rank,
			    g->n_ranks, m.rank, m.n_ranks);
	else if (g->n_ranks > gs->comms->config->world)
		gather_fail(
			g, EINVAL,
			"a communicator of %u ranks in a world of %u; set nodes and gpus-per-node "
			"of nboxd to what the job believes",
			g->n_ranks, gs->comms->config->world);
	else if (r == 0 && g->n == g->n_wanted)
		gather_init_complete(g, MEMBERS_ALL_CAME);
	else if (r == 0 && g->n_ranks < gs->comms->config->world)
		gather_init_complete(g, MEMBERS_AT_ONCE);
	return 0;
}

/* The parent of a split or shrink, when @w plays @rank in it. A dead one can be shrunk:
 * that is how a job goes on without the rank that killed it. */
static struct comm *find_parent(struct gathers *gs, struct worker *w, const struct wire_hdr *h,
				uint32_t rank, uint32_t cookie, enum gather_kind kind)
{
	struct comm *c = comm_find(gs->comms, h->comm);
	struct comm_member *m = c ? comm_member(c, rank) : NULL;

	if (c && (!m || m->worker != w)) {
		worker_refuse(w, EPROTO,
			      "%s for rank %u of communicator %u, which it does not play",
			      wire_type_name(h->type), rank, h->comm);
		return NULL;
	}
	if (!c || (c->is_dead && kind != GATHER_SHRINK)) {
		gather_tell_failed(w, cookie, ECANCELED,
				   "the parent communicator was aborted or freed");
		return NULL;
	}
	return c;
}

int gather_on_split(struct gathers *gs, struct worker *w, const struct wire_hdr *h,
		    const void *body)
{
	struct wire_comm_split m;
	struct comm_entry entry;
	struct gather_wanted wanted;
	struct comm *parent;
	struct gather *g;
	int r;

	memcpy(&m, body, sizeof(m));
	parent = find_parent(gs, w, h, m.rank, m.cookie, GATHER_SPLIT);
	if (!parent)
		return 0;
	entry = (struct comm_entry){.worker = w,
				    .rank = m.rank,
				    .world_rank = comm_member(parent, m.rank)->world_rank,
				    .cookie = m.cookie,
				    .color = m.color,
				    .key = m.key};
	wanted = (struct gather_wanted){.kind = GATHER_SPLIT,
					.parent = m.parent,
					.count = m.count,
					.world_rank = entry.world_rank};
	if (gather_has_failed(gs, &wanted, &entry))
		return 0;
	g = gather_find(gs, &wanted);
	if (!g)
		g = gather_new(gs, GATHER_SPLIT);
	if (!g) {
		gather_tell_failed(w, m.cookie, ENOMEM, "too many communicators are being made");
		return 0;
	}
	g->parent = m.parent;
	g->count = m.count;
	g->n_ranks = parent->n_ranks;
	g->n_wanted = (uint32_t)bitmap_count(&parent->has_process);
	r = check_in(g, &entry, m.color, (const char *)body + sizeof(m), h->body_bytes - sizeof(m),
		     "this rank split a second time");
	if (r == -ENOMEM)
		return 0;
	if (gather_awaited_member(g, parent, NULL))
		gather_fail(g, ECONNRESET, "rank %u of communicator %u has left",
			    gather_awaited_member(g, parent, NULL)->rank, parent->number);
	else if (r == 0 && g->n == g->n_wanted)
		gather_split_complete(g, parent);
	return 0;
}

static bool is_in_list(const struct gather_wanted *w, uint32_t rank)
{
	uint32_t one;

	for (uint32_t i = 0; i < w->n_excluded; i++) {
		memcpy(&one, (const char *)w->excluded + i * sizeof(one), sizeof(one));
		if (one == rank)
			return true;
	}
	return false;
}

/* Calls on one communicator come in the same order everywhere. So two shrinks contradict each other
 * when the first waits for this rank, and this rank begins the second with members that are in the
 * first. @own: the gather that this rank would join, or NULL. Return: the first, or NULL. */
static struct gather *shrink_against(struct gathers *gs, const struct gather_wanted *w,
				     uint32_t rank, const struct gather *own, uint32_t *ret_who)
{
	struct gather *g;

	DL_FOREACH(gs->list, g) {
		if (g->kind != GATHER_SHRINK || g->parent != w->parent ||
		    gather_excludes_same(g, w) || gather_has(g, w->world_rank) ||
		    gather_is_excluded(g, rank))
			continue;
		for (uint32_t i = 0; i < g->n; i++) {
			if (is_in_list(w, g->entries[i].rank) ||
			    (own && gather_has(own, g->entries[i].world_rank)))
				continue;
			*ret_who = g->entries[i].rank;
			return g;
		}
	}
	return NULL;
}

/* Return: 0; -ENOMEM. */
static int shrink_start(struct gather *g, const struct comm *parent,
			const struct wire_comm_shrink *m, const void *list)
{
	g->parent = m->parent;
	g->n_ranks = parent->n_ranks;
	g->excluded = calloc((size_t)m->n_excluded + 1, sizeof(*g->excluded));
	if (!g->excluded)
		return -ENOMEM;
	memcpy(g->excluded, list, m->n_excluded * sizeof(*g->excluded));
	g->n_excluded = m->n_excluded;
	for (uint32_t i = 0; i < parent->n_real; i++)
		g->n_wanted += !parent->real[i].is_recorded &&
			       !gather_is_excluded(g, parent->real[i].rank);
	return 0;
}

int gather_on_shrink(struct gathers *gs, struct worker *w, const struct wire_hdr *h,
		     const void *body)
{
	const void *list = (const char *)body + sizeof(struct wire_comm_shrink);
	struct wire_comm_shrink m;
	struct comm_entry entry;
	struct gather_wanted wanted;
	struct gather *g, *against;
	struct comm *parent;
	uint32_t who = 0;
	int r = 0;

	memcpy(&m, body, sizeof(m));
	if (m.parent != h->comm || m.n_excluded > gs->comms->config->world)
		return worker_refuse(w, EPROTO, "COMM_SHRINK frame: parent or count is wrong");
	parent = find_parent(gs, w, h, m.rank, m.cookie, GATHER_SHRINK);
	if (!parent)
		return 0;
	entry = (struct comm_entry){.worker = w,
				    .rank = m.rank,
				    .world_rank = comm_member(parent, m.rank)->world_rank,
				    .cookie = m.cookie};
	wanted = (struct gather_wanted){.kind = GATHER_SHRINK,
					.parent = m.parent,
					.n_excluded = m.n_excluded,
					.excluded = list,
					.world_rank = entry.world_rank};
	if (gather_has_failed(gs, &wanted, &entry))
		return 0;
	g = gather_find(gs, &wanted);
	against = shrink_against(gs, &wanted, m.rank, g, &who);
	if (against) {
		if (gather_add(against, &entry) < 0)
			gather_tell_failed(w, m.cookie, ENOMEM, "nboxd is out of memory");
		gather_fail(against, EINVAL, "rank %u excludes other ranks than rank %u", m.rank,
			    who);
		return 0;
	}
	if (!g) {
		g = gather_new(gs, GATHER_SHRINK);
		if (g)
			r = shrink_start(g, parent, &m, list);
	}
	if (!g || r < 0) {
		gather_tell_failed(w, m.cookie, ENOMEM, "too many communicators are being made");
		if (g)
			gather_free(g);
		return 0;
	}
	r = gather_add(g, &entry);
	if (r < 0)
		gather_tell_failed(w, m.cookie, -r, "nboxd is out of memory");
	if (r < 0)
		gather_fail(g, ENOMEM, "out of memory");
	else if (gather_is_excluded(g, m.rank))
		gather_fail(g, EINVAL, "rank %u excludes itself", m.rank);
	else if (gather_awaited_member(g, parent, NULL))
		gather_fail(g, ECONNRESET, "rank %u is gone and is not excluded",
			    gather_awaited_member(g, parent, NULL)->rank);
	else if (g->n == g->n_wanted)
		gather_shrink_complete(g, parent);
	return 0;
}
