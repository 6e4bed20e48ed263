/* See real-call.h. */
#include "shim/progress/real-call.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "shim/job/quiet-thread.h"
#include "shim/real/real.h"

#define END_NS (1 * NS_PER_S) /* for a call that notices by itself */
#define LOOK_NS (10 * NS_PER_MS)

int real_call_begin(struct comm *c)
{
	/* seq_cst, here and below: we see that @c has failed, or real_call_failed() sees us */
	atomic_store(&c->is_in_call, true);
	if (!atomic_load(&c->async))
		return 0;
	atomic_store(&c->is_in_call, false);
	return -ECANCELED;
}

void real_call_end(struct comm *c)
{
	atomic_store(&c->is_in_call, false);
}

static void *end_call(void *arg)
{
	CLEANUP(comm_unrefp) struct comm *c = arg;
	uint64_t until = clock_now_ns() + END_NS;
	const struct real *real = real_get();
	ncclComm_t comm;

	pthread_setname_np(pthread_self(), "nbox-revoke");
	while (atomic_load(&c->is_in_call) && clock_now_ns() < until)
		clock_sleep_until_ns(clock_now_ns() + LOOK_NS);
	if (!atomic_load(&c->is_in_call))
		return NULL;
	/* before 2.28.9 there is only ncclCommAbort, which also frees: the job's own finds nothing
	 * then */
	comm = real->CommRevoke ? c->real : atomic_exchange(&c->real, NULL);
	if (comm && real->CommRevoke)
		real->CommRevoke(comm, 0);
	else if (comm && real->CommAbort)
		real->CommAbort(comm);
	return NULL;
}

void real_call_failed(struct comm *c)
{
	if (!c->is_full || !atomic_load(&c->is_in_call) || atomic_exchange(&c->is_ending, true))
		return;
	comm_ref(c);
	if (quiet_thread(NULL, end_call, c))
		comm_unref(c);
}
