/* nboxd's loop. One thread: libevent wakes it for links, signals and timers, and in between it
 * polls, so that a message never waits for a sleeping process.
 *
 * A round: every link moves what it can, the owner releases what is due, links that are over are
 * removed. Then, if a frame moved within the last --poll, or a message is due very soon, the next
 * round follows at once; else all links are armed and libevent sleeps until one of them, a signal
 * or the timer wakes it. The timer is early by the slack of the clock: the last part is polled, so
 * that a message is not late by a wake-up. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/spin.h"
#include "nboxd/loop/worker.h"

/* What the owner of the loop does. */
struct loop_sink {
	/* Releases what is due. Return: when the next is; UINT64_MAX: nothing is. */
	uint64_t (*advance)(void *ctx, uint64_t now_ns);
	/* Looks at deadlines. Return: when to look again. */
	uint64_t (*tick)(void *ctx, uint64_t now_ns);
	/* Return: whether the loop is to end by itself. */
	bool (*is_left)(void *ctx, uint64_t now_ns);
	/* No connection is to come in any more; links drain. */
	void (*on_stop)(void *ctx);
};

struct loop {
	const struct loop_sink *sink; /* borrowed */
	void *ctx;                    /* borrowed: the sink's */
	struct workers workers;
	struct event_base *base;                            /* owned */
	struct event *term_event, *int_event, *timer_event; /* owned */
	uint64_t poll_ns;
	bool is_punctual;     /* messages leave when ops end: what is due soon is polled for */
	uint64_t next_due_ns; /* of the sink's advance() */
	uint64_t active_ns;   /* when a frame moved last */
	struct spin spin;     /* how long the pauses between frames have been */
	uint64_t tick_ns;     /* of the sink's tick() */
	uint64_t stop_ns;     /* gives up draining then */
	int stop_signal;
};

/* @l: zeroed but for the sink, poll_ns, is_punctual and what workers' fields hold. Return: 0;
 * -ENOMEM. */
int loop_open(struct loop *l);
void loop_close(struct loop *l); /* the workers are gone already; a zeroed struct is allowed */
/* Until SIGTERM, SIGINT, or is_left(). */
void loop_run(struct loop *l);
/* The tick comes at @ns or earlier. */
static inline void loop_tick_by(struct loop *l, uint64_t ns)
{
	if (l->tick_ns > ns)
		l->tick_ns = ns;
}
/* A libevent callback that does nothing: being awake is all that is wanted. */
void loop_on_wake(evutil_socket_t fd, short what, void *ctx);
/* A new event that is waited for. Return: NULL: no memory. */
struct event *loop_watch(struct loop *l, evutil_socket_t fd, short what, event_callback_fn fn,
			 void *ctx);
