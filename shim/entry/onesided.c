/* Entry points of windows, puts and signals. A window's handle is the real library's where the data
 * policy has a real communicator. */
#include <pthread.h>
#include <stdlib.h>

#include "schedule/coll.h"
#include "shim/data/real-comm.h"
#include "shim/entry/entry.h"
#include "shim/entry/group.h"
#include "shim/entry/result.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

struct window {
	struct window *next;
	const struct comm *comm;
	ncclWindow_t handle;
	bool is_real;
	char *base;
	uint64_t bytes;
};

static struct window *windows;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Out of the list, too, with @is_taken. NULL: there is none. */
static struct window *find(const struct comm *c, ncclWindow_t handle, bool is_taken)
{
	struct window **p, *found;

	pthread_mutex_lock(&lock);
	for (p = &windows; *p && ((*p)->comm != c || (*p)->handle != handle);)
		p = &(*p)->next;
	found = *p;
	if (found && is_taken)
		*p = found->next;
	pthread_mutex_unlock(&lock);
	return found;
}

static ncclResult_t register_window(struct comm *c, void *buff, size_t bytes, ncclWindow_t *ret,
				    int flags)
{
	ncclResult_t result = result_check(c, "ncclCommWindowRegister");
	struct window *w = result == ncclSuccess ? calloc(1, sizeof(*w)) : NULL;
	ncclComm_t real;
	struct err err;

	if (result != ncclSuccess)
		return result;
	if (!w)
		return last_error_set(ncclSystemError, "no memory");
	*w = (struct window){.comm = c, .base = buff, .bytes = bytes};
	w->handle = (ncclWindow_t)(void *)w;
	if (buff && ret && real_comm_get(c, &real, &err) == 0) {
		group_enter_real();
		result = CALL_REAL(CommWindowRegister, (real, buff, bytes, &w->handle, flags));
		w->is_real = true;
	} else if (!buff || !ret) {
		result = last_error_set(ncclInvalidArgument, "ncclCommWindowRegister: NULL");
	}
	if (result != ncclSuccess) {
		free(w);
		return result;
	}
	pthread_mutex_lock(&lock);
	w->next = windows;
	windows = w;
	pthread_mutex_unlock(&lock);
	*ret = w->handle;
	return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
				    int flags)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	return c ? register_window(c, buff, size, win, flags)
		 : FORWARD(CommWindowRegister, (comm, buff, size, win, flags));
}
ALSO_PNCCL(CommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	CLEANUP(freep) struct window *w = c ? find(c, win, true) : NULL;
	ncclComm_t real;
	struct err err;

	if (!c)
		return FORWARD(CommWindowDeregister, (comm, win));
	if (!w)
		return last_error_set(ncclInvalidArgument,
				      "ncclCommWindowDeregister: no window of this communicator");
	if (!w->is_real || real_comm_get(c, &real, &err) != 0)
		return ncclSuccess;
	group_enter_real();
	return CALL_REAL(CommWindowDeregister, (real, win));
}
ALSO_PNCCL(CommWindowDeregister);

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **ret)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	const struct window *w = c ? find(c, win, false) : NULL;

	if (!c)
		return FORWARD(WinGetUserPtr, (comm, win, ret));
	if (!w || !ret)
		return last_error_set(ncclInvalidArgument,
				      "ncclWinGetUserPtr: no window of this communicator");
	*ret = w->base;
	return ncclSuccess;
}
ALSO_PNCCL(WinGetUserPtr);

/* --- puts, signals, waits ------------------------------------------------------------- */

static ncclResult_t check(const struct call *call, const char *what, int peer, int signal,
			  int context, unsigned int flags)
{
	struct comm *c = call->comm;
	ncclResult_t result = result_check(c, what);
	uint64_t elem = coll_dtype_bytes(call->dtype);

	if (result != ncclSuccess)
		return result;
	if (peer < 0 || (uint32_t)peer >= c->n_ranks)
		return last_error_set(ncclInvalidArgument,
				      "%s: rank %d of a communicator of %u ranks", what, peer,
				      c->n_ranks);
	if (signal || context || flags) /* as in NCCL, which has no others yet */
		return last_error_set(ncclInvalidArgument, "%s: signal %d, context %d, flags %#x",
				      what, signal, context, flags);
	if (!elem || call->count > SCHED_MAX_BYTES / elem / c->n_ranks)
		return last_error_set(ncclInvalidArgument, "%s: data type %d, count %llu", what,
				      (int)call->dtype, (unsigned long long)call->count);
	return ncclSuccess;
}

