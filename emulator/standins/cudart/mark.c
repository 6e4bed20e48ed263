/* See mark.h. */
#include "mark.h"

#include <stdlib.h>
#include <time.h>

#include "futex.h"
#include "runtime.h"

enum { MARK_AHEAD, MARK_AWAITED, MARK_PASSED };

/* Long enough to meet a partner that is just about to pass on another core, short enough to cost
 * nothing on a machine with fewer cores than threads. */
#define SPIN_NS 2000u

uint64_t mark_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct mark *mark_new(void)
{
	struct mark *mark = calloc(1, sizeof(*mark));

	if (mark)
		atomic_init(&mark->n_refs, 1);
	return mark;
}

struct mark *mark_ref(struct mark *mark)
{
	if (mark)
		atomic_fetch_add_explicit(&mark->n_refs, 1, memory_order_relaxed);
	return mark;
}

void mark_unref(struct mark *mark)
{
	if (mark && atomic_fetch_sub_explicit(&mark->n_refs, 1, memory_order_acq_rel) == 1)
		free(mark);
}

void mark_pass(struct mark *mark, uint64_t time_ns)
{
	mark->time_ns = time_ns;
	/* Release: whoever sees MARK_PASSED sees all that the stream did before, and the time. */
	if (atomic_exchange_explicit(&mark->state, MARK_PASSED, memory_order_acq_rel) ==
	    MARK_AWAITED)
		futex_wake_all(&mark->state);
}

bool mark_is_passed(const struct mark *mark)
{
	return atomic_load_explicit(&mark->state, memory_order_acquire) == MARK_PASSED;
}

bool mark_wait(struct mark *mark)
{
	uint64_t until;
	uint32_t state;

	if (mark_is_passed(mark))
		return true;
	until = mark_now_ns() + SPIN_NS;
	while (mark_now_ns() < until)
		if (mark_is_passed(mark))
			return true;
	while (!runtime_is_stopping()) {
		state = MARK_AHEAD;
		if (!atomic_compare_exchange_strong_explicit(&mark->state, &state, MARK_AWAITED,
							     memory_order_acquire,
							     memory_order_acquire) &&
		    state == MARK_PASSED)
			return true;
		futex_wait(&mark->state, MARK_AWAITED, RUNTIME_STOP_POLL_NS);
	}
	return false;
}
