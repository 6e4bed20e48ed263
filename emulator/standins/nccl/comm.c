/* A communicator: references, errors, operators, what may be asked of it. job.c makes it,
 * comm-end.c ends it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "standins/nccl/comm.h"

struct ncclComm *comm_get(struct ncclComm *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void comm_put(struct ncclComm *c)
{
	uint32_t i;

	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
		return;
	if (c->port)
		port_put(c->port);
	for (i = 0; c->peers && i < c->n_ranks; i++)
		free(c->peers[i].keys);
	free(c->peers);
	free(c->redops);
	while (c->windows) {
		struct window *w = c->windows;

		c->windows = w->next;
		free(w);
	}
	while (c->shrinks) {
		struct shrink_count *s = c->shrinks;

		c->shrinks = s->next;
		free(s);
	}
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->connect_lock);
	pthread_cond_destroy(&c->changed);
	c->canary = 0;
	free(c);
}

void comm_set_error(struct ncclComm *c, ncclResult_t code, const char *text)
{
	bool is_first;

	/* the text first: a reader that sees the error reads the text without the lock */
	pthread_mutex_lock(&c->lock);
	is_first = !atomic_load(&c->error);
	if (is_first) {
		snprintf(c->text, sizeof(c->text), "%s", text);
		atomic_store(&c->error, (int)code);
	}
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (is_first)
		fail(code, "rank %u of %u: %.400s", c->rank, c->n_ranks, text);
}

void comm_fail(struct ncclComm *c, ncclResult_t code, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	if (c->is_failed || c->is_leaving)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->is_failed = true; /* the loop closes it: we may be inside one of its links */
	comm_set_error(c, code, text);
}

ncclResult_t comm_known(const struct ncclComm *c, const char *what)
{
	if (!c)
		return fail(ncclInvalidArgument, "%s: the communicator is NULL", what);
	if (c->canary != COMM_CANARY)
		return fail(ncclInvalidArgument, "%s: this is no communicator, or it was destroyed",
			    what);
	if (c->generation != proxy_generation())
		return fail(
			ncclSystemError,
			"%s: this communicator is the parent process's; a forked child has none "
			"of it",
			what);
	return ncclSuccess;
}

ncclResult_t comm_check(const struct ncclComm *c, const char *what)
{
	ncclResult_t r = comm_known(c, what);
	int e;

	if (r)
		return r;
	e = atomic_load(&c->state);
	if (e == ncclInProgress)
		return fail(ncclInvalidArgument,
			    "%s: the communicator's previous operation is still in progress", what);
	if (e)
		return fail((ncclResult_t)e, "%s: the communicator could not be made", what);
	e = atomic_load(&c->error);
	if (e)
		return fail((ncclResult_t)e, "%s: the communicator has failed: %.400s", what,
			    c->text);
	if (atomic_load(&c->is_finalized) || atomic_load(&c->abort))
		return fail(ncclInvalidUsage, "%s: the communicator was finalized or aborted",
			    what);
	return ncclSuccess;
}

void comm_outstanding(struct ncclComm *c, int64_t change)
{
	pthread_mutex_lock(&c->lock);
	c->n_outstanding += change;
	if (!c->n_outstanding)
		pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

ncclResult_t comm_async_error(struct ncclComm *c, ncclResult_t *ret)
{
	ncclResult_t r = comm_known(c, "ncclCommGetAsyncError");
	int e;

	if (r)
		return r;
	if (!ret)
		return fail(ncclInvalidArgument, "ncclCommGetAsyncError: asyncError is NULL");
	e = atomic_load(&c->error);
	*ret = (ncclResult_t)(e ? e : atomic_load(&c->state));
	return ncclSuccess;
}

/* --- operators --------------------------------------------------------------------------- */

ncclResult_t comm_make_redop(struct ncclComm *c, void *scalar, ncclDataType_t dtype,
			     ncclScalarResidence_t where, ncclRedOp_t *ret)
{
	ncclResult_t r = comm_check(c, "ncclRedOpCreatePreMulSum");
	struct redop *o;
	uint32_t i;

	if (r)
		return r;
	if (!scalar || !ret || (int)dtype < 0 || dtype >= ncclNumTypes ||
	    (where != ncclScalarDevice && where != ncclScalarHostImmediate))
		return fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: a scalar, a data type "
						 "and a residence are needed");
	pthread_mutex_lock(&c->lock);
	for (i = 0; i < c->n_redops && c->redops[i].in_use;)
		i++;
	if (i == c->n_redops) {
		void *redops = realloc(c->redops, (i + 1) * sizeof(*c->redops));

		if (!redops) {
			pthread_mutex_unlock(&c->lock);
			return fail(ncclSystemError, "out of memory");
		}
		c->redops = redops;
		c->n_redops++;
	}
	o = &c->redops[i];
	memset(o, 0, sizeof(*o));
	o->in_use = true;
	o->dtype = (enum coll_dtype)dtype;
	o->on_device = where == ncclScalarDevice;
	o->scalar_at = scalar;
	if (!o->on_device)
		memcpy(o->scalar, scalar, coll_dtype_bytes((uint32_t)dtype));
	pthread_mutex_unlock(&c->lock);
	*ret = (ncclRedOp_t)(ncclNumOps + i);
	return ncclSuccess;
}

/* Ops that are under way keep a copy. */
ncclResult_t comm_drop_redop(struct ncclComm *c, ncclRedOp_t op)
{
	ncclResult_t r = comm_known(c, "ncclRedOpDestroy");
	uint32_t i = (uint32_t)op - ncclNumOps;

	if (r)
		return r;
	if ((int)op >= 0 && op < ncclNumOps)
		return fail(ncclInvalidArgument, "ncclRedOpDestroy: operator %d is built in",
			    (int)op);
	pthread_mutex_lock(&c->lock);
	if ((int)op >= 0 && i < c->n_redops && c->redops[i].in_use)
		c->redops[i].in_use = false;
	else
		r = ncclInvalidArgument;
	pthread_mutex_unlock(&c->lock);
	return r ? fail(r, "ncclRedOpDestroy: no such operator: %d", (int)op) : ncclSuccess;
}
