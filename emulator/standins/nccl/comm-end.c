/* The ends of a communicator: finalize, destroy, abort, revoke. */
#include <string.h>

#include "standins/nccl/comm.h"

static void wait_idle(struct ncclComm *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->n_outstanding || c->n_jobs)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

static void *finalize_thread(void *arg)
{
	struct ncclComm *c = arg;

	pthread_mutex_lock(&c->lock);
	while (c->n_outstanding)
		pthread_cond_wait(&c->changed, &c->lock);
	c->n_jobs--;
	atomic_store(&c->state, ncclSuccess);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	comm_put(c);
	return NULL;
}

ncclResult_t comm_spawn(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t t;
	int e;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	e = pthread_create(&t, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return e ? fail(ncclSystemError, "cannot start a thread: %s", strerror(e)) : ncclSuccess;
}

ncclResult_t comm_finalize(struct ncclComm *c)
{
	ncclResult_t r = comm_check(c, "ncclCommFinalize");

	if (r)
		return r;
	atomic_store(&c->is_finalized, true);
	if (c->is_blocking) {
		wait_idle(c);
		return ncclSuccess;
	}
	pthread_mutex_lock(&c->lock);
	c->n_jobs++;
	pthread_mutex_unlock(&c->lock);
	atomic_store(&c->state, ncclInProgress);
	r = comm_spawn(finalize_thread, comm_get(c));
	if (r) {
		pthread_mutex_lock(&c->lock);
		c->n_jobs--;
		pthread_mutex_unlock(&c->lock);
		atomic_store(&c->state, ncclSuccess);
		comm_put(c);
		return r;
	}
	return ncclInProgress;
}

/* The handle is gone after this; ops and graphs may still hold the memory. */
static void comm_close(struct ncclComm *c)
{
	proxy_detach(c);
	if (c->last_event)
		cudaEventDestroy(c->last_event);
	c->last_event = NULL;
	c->has_last = false;
	/* a graph that is replayed later finds this and does nothing */
	atomic_store(&c->abort, true);
	comm_put(c);
}

ncclResult_t comm_destroy(struct ncclComm *c)
{
	ncclResult_t r = c ? comm_known(c, "ncclCommDestroy") : ncclSuccess;

	if (!c || r)
		return r;
	if (atomic_load(&c->state) == ncclInProgress && !atomic_load(&c->is_finalized))
		return fail(ncclInvalidArgument,
			    "ncclCommDestroy: the communicator is still being made");
	wait_idle(c);
	comm_close(c);
	return ncclSuccess;
}

void comm_stop(struct ncclComm *c, const char *why)
{
	atomic_store(&c->abort, true);
	comm_set_error(c, ncclInternalError, why);
	proxy_abort(c, why, true);
}

ncclResult_t comm_abort(struct ncclComm *c)
{
	ncclResult_t r = c ? comm_known(c, "ncclCommAbort") : ncclSuccess;

	if (!c || r)
		return r;
	atomic_store(&c->abort, true);
	proxy_abort(c, "this rank aborted the communicator", true);
	wait_idle(c);
	comm_close(c);
	return ncclSuccess;
}

ncclResult_t comm_revoke(struct ncclComm *c, int flags)
{
	ncclResult_t r = comm_known(c, "ncclCommRevoke");

	if (r)
		return r;
	if (flags != NCCL_REVOKE_DEFAULT)
		return fail(ncclInvalidArgument, "ncclCommRevoke: flags must be 0, not %d", flags);
	if (atomic_exchange(&c->revoked, true)) /* as NCCL 2.28.9 has it */
		return fail(ncclInvalidArgument, "ncclCommRevoke: revoked already");
	comm_stop(c, "the communicator was revoked");
	return ncclSuccess;
}
