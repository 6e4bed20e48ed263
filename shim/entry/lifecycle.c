/* Entry points on a communicator that exists: queries, errors, the end. */
#include "base/clock.h"
#include "shim/data/data.h"
#include "shim/data/real-comm.h"
#include "shim/data/redop.h"
#include "shim/data/windows.h"
#include "shim/entry/entry.h"
#include "shim/entry/group.h"
#include "shim/entry/result.h"
#include "shim/job/env.h"
#include "shim/progress/comm.h"
#include "shim/progress/known.h"
#include "shim/progress/play.h"
#include "shim/progress/progress.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

#define SETTLE_NS (20 * NS_PER_MS)
#define ABORT_WAIT_NS (2 * NS_PER_S)

static ncclResult_t answer(const char *what, struct comm *c, int *ret, int value)
{
	if (!ret)
		return last_error_set(ncclInvalidArgument, "%s: NULL", what);
	if (atomic_load_explicit(&c->state, memory_order_acquire) == COMM_STARTING)
		return result_check(c, what);
	*ret = value;
	return ncclSuccess;
}

#define QUERY(name, value)                                             \
	ncclResult_t nccl##name(ncclComm_t comm, int *ret)             \
	{                                                              \
		ENTER();                                               \
		CLEANUP(comm_unrefp) struct comm *c = comm_find(comm); \
                                                                       \
		return c ? answer("nccl" #name, c, ret, (int)(value))  \
			 : CALL_REAL(name, (comm, ret));               \
	}                                                              \
	ALSO_PNCCL(name)

QUERY(CommCount, c->n_ranks);
QUERY(CommUserRank, c->rank);
QUERY(CommCuDevice, c->device);

ncclTeam_t ncclTeamWorld(ncclComm_t comm)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	if (c)
		return (ncclTeam_t){(int)c->n_ranks, (int)c->rank, 1};
	if (real_get()->TeamWorld)
		return real_get()->TeamWorld(comm);
	real_missing("ncclTeamWorld");
	return (ncclTeam_t){0, 0, 0};
}
ALSO_PNCCL(TeamWorld);

/* Polled by watchdogs: never blocks. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *ret)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	ncclComm_t real;

	if (!c)
		return CALL_REAL(CommGetAsyncError, (comm, ret));
	if (!ret)
		return last_error_set(ncclInvalidArgument, "ncclCommGetAsyncError: NULL");
	*ret = result_of(comm_error(c));
	if (*ret != ncclSuccess)
		return ncclSuccess;
	if (atomic_load_explicit(&c->state, memory_order_acquire) == COMM_STARTING)
		*ret = ncclInProgress;
	else if (atomic_load_explicit(&c->is_finalized, memory_order_relaxed) && comm_is_busy(c))
		*ret = ncclInProgress;
	else if ((real = c->real) && real_get()->CommGetAsyncError)
		return real_get()->CommGetAsyncError(real, ret);
	return ncclSuccess;
}
ALSO_PNCCL(CommGetAsyncError);

const char *ncclGetLastError(ncclComm_t comm)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	const char *text = last_error_get();

	if (c && comm_error(c))
		return c->why;
	if (*text)
		return text;
	return real_get()->GetLastError ? real_get()->GetLastError(c ? c->real : comm) : "";
}
ALSO_PNCCL(GetLastError);

const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = {"no error",
					    "unhandled cuda error",
					    "unhandled system error",
					    "internal error",
					    "invalid argument",
					    "invalid usage",
					    "remote process exited or network error",
					    "operation in progress"};
	ENTER();

	if (real_get()->GetErrorString)
		return real_get()->GetErrorString(result);
	return (unsigned int)result < ncclNumResults ? texts[result] : "unknown result code";
}
ALSO_PNCCL(GetErrorString);

/* --- registration: an optimization among the real members ---------------------------- */

ncclResult_t ncclCommRegister(ncclComm_t comm, void *buff, size_t size, void **handle)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	if (c && !c->real) { /* data policy none, or one real member: nothing to register with */
		if (!handle)
			return last_error_set(ncclInvalidArgument, "ncclCommRegister: NULL");
		*handle = NULL;
		return ncclSuccess;
	}
	return FORWARD(CommRegister, (c ? c->real : comm, buff, size, handle));
}
ALSO_PNCCL(CommRegister);

ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	if (c && (!c->real || !handle))
		return ncclSuccess;
	return FORWARD(CommDeregister, (c ? c->real : comm, handle));
}
ALSO_PNCCL(CommDeregister);

/* --- users' reductions ------------------------------------------------------------------ */

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *ret, void *scalar, ncclDataType_t dtype,
				      ncclScalarResidence_t residence, ncclComm_t comm)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct err err = {""};
	ncclResult_t result;
	int r;

	if (!c)
		return CALL_REAL(RedOpCreatePreMulSum, (ret, scalar, dtype, residence, comm));
	result = result_check(c, "ncclRedOpCreatePreMulSum");
	if (result != ncclSuccess)
		return result;
	if (!ret || !scalar || (unsigned int)dtype >= ncclNumTypes ||
	    (unsigned int)residence > ncclScalarHostImmediate)
		return last_error_set(ncclInvalidArgument,
				      "ncclRedOpCreatePreMulSum: invalid argument");
	r = redop_new(c, scalar, dtype, residence, ret, &err);
	return r ? last_error_set(result_of(r), "ncclRedOpCreatePreMulSum: %s", err.text)
		 : ncclSuccess;
}
ALSO_PNCCL(RedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct err err = {""};

	if (!c)
		return CALL_REAL(RedOpDestroy, (op, comm));
	if (redop_free(c, op, &err))
		return last_error_set(ncclInvalidArgument, "ncclRedOpDestroy: %s", err.text);
	return ncclSuccess;
}
ALSO_PNCCL(RedOpDestroy);

