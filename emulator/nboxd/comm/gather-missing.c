/* See gather-missing.h. */
#include "nboxd/comm/gather-missing.h"

#include <errno.h>
#include <stdio.h>
#include <utlist.h>

#include "base/clock.h"
#include "nboxd/comm/gather-complete.h"
#include "nboxd/comm/job-lists.h"
#include "nboxd/job/processes.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "wire/unique-id.h"

/* So many times longer than others nboxd waits for a communicator that seems to lack a real rank.
 */
#define PATIENCE 40

/* A rank whose process has ended does not come. Another process of the job might be checking in for
 * it just now, one that drives several devices. */
#define ENDED_NS (2 * NS_PER_S)

void gathers_on_abort(struct gathers *gs, struct worker *w, uint32_t cookie, const char *why)
{
	char name[WORKER_NAME_MAX];
	struct gather *g;

	DL_FOREACH(gs->list, g) {
		for (uint32_t i = 0; i < g->n; i++) {
			if (g->entries[i].worker != w || g->entries[i].cookie != cookie)
				continue;
			gather_fail(g, ECONNABORTED, "rank %u, %s: %.300s", g->entries[i].rank,
				    worker_name(w, name, sizeof(name)), why);
			return;
		}
	}
	/* else the answer is on its way, and the worker gives its communicator back */
}

void gathers_worker_gone(struct gathers *gs, struct worker *w, const char *why)
{
	char name[WORKER_NAME_MAX];
	struct gather *g, *next;

	DL_FOREACH_SAFE(gs->list, g, next) {
		const struct comm *parent =
			g->kind == GATHER_INIT ? NULL : comm_find(gs->comms, g->parent);
		const struct comm_member *m = parent ? gather_awaited_member(g, parent, w) : NULL;
		bool is_in = m != NULL;
		uint32_t rank = m ? m->rank : 0;

		for (uint32_t i = 0; i < g->n; i++) {
			if (g->entries[i].worker != w)
				continue;
			is_in = true;
			rank = g->entries[i].rank;
			g->entries[i].worker = NULL;
		}
		if (is_in)
			gather_fail(g, ECONNRESET, "rank %u, %s, %s%s", rank,
				    worker_name(w, name, sizeof(name)), why ? "vanished: " : "left",
				    why ? why : "");
	}
}

void gathers_member_left(struct gathers *gs, const struct comm *parent, uint32_t rank)
{
	struct gather *g, *next;

	DL_FOREACH_SAFE(gs->list, g, next) {
		bool has_come = false;

		if (g->kind == GATHER_INIT || g->parent != parent->number ||
		    gather_is_excluded(g, rank))
			continue;
		for (uint32_t i = 0; i < g->n; i++)
			has_come = has_come || g->entries[i].rank == rank;
		if (!has_come)
			gather_fail(g, ECONNRESET, "rank %u has left communicator %u", rank,
				    parent->number);
	}
}

void gathers_on_dead(void *gathers, const struct comm *parent, const char *why)
{
	struct gathers *gs = gathers;
	struct gather *g, *next;

	DL_FOREACH_SAFE(gs->list, g, next)
		if (g->kind == GATHER_SPLIT && g->parent == parent->number)
			gather_fail(g, ECANCELED, "the parent communicator %u was aborted: %.300s",
				    parent->number, why);
}

/* The maker of an id is a member as a rule. Is it a real rank that has not come yet? */
static bool lacks_creator(const struct gather *g)
{
	int64_t creator = wire_unique_id_creator(g->id);

	if (creator < 0 || !cluster_is_real(g->gathers->comms->cluster, (uint32_t)creator))
		return false;
	for (uint32_t i = 0; i < g->n; i++)
		if (g->entries[i].world_rank == (uint32_t)creator)
			return false;
	return true;
}

/* Has @world_rank checked in at a communicator of this size? */
static bool has_come(const struct gather *g, uint32_t world_rank)
{
	const struct comm *c, *next;
	const struct gather *other;

	DL_FOREACH(g->gathers->list, other)
		if (other->kind == GATHER_INIT && other->n_ranks == g->n_ranks &&
		    gather_has(other, world_rank))
			return true;
	HASH_ITER(hh, g->gathers->comms->by_number, c, next)
		for (uint32_t i = 0; c->n_ranks == g->n_ranks && i < c->n_real; i++)
			if (c->real[i].world_rank == world_rank)
				return true;
	return false;
}

/* A real rank that has come to no communicator of this size may be late for this one. */
static bool lacks_real_rank(const struct gather *g)
{
	const struct cluster *c = g->gathers->comms->cluster;

	for (size_t i = 0; i < c->n_real; i++)
		if (!has_come(g, c->real[i]))
			return true;
	return false;
}

