/* See resolve.h. */
#include "nboxd/comm/resolve.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nboxd/comm/groups.h"
#include "nboxd/comm/job-lists.h"
#include "nboxd/loop/warn.h"

/* A pair of ranks that the job's store names. Return: 0; MEMBERS_WAIT: one of them is real
 * and has not come; NOT_SAID: it is no such; -ENOMEM. */
enum { NOT_SAID = 2 };
static int by_store(const struct gather *g, const struct wire_member *known, struct members *ret)
{
	const struct cluster *cluster = g->gathers->comms->cluster;
	struct err why = {""};
	uint32_t world[2];
	int r;

	if (g->n_ranks != 2 || groups_pair(g->gathers->groups, g->id, world) != 0)
		return NOT_SAID;
	if (cluster_is_real(cluster, world[0]) + cluster_is_real(cluster, world[1]) > (int)g->n)
		return MEMBERS_WAIT;
	r = members_by_list(cluster, world, 2, known, g->n, MEMBERS_STORE, ret, &why);
	if (r == -EINVAL)
		warn_run("the store has a pair of world ranks %u and %u, but %s; the store is "
			 "not believed",
			 world[0], world[1], why.text);
	return r == -EINVAL ? NOT_SAID : r;
}

/* Are all real ranks of @t among the gather's entries? */
static bool is_all_here(const struct gather *g, const struct job_list *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		n += (uint32_t)cluster_is_real(g->gathers->comms->cluster, t->world_ranks[i]);
	return n <= g->n;
}

/* The list that the job has. Return: as by_store(). */
static int by_job(const struct gather *g, const struct wire_member *known, struct members *ret)
{
	const struct job_list *t = job_list_find(g->lists, 0);
	struct err why = {""};
	int r;

	if (!t)
		return NOT_SAID;
	if (!is_all_here(g, t))
		return MEMBERS_WAIT;
	r = members_by_list(g->gathers->comms->cluster, t->world_ranks, t->n, known, g->n,
			    MEMBERS_JOB_LIST, ret, &why);
	if (r == -EINVAL)
		warn_run("the job's own list of a communicator of %u ranks is not "
			 "believed: %s",
			 g->n_ranks, why.text);
	return r == -EINVAL ? NOT_SAID : r;
}

int resolve_init(const struct gather *g, enum members_patience patience, struct members *ret,
		 struct err *err)
{
	CLEANUP(freep) struct wire_member *known = calloc(g->n + 1, sizeof(*known));
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
	return members_by_id(g->gathers->comms->cluster, g->n_ranks, known, g->n, patience, ret,
			     err);
}