/* --- the end ------------------------------------------------------------------------------ */

static bool is_dead(const struct comm *c)
{
	return comm_error(c);
}

/* Gives back what @c has of the device, once no stream uses it. */
static void release_device(struct comm *c)
{
	int before = DEVICE_NONE, mode = DEVICE_CAPTURE_RELAXED;

	if (note_is_child())
		return;
	/* a thread that only cleans up may have no device; a thread that captures goes on
	 * capturing */
	c->dev->exchange_mode(&mode);
	c->dev->get(&before);
	device_select(c->dev, c->device);
	data_deinit(c);
	op_pool_empty(&c->pool); /* captured ops may keep @c for good */
	c->dev->event_free(c->last_event);
	c->dev->event_free(c->join_event);
	c->last_event = c->join_event = NULL;
	device_select(c->dev, before);
	c->dev->exchange_mode(&mode);
}

/* Tells nboxd that the others need not wait for this rank in an op. Comes before all that may wait
 * for the device: ops of other ranks of this process may stand there that wait for just that. */
static void leave(struct comm *c)
{
	known_send(c, WIRE_COMM_FREE, NULL, 0);
}

/* The handle is no more. */
static void forget(struct comm *c)
{
	if (!note_is_child()) /* whose lock nobody may ever open */
		windows_forget(c);
	if (comm_unregister(c))
		comm_unref(c);
}

/* The real communicator is finalized by its ncclCommDestroy. */
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	ncclResult_t result;

	if (!c)
		return FORWARD(CommFinalize, (comm));
	result = result_check(c, "ncclCommFinalize");
	if (result != ncclSuccess)
		return result;
	atomic_store(&c->is_finalized, true);
	if (!c->is_blocking)
		return comm_is_busy(c) ? ncclInProgress : ncclSuccess;
	if (progress_wait_idle(c, PROGRESS_UNLESS_FAILED, env_get()->timeout_ns))
		return ncclSuccess;
	if (is_dead(c))
		return last_error_set(result_of(comm_error(c)), "ncclCommFinalize: %s", c->why);
	return last_error_set(
		ncclSystemError,
		"ncclCommFinalize: ops of the communicator are still in streams after "
		"NBOX_INIT_TIMEOUT (%.0f s)",
		(double)env_get()->timeout_ns / 1e9);
}
ALSO_PNCCL(CommFinalize);

static ncclResult_t abort_comm(struct comm *c)
{
	static const char text[] = "aborted by ncclCommAbort";
	ncclResult_t result = ncclSuccess;
	ncclComm_t real;
	bool is_busy;
	int before = atomic_exchange(&c->state, COMM_DEAD);

	if (before == COMM_STARTING) { /* the init in the background cleans up */
		atomic_store(&c->cancelled, true);
		comm_fail(c, -ECANCELED, text);
		known_abort(c, ECONNABORTED, text); /* if it is checked in already */
		play_kill(c);
		if (comm_unregister(c))
			comm_unref(c);
		return ncclSuccess;
	}
	if (before == COMM_DEAD) /* another thread is at it */
		return ncclSuccess;
	/* what has passed may not be counted yet */
	is_busy = !progress_wait_idle(c, PROGRESS_UNLESS_FAILED, SETTLE_NS);
	if (is_busy && !is_dead(c)) /* the others would wait for us */
		known_abort(c, ECONNABORTED, text);
	comm_fail(c, -ECANCELED, text);
	play_kill(c);
	leave(c);
	real = atomic_exchange(&c->real, NULL);
	/* in the child of a fork it would wait for threads that do not exist */
	if (!note_is_child())
		result = real_comm_abort(c, real);
	if (!is_busy || progress_wait_idle(c, PROGRESS_IDLE, ABORT_WAIT_NS))
		release_device(c);
	forget(c);
	return result;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);

	if (!c)
		return FORWARD(CommAbort, (comm));
	return abort_comm(c);
}
ALSO_PNCCL(CommAbort);

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	ncclResult_t result = ncclSuccess;
	ncclComm_t real;

	if (!c)
		return FORWARD(CommDestroy, (comm));
	/* the real communicator of a dead one may be stuck in an op: abort it */
	if (is_dead(c) || atomic_load(&c->state) == COMM_STARTING || note_is_child())
		return abort_comm(c);
	if (!progress_wait_idle(c, PROGRESS_UNLESS_FAILED, env_get()->timeout_ns))
		return abort_comm(c);
	if (atomic_exchange(&c->state, COMM_DEAD) == COMM_DEAD) /* aborted meanwhile */
		return ncclSuccess;
	if (!c->is_full)
		leave(c);
	real = atomic_exchange(&c->real, NULL);
	result = real_comm_destroy(c, real);
	if (c->is_full) /* NCCL has sent its last messages just now */
		leave(c);
	release_device(c);
	forget(c);
	return result;
}
ALSO_PNCCL(CommDestroy);

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	static const char text[] = "revoked by ncclCommRevoke";

	if (!c)
		return FORWARD(CommRevoke, (comm, flags));
	if (flags)
		return last_error_set(ncclInvalidArgument, "ncclCommRevoke: flags must be 0");
	if (atomic_exchange(&c->is_revoked, true)) /* as NCCL 2.28.9 has it */
		return last_error_set(ncclInvalidArgument, "ncclCommRevoke: revoked already");
	if (!is_dead(c))
		known_abort(c, ECONNABORTED, text);
	comm_fail(c, -EINVAL, text);
	play_kill(c);
	return c->real && real_get()->CommRevoke ? real_get()->CommRevoke(c->real, flags)
						 : ncclSuccess;
}
ALSO_PNCCL(CommRevoke);
