/* See loop.h. */
#include "nboxd/loop/loop.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define POLLS_A_LOOK 8 /* rounds without sleep between two looks at libevent */
#define DRAIN_NS NS_PER_S

/* --- life ------------------------------------------------------------------------- */

static void on_signal(evutil_socket_t number, short what, void *ctx)
{
	struct loop *l = ctx;

	(void)what;
	l->stop_signal = (int)number;
}

void loop_on_wake(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	(void)ctx;
}

struct event *loop_watch(struct loop *l, evutil_socket_t fd, short what, event_callback_fn fn,
			 void *ctx)
{
	struct event *ev = event_new(l->base, fd, what, fn, ctx);

	if (ev && event_add(ev, NULL) == 0)
		return ev;
	if (ev)
		event_free(ev);
	return NULL;
}

int loop_open(struct loop *l)
{
	struct event_config *ec = event_config_new();

	if (!ec)
		return -ENOMEM;
	event_config_set_flag(ec, EVENT_BASE_FLAG_PRECISE_TIMER);
	l->base = event_base_new_with_config(ec);
	event_config_free(ec);
	if (!l->base)
		return -ENOMEM;
	l->next_due_ns = UINT64_MAX;
	clock_id(l->workers.clock_id);
	l->timer_event = evtimer_new(l->base, loop_on_wake, l);
	l->term_event = loop_watch(l, SIGTERM, EV_SIGNAL | EV_PERSIST, on_signal, l);
	l->int_event = loop_watch(l, SIGINT, EV_SIGNAL | EV_PERSIST, on_signal, l);
	return l->timer_event && l->term_event && l->int_event ? 0 : -ENOMEM;
}

void loop_close(struct loop *l)
{
	struct event *events[] = {l->timer_event, l->term_event, l->int_event};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (events[i])
			event_free(events[i]);
	if (l->base)
		event_base_free(l->base);
}

/* --- sleep ------------------------------------------------------------------------ */

/* Return: true when all links may be slept on. */
static bool arm_links(struct loop *l)
{
	struct worker *w;

	DL_FOREACH(l->workers.list, w) {
		short poll_events, events;

		if (w->state == WORKER_CLOSED)
			return false;
		if (!link_arm(w->link))
			return false;
		poll_events = link_poll_events(w->link);
		events = (short)((poll_events & POLLIN ? EV_READ : 0) |
				 (poll_events & POLLOUT ? EV_WRITE : 0));
		if (w->event && w->armed_events == events)
			continue;
		if (w->event)
			event_free(w->event);
		w->event = NULL;
		w->armed_events = events;
		if (!events)
			continue;
		w->event = loop_watch(l, link_fd(w->link), (short)(events | EV_PERSIST),
				      loop_on_wake, l);
		if (!w->event)
			return false;
	}
	return true;
}

static void sleep_until(struct loop *l, uint64_t due_ns)
{
	uint64_t now = clock_now_ns(), wait_us;
	struct timeval tv;

	if (due_ns <= now)
		return;
	wait_us = (due_ns - now) / NS_PER_US;
	tv = (struct timeval){.tv_sec = (time_t)(wait_us / 1000000),
			      .tv_usec = (suseconds_t)(wait_us % 1000000)};
	if (evtimer_add(l->timer_event, &tv) < 0)
		return;
	event_base_loop(l->base, EVLOOP_ONCE);
	evtimer_del(l->timer_event);
}

/* Not longer than --poll, and only where frames have been coming that fast. */
static bool is_worth_polling(const struct loop *l, uint64_t now_ns)
{
	uint64_t budget = spin_budget_ns(&l->spin);

	if (now_ns - l->active_ns < (budget < l->poll_ns ? budget : l->poll_ns))
		return true;
	return l->is_punctual && l->next_due_ns != UINT64_MAX &&
	       l->next_due_ns < now_ns + clock_slack_ns();
}

static uint64_t wake_time(const struct loop *l)
{
	uint64_t due = l->next_due_ns, slack = clock_slack_ns();

	if (due != UINT64_MAX && l->is_punctual)
		due = due > slack ? due - slack : 0;
	return due < l->tick_ns ? due : l->tick_ns;
}

/* --- rounds ----------------------------------------------------------------------- */

static void tick(struct loop *l, uint64_t now_ns)
{
	uint64_t next_ns;

	l->tick_ns = UINT64_MAX;
	next_ns = l->sink->tick(l->ctx, now_ns);
	loop_tick_by(l, next_ns);
}

/* One round. Return: true when something moved. */
static bool round_once(struct loop *l, uint64_t now_ns)
{
	bool moved;

	l->workers.has_sent = false;
	moved = workers_progress(&l->workers);
	l->next_due_ns = l->sink->advance(l->ctx, clock_now_ns());
	/* what was released goes out in this round, not in the next one */
	if (l->workers.has_sent)
		moved = workers_progress(&l->workers) || moved;
	if (now_ns >= l->tick_ns)
		tick(l, now_ns);
	workers_remove_over(&l->workers, now_ns);
	return moved;
}

static void begin_stop(struct loop *l)
{
	struct worker *w;

	log_info("ends: %s",
		 l->stop_signal ? strsignal(l->stop_signal) : "the last worker has left");
	l->workers.is_stopping = true;
	l->stop_ns = clock_now_ns() + DRAIN_NS;
	l->sink->on_stop(l->ctx);
	DL_FOREACH(l->workers.list, w)
		if (w->state != WORKER_LEAVING)
			worker_refuse(w, ECANCELED, "nboxd was told to end (%s)",
				      strsignal(l->stop_signal));
}

void loop_run(struct loop *l)
{
	bool was_moving = false, is_stopping = false;
	unsigned polls = 0;

	while (!is_stopping || (workers_any_stays(&l->workers) && clock_now_ns() < l->stop_ns)) {
		uint64_t now_ns = clock_now_ns();
		bool moved = round_once(l, now_ns);

		if (moved) {
			if (!was_moving)
				spin_learn(&l->spin, now_ns - l->active_ns);
			l->active_ns = clock_now_ns();
		}
		was_moving = moved;
		if (!is_stopping && (l->stop_signal || l->sink->is_left(l->ctx, now_ns))) {
			is_stopping = true;
			begin_stop(l);
			continue; /* no worker may be left to wait for */
		}
		if (moved || is_worth_polling(l, clock_now_ns())) {
			if (++polls % POLLS_A_LOOK == 0)
				event_base_loop(l->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
			else if (!moved)
				sched_yield();
			continue;
		}
		if (is_stopping)
			loop_tick_by(l, l->stop_ns);
		if (arm_links(l))
			sleep_until(l, wake_time(l));
		else
			event_base_loop(l->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
}
