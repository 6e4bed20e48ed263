/* See real-group.h. */
#include "shim/entry/real-group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shim/data/real-comm.h"
#include "shim/job/env.h"
#include "shim/job/quiet-thread.h"
#include "shim/progress/waiters.h"
#include "shim/real/comm-id.h"
#include "shim/real/real.h"

#define FAILED_NS (1 * NS_PER_S) /* for a real init that notices by itself */

struct real_group {
	/* Under waiters.lock. */
	bool is_done, is_left; /* the second to come frees it */

	uint32_t n;
	struct {
		struct comm *comm; /* reference */
		void *config;      /* owned */
		int r;             /* the thread's, until it is done */
		struct err err;
	} list[];
};

struct real_group *real_group_new(uint32_t n)
{
	return calloc(1,
		      sizeof(struct real_group) + n * sizeof(((struct real_group *)NULL)->list[0]));
}

void real_group_add(struct real_group *g, struct comm *c, void *config)
{
	g->list[g->n].comm = comm_ref(c);
	g->list[g->n++].config = config;
}

static void group_free(struct real_group *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		comm_unref(g->list[i].comm);
		free(g->list[i].config);
	}
	free(g);
}

static void make_all(struct real_group *g)
{
	const struct real *real = real_get();
	bool is_group = g->n > 1 && real->GroupStart && real->GroupEnd;
	ncclResult_t result;

	if (is_group)
		real->GroupStart();
	for (uint32_t i = 0; i < g->n; i++)
		g->list[i].r = real_comm_make(g->list[i].comm, g->list[i].config, &g->list[i].err);
	result = is_group ? real->GroupEnd() : ncclSuccess;
	if (result == ncclSuccess || result == ncclInProgress)
		return;
	for (uint32_t i = 0; i < g->n; i++) {
		g->list[i].r = (int)result;
		err_set(&g->list[i].err, EIO, "the real communicators: %s",
			real->GetLastError ? real->GetLastError(NULL) : "failed");
	}
}

/* Nobody wants them any more. */
static void give_back(struct real_group *g)
{
	for (uint32_t i = 0; i < g->n; i++)
		real_comm_abort(g->list[i].comm, g->list[i].comm->real_made);
	group_free(g);
}

static void *run_group(void *arg)
{
	struct real_group *g = arg;
	bool is_left;

	pthread_setname_np(pthread_self(), "nbox-real-init");
	comm_id_hide();
	make_all(g);
	comm_id_show();
	pthread_mutex_lock(&waiters.lock);
	g->is_done = true;
	is_left = g->is_left;
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
	if (is_left)
		give_back(g);
	return NULL;
}

static bool any_failed(const struct real_group *g)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (comm_error(g->list[i].comm))
			return true;
	return false;
}

/* Return: whether it is done; false: @g now belongs to the thread. */
static bool wait_for(struct real_group *g)
{
	uint64_t until = clock_now_ns() + env_get()->timeout_ns;
	bool is_done, has_failed = false;

	pthread_mutex_lock(&waiters.lock);
	while (!g->is_done && clock_now_ns() < until) {
		if (!has_failed && any_failed(g)) {
			has_failed = true;
			until = clock_now_ns() + FAILED_NS;
		}
		waiters_wait(until);
	}
	is_done = g->is_done;
	g->is_left = !is_done;
	for (uint32_t i = 0; !is_done && i < g->n; i++) /* @g may be gone once the lock is */
		comm_fail(
			g->list[i].comm, -ETIMEDOUT,
			"the real communicator of %u ranks was not made within NBOX_INIT_TIMEOUT (%.0f s)",
			real_comm_size(g->list[i].comm), (double)env_get()->timeout_ns / 1e9);
	pthread_mutex_unlock(&waiters.lock);
	return is_done;
}

void real_group_make(struct real_group *g)
{
	int r = quiet_thread(NULL, run_group, g);

	for (uint32_t i = 0; r && i < g->n; i++)
		comm_fail(g->list[i].comm, -r, "cannot start a thread: %s", strerror(r));
	if (!r && !wait_for(g))
		return;
	for (uint32_t i = 0; i < g->n; i++) {
		g->list[i].comm->real = g->list[i].comm->real_made;
		if (g->list[i].r)
			comm_fail(g->list[i].comm, g->list[i].r, "%s", g->list[i].err.text);
	}
	group_free(g);
}
