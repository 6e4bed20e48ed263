/* Who is in a communicator that was made with an id: members/ asked with all that nboxd
 * knows. A communicator is made when its own members have come; of its siblings some may come
 * later. What was guessed is then looked at again: it is confirmed, or it was wrong. Its
 * members stay as they are, since its ops have been timed and its schedules are known to its
 * workers; being wrong is a warning. */
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "nboxd/comm/gather-private.h"
#include "nboxd/comm/groups.h"
#include "nboxd/loop/warn.h"
#include "nboxd/server.h"

/* The check-ins of all real ranks at communicators of @n_ranks but @self and @made: the
 * siblings are among them. Return: how many; -ENOMEM. */
static ssize_t seen_elsewhere(struct server *s, uint32_t n_ranks, const struct gather *self,
			      const struct comm *made, struct wire_member **ret)
{
	struct wire_member *seen = NULL;
	const struct gather *g;
	const struct comm *c, *next;
	size_t n = 0, n_room = 0;

	DL_FOREACH(s->gathers, g)
		n_room += g->kind == GATHER_INIT && g->n_ranks == n_ranks ? g->n : 0;
	HASH_ITER(hh, s->comms.by_number, c, next)
		n_room += c->n_ranks == n_ranks ? c->n_real : 0;
	seen = calloc(n_room + 1, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	DL_FOREACH(s->gathers, g)
		for (uint32_t i = 0;
		     g->kind == GATHER_INIT && g != self && g->n_ranks == n_ranks && i < g->n; i++)
			seen[n++] =
				(struct wire_member){g->entries[i].rank, g->entries[i].world_rank};
	HASH_ITER(hh, s->comms.by_number, c, next)
		for (uint32_t i = 0; c != made && c->n_ranks == n_ranks && i < c->n_real; i++)
			seen[n++] = (struct wire_member){c->real[i].rank, c->real[i].world_rank};
	members_sort_seen(seen, n);
	*ret = seen;
	return (ssize_t)n;
}

/* A pair of ranks that the job's store names. Return: 0; MEMBERS_WAIT: one of them is real
 * and has not come; NOT_SAID: it is no such; -ENOMEM. */
enum { NOT_SAID = 2 };
static int by_store(const struct gather *g, const struct wire_member *known, struct members *ret)
{
	struct server *s = g->server;
	struct err why = {""};
	uint32_t world[2];
	int r;

	if (g->n_ranks != 2 || groups_pair(s, g->id, world) != 0)
		return NOT_SAID;
	if (cluster_is_real(&s->cluster, world[0]) + cluster_is_real(&s->cluster, world[1]) >
	    (int)g->n)
		return MEMBERS_WAIT;
	r = members_told(&s->cluster, world, 2, known, g->n, MEMBERS_STORE, ret, &why);
	if (r == -EINVAL)
		warn_run("the store has a pair of world ranks %u and %u, but %s; the store is "
			 "not believed",
			 world[0], world[1], why.text);
	return r == -EINVAL ? NOT_SAID : r;
}

/* The list that the job has. Return: as by_store(). */
static int by_job(const struct gather *g, const struct wire_member *known, struct members *ret)
{
	const struct told *t = told_find(g, 0);
	struct err why = {""};
	int r;

	if (!t)
		return NOT_SAID;
	if (!told_all_here(g, t))
		return MEMBERS_WAIT;
	r = members_told(&g->server->cluster, t->world_ranks, t->n, known, g->n, MEMBERS_TOLD, ret,
			 &why);
	if (r == -EINVAL)
		warn_run("the job's own list of a communicator of %u ranks is not "
			 "believed: %s",
			 g->n_ranks, why.text);
	return r == -EINVAL ? NOT_SAID : r;
}

int resolve_init(const struct gather *g, enum members_patience patience, struct members *ret,
		 struct err *err)
{
	CLEANUP(freep) struct wire_member *seen = NULL;
	CLEANUP(freep) struct wire_member *known = calloc(g->n + 1, sizeof(*known));
	ssize_t n_seen = 0;
	int r;

	if (!known)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < g->n; i++)
		known[i] = (struct wire_member){g->entries[i].rank, g->entries[i].world_rank};
	r = by_store(g, known, ret);
	if (r != NOT_SAID)
		return r < 0 ? err_set(err, ENOMEM, "out of memory") : r;
	r = by_job(g, known, ret);
	if (r != NOT_SAID)
		return r < 0 ? err_set(err, ENOMEM, "out of memory") : r;
	if (patience == MEMBERS_AT_ONCE && g->server->cluster.n_layouts == 0)
		return MEMBERS_WAIT;
	n_seen = seen_elsewhere(g->server, g->n_ranks, g, NULL, &seen);
	if (n_seen < 0)
		return err_set(err, ENOMEM, "out of memory");
	return members_infer(&g->server->cluster, g->n_ranks, known, g->n, seen, (size_t)n_seen,
			     patience, ret, err);
}

/* Are the same ranks on the same nodes of each other? */
static bool is_placed_alike(const struct topology *t, const struct membership *a,
			    const struct membership *b)
{
	for (uint32_t i = 1; i < a->n_ranks; i++)
		if ((topology_node(t, membership_world(a, i)) ==
		     topology_node(t, membership_world(a, i - 1))) !=
		    (topology_node(t, membership_world(b, i)) ==
		     topology_node(t, membership_world(b, i - 1))))
			return false;
	return true;
}

static void look_again(struct server *s, struct comm *c)
{
	CLEANUP(freep) struct wire_member *seen = NULL;
	CLEANUP(freep) struct wire_member *known = calloc(c->n_real, sizeof(*known));
	CLEANUP(members_deinit) struct members now = {0};
	ssize_t n_seen = seen_elsewhere(s, c->n_ranks, NULL, c, &seen);
	struct err err = {""};

	if (!known || n_seen < 0)
		return; /* it stays a guess */
	for (uint32_t i = 0; i < c->n_real; i++)
		known[i] = (struct wire_member){c->real[i].rank, c->real[i].world_rank};
	if (members_infer(&s->cluster, c->n_ranks, known, c->n_real, seen, (size_t)n_seen,
			  MEMBERS_NOW, &now, &err) ||
	    now.sure == MEMBERS_GUESSED)
		return;
	if (!is_placed_alike(s->cluster.topology, &now.map, &c->members.map)) {
		warn_run("communicator %u: its %u members were guessed as world rank %u + %u x "
			 "rank, but its siblings say %u + %u x rank: the times of its ops are "
			 "those of the guess; declare the layout (--layout)",
			 c->number, c->n_ranks, c->members.map.base, c->members.map.stride,
			 now.map.base, now.map.stride);
		c->members.source = MEMBERS_GUESS; /* said once */
		return;
	}
	c->members.source = now.source;
	c->members.sure = MEMBERS_PLACED;
	log_info("communicator %u: its siblings bear out where its members are", c->number);
}

void resolve_again(struct server *s, const struct comm *made)
{
	struct comm *c, *next;

	HASH_ITER(hh, s->comms.by_number, c, next)
		/* each sibling can bring news; more looks would cost without end */
		if (c != made && c->n_ranks == made->n_ranks && !c->parent && !c->is_dead &&
		    c->members.source == MEMBERS_STRIDE && c->members.sure == MEMBERS_GUESSED &&
		    c->n_looks++ < s->cluster.n_real)
			look_again(s, c);
}