/* A real rank that has to come and whose process has ended. Only for a communicator of the whole
 * world, or one of which the job's list has the members. -1: none. */
static int64_t find_ended(const struct gather *g)
{
	const struct processes *p = g->gathers->processes;
	const struct cluster *cluster = g->gathers->comms->cluster;
	const struct job_list *list = job_list_find(g->lists, 0);

	if (!processes_any_ended(p) || g->kind != GATHER_INIT)
		return -1;
	if (g->n_ranks == g->gathers->comms->config->world)
		for (size_t i = 0; i < cluster->n_real; i++)
			if (processes_ended(p, cluster->real[i], g->first_ns) &&
			    !gather_has(g, cluster->real[i]))
				return cluster->real[i];
	for (uint32_t i = 0; list && i < list->n; i++)
		if (processes_ended(p, list->world_ranks[i], g->first_ns) &&
		    !gather_has(g, list->world_ranks[i]))
			return list->world_ranks[i];
	return -1;
}

/* Return: whether it failed, and is freed. */
static bool fail_ended(struct gather *g, uint64_t now_ns)
{
	int64_t rank = find_ended(g);
	char text[PROCESSES_TEXT_MAX];

	if (rank < 0 || now_ns < g->last_ns + ENDED_NS)
		return false;
	gather_fail(g, ECONNRESET,
		    "the process of world rank %lld %s and did not make it; every member "
		    "must, so see why that one ended before",
		    (long long)rank,
		    processes_ended_text(g->gathers->processes, rank, text, sizeof(text)));
	return true;
}

static char *describe(const struct gather *g, uint64_t now_ns, char *buf, size_t size)
{
	size_t used = (size_t)snprintf(buf, size,
				       "a communicator of %u ranks by %s has waited %.1f s: "
				       "%u of %u real members checked in (ranks",
				       g->n_ranks, gather_kind_names[g->kind],
				       (double)(now_ns - g->first_ns) / 1e9, g->n, g->n_wanted);

	for (uint32_t i = 0; i < g->n && used + 24 < size; i++)
		used += (size_t)snprintf(buf + used, size - used, " %u%s", g->entries[i].rank,
					 used > size - 48 ? " ..." : "");
	if (used < size && g->kind == GATHER_INIT && lacks_creator(g))
		snprintf(buf + used, size - used, "; world rank %lld made the id and has not come)",
			 (long long)wire_unique_id_creator(g->id));
	else if (used < size)
		snprintf(buf + used, size - used, ")");
	return buf;
}

/* An init that was not complete when its last member came: it is made of those that are there, if
 * nobody else is to come. Return: whether it was, and is freed. */
static bool settle(struct gather *g, uint64_t now_ns)
{
	const struct config *c = g->gathers->comms->config;
	bool is_long = now_ns >= g->last_ns + PATIENCE * c->settle_ns, is_all;

	if (g->kind != GATHER_INIT || g->n_ranks >= c->world || now_ns < g->last_ns + c->settle_ns)
		return false;
	is_all = !lacks_real_rank(g);
	return (is_long || (is_all && !lacks_creator(g))) &&
	       gather_init_complete(g, is_all ? MEMBERS_ALL_CAME : MEMBERS_SETTLED);
}

void gathers_tick(struct gathers *gs, uint64_t now_ns)
{
	uint64_t timeout_ns = gs->comms->config->timeout_ns;
	struct gather *g, *next;
	char text[400];

	while (gs->failed && now_ns >= gs->failed->last_ns + timeout_ns)
		gather_free(gs->failed);
	DL_FOREACH_SAFE(gs->list, g, next) {
		if (fail_ended(g, now_ns) || settle(g, now_ns))
			continue;
		if (now_ns >= g->first_ns + timeout_ns) {
			describe(g, now_ns, text, sizeof(text));
			gather_fail(g, ETIMEDOUT, "%s; that is the timeout", text);
		} else if (now_ns >= g->warn_ns) {
			warn_run("%s", describe(g, now_ns, text, sizeof(text)));
			/* ever more seldom: 5, 10, 20, ... seconds */
			g->warn_ns = now_ns + (now_ns - g->first_ns);
		}
	}
}

void gathers_describe(const struct gathers *gs, void (*each)(void *ctx, const char *sentence),
		      void *ctx)
{
	uint64_t now_ns = clock_now_ns();
	struct gather *g;
	char text[400];

	DL_FOREACH(gs->list, g)
		each(ctx, describe(g, now_ns, text, sizeof(text)));
}