static ncclResult_t submit(struct call *call, const char *what, int peer, int signal, int context,
			   unsigned int flags)
{
	ncclResult_t result = check(call, what, peer, signal, context, flags);

	call->kind = COLL_SENDRECV;
	call->is_onesided = true;
	call->root = (uint32_t)peer;
	return result == ncclSuccess ? group_call(call) : group_failed(result);
}

/* Where it goes: a window of this communicator, which all ranks have. */
static ncclResult_t aim(struct call *call, ncclWindow_t win, uint64_t offset)
{
	const struct window *w = find(call->comm, win, false);

	call->bytes = call->count * coll_dtype_bytes(call->dtype);
	if (!w || !call->send || offset > w->bytes || call->bytes > w->bytes - offset)
		return last_error_set(ncclInvalidArgument,
				      "ncclPutSignal: %llu bytes at %llu of %s",
				      (unsigned long long)call->bytes, (unsigned long long)offset,
				      !w            ? "no window of this communicator"
				      : !call->send ? "a window, from NULL"
						    : "a window that is smaller");
	call->window = w->handle;
	call->at = w->base + offset;
	call->offset = offset;
	return ncclSuccess;
}

ncclResult_t ncclPutSignal(const void *local, size_t count, ncclDataType_t dtype, int peer,
			   ncclWindow_t win, size_t offset, int sig, int ctx, unsigned int flags,
			   ncclComm_t comm, cudaStream_t stream)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct call call = {.comm = c,
			    .is_send = true,
			    .send = local,
			    .count = count,
			    .dtype = dtype,
			    .stream = stream};
	ncclResult_t result;

	if (!c)
		return FORWARD(PutSignal, (local, count, dtype, peer, win, offset, sig, ctx, flags,
					   comm, stream));
	result = aim(&call, win, offset);
	return result == ncclSuccess ? submit(&call, "ncclPutSignal", peer, sig, ctx, flags)
				     : group_failed(result);
}
ALSO_PNCCL(PutSignal);

ncclResult_t ncclSignal(int peer, int sig, int ctx, unsigned int flags, ncclComm_t comm,
			cudaStream_t stream)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct call call = {.comm = c, .is_send = true, .stream = stream};

	return c ? submit(&call, "ncclSignal", peer, sig, ctx, flags)
		 : FORWARD(Signal, (peer, sig, ctx, flags, comm, stream));
}
ALSO_PNCCL(Signal);

/* The signals of all peers are one op. */
static ncclResult_t wait_for(struct comm *c, int n, const ncclWaitSignalDesc_t *descs,
			     cudaStream_t stream)
{
	ncclResult_t result = ncclSuccess, ended;

	ncclGroupStart();
	for (int i = 0; i < n && result == ncclSuccess; i++) {
		struct call call = {.comm = c,
				    .count = descs[i].count > 0 ? (uint64_t)descs[i].count : 0,
				    .stream = stream};

		result = call.count
				 ? submit(&call, "ncclWaitSignal", descs[i].peer, descs[i].signal,
					  descs[i].context, 0)
				 : group_fail(ncclInvalidArgument, "ncclWaitSignal: for nothing");
	}
	ended = ncclGroupEnd();
	return result == ncclSuccess ? ended : result;
}

ncclResult_t ncclWaitSignal(int n, ncclWaitSignalDesc_t *descs, ncclComm_t comm,
			    cudaStream_t stream)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	if (!c)
		return FORWARD(WaitSignal, (n, descs, comm, stream));
	if (n <= 0 || !descs)
		return group_fail(ncclInvalidArgument, "ncclWaitSignal: for nothing");
	return wait_for(c, n, descs, stream);
}
ALSO_PNCCL(WaitSignal);
