/* A mark: a point in a stream that the stream passes once. cudaEventRecord leaves one in the
 * stream; each waiter of the event holds a reference to it. Counted; thread-safe. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct mark {
	atomic_uint n_refs;
	_Atomic uint32_t state; /* MARK_...; the futex that waiters sleep on */
	uint64_t time_ns;       /* the stream's (pace.h); valid once the state is MARK_PASSED */
};

uint64_t mark_now_ns(void);

/* Return: a mark with one reference, or NULL without memory. */
struct mark *mark_new(void);
struct mark *mark_ref(struct mark *mark);
void mark_unref(struct mark *mark);

void mark_pass(struct mark *mark, uint64_t time_ns);
bool mark_is_passed(const struct mark *mark);
/* Blocks until the mark is passed. Return: false when the process exits first. */
bool mark_wait(struct mark *mark);
