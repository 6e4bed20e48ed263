/* See group.h. */
#include "shim/entry/group.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/data/redop.h"
#include "shim/data/windows.h"
#include "shim/entry/enqueue.h"
#include "shim/entry/entry.h"
#include "shim/job/env.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

struct group {
	uint32_t depth;
	bool is_real_open;
	ncclResult_t error; /* the first */
	struct call *calls;
	uint32_t n_calls, call_capacity;
	struct init *inits;
	uint32_t n_inits, init_capacity;
};

static pthread_key_t key;

static void group_free(void *p)
{
	struct group *g = p;

	free(g->calls);
	free(g->inits);
	free(g);
}

static void make_key(void)
{
	pthread_key_create(&key, group_free);
}

/* This thread's; NULL when there is no memory. */
static struct group *group_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct group *g;

	pthread_once(&once, make_key);
	g = pthread_getspecific(key);
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (g && pthread_setspecific(key, g)) {
			free(g);
			g = NULL;
		}
	}
	return g;
}

/* Room for one more; false: no memory. */
static bool grow(void *list, uint32_t n, uint32_t *capacity, size_t size)
{
	uint32_t more = *capacity ? 2 * *capacity : 16;
	void *old, *mem;

	if (n < *capacity)
		return true;
	memcpy(&old, list, sizeof(old));
	mem = realloc(old, more * size);
	if (!mem)
		return false;
	memcpy(list, &mem, sizeof(mem));
	*capacity = more;
	return true;
}

ncclResult_t group_failed(ncclResult_t result)
{
	struct group *g = group_get();

	if (g && g->depth && g->error == ncclSuccess)
		g->error = result;
	return result;
}

ncclResult_t group_call(const struct call *call)
{
	struct group *g = group_get();
	struct call one = *call;
	ncclResult_t result;

	if (!g)
		return last_error_set(ncclSystemError, "no memory");
	comm_ref(one.comm);
	if (!g->depth) {
		result = enqueue_calls(&one, 1);
		comm_unref(one.comm);
		return result;
	}
	if (!grow(&g->calls, g->n_calls, &g->call_capacity, sizeof(*g->calls))) {
		comm_unref(one.comm);
		return group_fail(ncclSystemError, "no memory");
	}
	redop_hold(&one);
	g->calls[g->n_calls++] = one;
	return ncclSuccess;
}

ncclResult_t group_init(const struct init *init)
{
	struct group *g = group_get();

	if (!g)
		return last_error_set(ncclSystemError, "no memory");
	if (!g->depth)
		return init_run(init, 1);
	if (!grow(&g->inits, g->n_inits, &g->init_capacity, sizeof(*g->inits)))
		return group_fail(ncclSystemError, "no memory");
	g->inits[g->n_inits++] = *init;
	return ncclSuccess;
}

bool group_enter_real(void)
{
	struct group *g;

	if (!env_get()->is_virtual) /* the real library keeps the group itself */
		return false;
	g = group_get();
	if (!g || !g->depth)
		return false;
	if (!g->is_real_open && real_get()->GroupStart)
		g->is_real_open = real_get()->GroupStart() == ncclSuccess;
	return g->is_real_open;
}

ncclResult_t ncclGroupStart(void)
{
	ENTER();
	struct group *g;

	if (!env_get()->is_virtual)
		return CALL_REAL(GroupStart, ());
	g = group_get();
	if (!g)
		return last_error_set(ncclSystemError, "no memory");
	g->depth++;
	return ncclSuccess;
}
ALSO_PNCCL(GroupStart);

static bool is_good(ncclResult_t result)
{
	return result == ncclSuccess || result == ncclInProgress;
}

/* The group is over; its lists are kept for the next one. */
static void clear(struct group *g, const struct group *now)
{
	for (uint32_t i = 0; i < now->n_calls; i++) {
		redop_drop(&now->calls[i]);
		comm_unref(now->calls[i].comm);
	}
	g->calls = now->calls;
	g->call_capacity = now->call_capacity;
	g->inits = now->inits;
	g->init_capacity = now->init_capacity;
}

/* Carries out what the group has gathered, or nothing when a call was wrong. Nothing in here adds
 * to this thread's group. */
static ncclResult_t carry_out(struct group *g)
{
	struct group now = *g;
	ncclResult_t result = now.error, r;

	memset(g, 0, sizeof(*g));
	if (now.is_real_open) {
		r = real_get()->GroupEnd();
		result = result == ncclSuccess ? r : result;
		windows_end_group();
	}
	if (now.n_inits && is_good(result)) {
		r = init_run(now.inits, now.n_inits);
		result = result == ncclSuccess ? r : result;
	} else if (now.n_inits) {
		init_drop(now.inits, now.n_inits);
	}
	if (now.n_calls && is_good(result)) {
		r = enqueue_calls(now.calls, now.n_calls);
		result = r == ncclSuccess ? result : r;
	}
	clear(g, &now);
	return result;
}

ncclResult_t ncclGroupEnd(void)
{
	ENTER();
	struct group *g;

	if (!env_get()->is_virtual)
		return CALL_REAL(GroupEnd, ());
	g = group_get();
	if (!g || !g->depth)
		return last_error_set(ncclInvalidUsage,
				      "ncclGroupEnd: there was no ncclGroupStart");
	if (--g->depth)
		return ncclSuccess;
	return carry_out(g);
}
ALSO_PNCCL(GroupEnd);

/* @is_open: the real library has been called in this group; else an empty one is simulated. */
static ncclResult_t simulate_real(bool is_open, void *info)
{
	const struct real *real = real_get();

	if (!is_open &&
	    (!real->GroupStart || !real->GroupSimulateEnd || real->GroupStart() != ncclSuccess))
		return real_missing("ncclGroupSimulateEnd");
	if (real->GroupSimulateEnd)
		return real->GroupSimulateEnd(info);
	real->GroupEnd();
	return real_missing("ncclGroupSimulateEnd");
}

ncclResult_t ncclGroupSimulateEnd(void *info)
{
	ENTER();
	struct group *g, now;
	ncclResult_t result;

	if (!env_get()->is_virtual)
		return CALL_REAL(GroupSimulateEnd, (info));
	g = group_get();
	if (!g || !g->depth)
		return last_error_set(ncclInvalidUsage,
				      "ncclGroupSimulateEnd: there was no ncclGroupStart");
	if (--g->depth)
		return ncclSuccess;
	/* it ends the group in any case, and carries nothing out */
	now = *g;
	memset(g, 0, sizeof(*g));
	result = simulate_real(now.is_real_open, info);
	windows_end_group();
	if (now.n_calls || now.n_inits)
		result = last_error_set(
			ncclInvalidUsage,
			"ncclGroupSimulateEnd: NCCL's estimate knows no virtual ranks; "
			"ask 'nbox perf'");
	init_drop(now.inits, now.n_inits);
	clear(g, &now);
	return now.error != ncclSuccess ? now.error : result;
}
ALSO_PNCCL(GroupSimulateEnd);
