/* Who has not come to a communicator to be: members that vanished, left, or whose process has
 * ended, and how long the rest is waited for. The check-ins themselves are gather.c's; the rules
 * are in ../README.md. */
#include <errno.h>
#include <stdio.h>
#include <utlist.h>

#include "base/clock.h"
#include "nboxd/comm/gather-private.h"
#include "nboxd/job/exited.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/server.h"
#include "wire/unique-id.h"

/* So many times longer than others nboxd waits for a communicator that seems to lack a real rank.
 */
#define PATIENCE 40

/* A rank whose process has ended does not come. Another process of the job might be checking in for
 * it just now, one that drives several devices. */
#define ENDED_NS (2 * NS_PER_S)

bool gather_is_excluded(const uint32_t *excluded, uint32_t n, uint32_t rank)
{
	for (uint32_t i = 0; i < n; i++)
		if (excluded[i] == rank)
			return true;
	return false;
}

const struct comm_member *gather_awaited_member(const struct gather *g, const struct comm *parent,
						const struct worker *w)
{
	for (uint32_t i = 0; i < parent->n_real; i++)
		if (parent->real[i].worker == w &&
		    !gather_is_excluded(g->excluded, g->n_excluded, parent->real[i].rank))
			return &parent->real[i];
	return NULL;
}

void gather_worker_gone(struct server *s, struct worker *w, const char *why)
{
	char name[WORKER_NAME_MAX];
	struct gather *g, *next;

	DL_FOREACH_SAFE(s->gathers, g, next) {
		const struct comm *parent =
			g->kind == GATHER_INIT ? NULL : comm_find(&s->comms, g->parent);
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

void gather_member_left(struct comm *parent, uint32_t rank)
{
	struct gather *g, *next;

	DL_FOREACH_SAFE(parent->comms->server->gathers, g, next) {
		bool has_come = false;

		if (g->kind == GATHER_INIT || g->parent != parent->number ||
		    gather_is_excluded(g->excluded, g->n_excluded, rank))
			continue;
		for (uint32_t i = 0; i < g->n; i++)
			has_come = has_come || g->entries[i].rank == rank;
		if (!has_come)
			gather_fail(g, ECONNRESET, "rank %u has left communicator %u", rank,
				    parent->number);
	}
}

void gather_comm_dead(struct comm *parent, const char *why)
{
	struct gather *g, *next;

	DL_FOREACH_SAFE(parent->comms->server->gathers, g, next)
		if (g->kind == GATHER_SPLIT && g->parent == parent->number)
			gather_fail(g, ECANCELED, "the parent communicator %u was aborted: %.300s",
				    parent->number, why);
}

/* Who makes an id is a member as a rule: is that a real rank that has not come yet? */
static bool lacks_creator(const struct gather *g)
{
	int64_t creator = wire_unique_id_creator(g->id);

	if (creator < 0 || !cluster_is_real(&g->server->cluster, (uint32_t)creator))
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

	DL_FOREACH(g->server->gathers, other)
		if (other->kind == GATHER_INIT && other->n_ranks == g->n_ranks &&
		    gather_has(other, world_rank))
			return true;
	HASH_ITER(hh, g->server->comms.by_number, c, next)
		for (uint32_t i = 0; c->n_ranks == g->n_ranks && i < c->n_real; i++)
			if (c->real[i].world_rank == world_rank)
				return true;
	return false;
}

/* A real rank that has come to no communicator of this size may be late for this one. */
static bool lacks_real_rank(const struct gather *g)
{
	const struct cluster *c = &g->server->cluster;

	for (size_t i = 0; i < c->n_real; i++)
		if (!has_come(g, c->real[i]))
			return true;
	return false;
}

/* A real rank that has to come and whose process has ended: of a communicator of the whole world,
 * or of one of which the job said who is in it. -1: none. */
static int64_t find_ended(const struct gather *g)
{
	const struct server *s = g->server;
	const struct told *told = g->kind == GATHER_INIT ? told_find(g, 0) : NULL;

	if ((!s->ended.n && !s->launched.n_gone) || g->kind != GATHER_INIT)
		return -1;
	if (g->n_ranks == s->config->world)
		for (size_t i = 0; i < s->cluster.n_real; i++)
			if (ended_is(s, s->cluster.real[i], g->first_ns) &&
			    !gather_has(g, s->cluster.real[i]))
				return s->cluster.real[i];
	for (uint32_t i = 0; told && i < told->n; i++)
		if (ended_is(s, told->world_ranks[i], g->first_ns) &&
		    !gather_has(g, told->world_ranks[i]))
			return told->world_ranks[i];
	return -1;
}

/* Return: whether it failed, and is freed. */
static bool fail_ended(struct gather *g, uint64_t now_ns)
{
	int64_t rank = find_ended(g);
	char text[ENDED_TEXT_MAX];

	if (rank < 0 || now_ns < g->last_ns + ENDED_NS)
		return false;
	gather_fail(g, ECONNRESET,
		    "the process of world rank %lld %s and did not make it; every member "
		    "must, so see why that one ended before",
		    (long long)rank, ended_text(g->server, rank, text, sizeof(text)));
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

uint64_t gather_tick(struct server *s, uint64_t now_ns)
{
	uint64_t again = UINT64_MAX, settle = s->config->settle_ns;
	struct gather *g, *next;
	char text[400];

	while (s->failed && now_ns >= s->failed->last_ns + s->config->timeout_ns)
		gather_free(s->failed);
	DL_FOREACH_SAFE(s->gathers, g, next) {
		uint64_t due = g->warn_ns;

		if (fail_ended(g, now_ns))
			continue;
		if (g->kind == GATHER_INIT && g->n_ranks < s->config->world) {
			if (now_ns >= g->last_ns + settle) {
				bool is_long = now_ns >= g->last_ns + PATIENCE * settle;
				bool is_all = !lacks_real_rank(g);

				if ((is_long || (is_all && !lacks_creator(g))) &&
				    gather_init_complete(g, is_all ? MEMBERS_ALL_CAME
								   : MEMBERS_SETTLED))
					continue;
				due = now_ns + settle < due ? now_ns + settle : due;
			} else if (g->last_ns + settle < due) {
				due = g->last_ns + settle;
			}
		}
		if (now_ns >= g->first_ns + s->config->timeout_ns) {
			describe(g, now_ns, text, sizeof(text));
			gather_fail(g, ETIMEDOUT, "%s; that is the timeout", text);
			continue;
		}
		if (now_ns >= g->warn_ns) {
			warn_run("%s", describe(g, now_ns, text, sizeof(text)));
			/* Ever more seldom: 5, 10, 20, ... seconds. */
			g->warn_ns = due = now_ns + (now_ns - g->first_ns);
		}
		again = due < again ? due : again;
	}
	return again;
}

void gather_describe(const struct server *s, void (*each)(void *ctx, const char *sentence),
		     void *ctx)
{
	uint64_t now_ns = clock_now_ns();
	struct gather *g;
	char text[400];

	DL_FOREACH(s->gathers, g)
		each(ctx, describe(g, now_ns, text, sizeof(text)));
}
