/* nboxd's loop. A round: every link moves what it can (the first one changes from round to round),
 * the engine releases what is due, who is over is removed. Then, if a frame moved
 * within the last --poll, or a message is due very soon, the next round follows at
 * once; else all links are armed and libevent sleeps until one of them, a signal or
 * the timer wakes it. The timer is early by the slack of the clock: the last part
 * is polled, so that a message is not late by a wake-up. Without exchange nothing
 * leaves nboxd at an op's end, and nobody spins for it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "nboxd/comm/comm.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/wait.h"
#include "nboxd/server.h"
#include "nboxd/store/server.h"

#define TICK_NS (50 * NS_PER_MS)
#define POLLS_A_LOOK 8         /* rounds without sleep between two looks at libevent */
#define LEFT_NS (2 * NS_PER_S) /* server_end_when_left() */
#define NOBODY_NS (60 * NS_PER_S)

static void remove_over(struct server *s, uint64_t now_ns)
{
	struct worker *w, *next;

	DL_FOREACH_SAFE(s->workers, w, next)
		if (worker_is_over(w, now_ns))
			worker_remove(w);
}

/* Every link once, beginning with another one each time. Links are added only by
 * libevent's callbacks and removed only by remove_over(). */
static bool move_links(struct server *s)
{
	struct worker *first = s->turn ? s->turn : s->workers, *w = first;
	bool moved = false;

	if (!first)
		return false;
	do {
		moved = worker_progress(w) || moved;
		w = w->next ? w->next : s->workers;
	} while (w != first);
	s->turn = first->next;
	return moved;
}

/* A program that spawns its own ranks believes in a world and a store of its own, and may wait
 * there for ever: said once, of jobs that begin with nboxd. */
static void tell_silence(struct server *s, uint64_t now_ns)
{
	bool is_used = s->comms.last || s->n_gathers ||
		       (s->store && store_server_counts(s->store).store.n_requests);

	if (s->is_silence_told || is_used || (!s->ended.event && !s->door.event) ||
	    now_ns < s->start_ns + SERVER_SILENCE_NS)
		return;
	s->is_silence_told = true;
	warn_run(
		"%llu s, and no communicator and no request to the store yet: a program that gives ranks to "
		"processes of its own (mp.spawn, Ray) must believe in %u nodes by its own arguments and meet at this "
		"store: %s as it sets MASTER_ADDR and MASTER_PORT; or start it with torchrun. JAX's coordination "
		"service waits for ranks that nobody plays. Any other job goes on",
		(unsigned long long)(SERVER_SILENCE_NS / NS_PER_S), s->config->topology.n_nodes,
		s->door.event ? "NBOX_STORE=HOST:PORT" : "--procs 1, and --store HOST:PORT");
}

/* Deadlines of HELLO, of gathers and of ops. */
static void tick(struct server *s, uint64_t now_ns)
{
	bool has_hello = false;
	uint64_t failure_ns = failures_tick(&s->failures, now_ns);
	uint64_t store_ns;
	struct worker *w;

	DL_FOREACH(s->workers, w) {
		if (w->state != WORKER_HELLO)
			continue;
		has_hello = true;
		if (now_ns >= w->deadline_ns)
			worker_refuse(w, ETIMEDOUT, "said no HELLO within %llu s",
				      (unsigned long long)(SERVER_HELLO_NS / NS_PER_S));
	}
	launched_tick(s, now_ns);
	gather_tick(s, now_ns);
	op_tick(&s->ops, now_ns);
	warn_tick(now_ns);
	tell_silence(s, now_ns);
	s->tick_ns = now_ns + (has_hello || s->n_gathers || s->ops.n_open_ops ? TICK_NS : NS_PER_S);
	if (failure_ns < s->tick_ns)
		s->tick_ns = failure_ns;
	store_ns = s->store ? store_server_tick(s->store, now_ns) : UINT64_MAX;
	if (store_ns < s->tick_ns)
		s->tick_ns = store_ns;
	server_flush_record(s);
}

void server_flush_record(struct server *s)
{
	int code = record_flush(s->ops.record);

	if (code < 0)
		warn_run(
			"the results cannot be written any more (%s); the job goes on, and what is lost is counted for "
			"the summary",
			strerror(-code));
}

static void begin_stop(struct server *s)
{
	struct worker *w;

	log_info("ends: %s",
		 s->stop_signal ? strsignal(s->stop_signal) : "the last worker has left");
	s->is_stopping = true;
	s->stop_ns = clock_now_ns() + SERVER_DRAIN_NS;
	door_close(s);
	server_stop_listening(s);
	store_server_stop_listening(s->store);
	DL_FOREACH(s->workers, w)
		if (w->state != WORKER_LEAVING)
			worker_refuse(w, ECANCELED, "nboxd was told to end (%s)",
				      strsignal(s->stop_signal));
}

void server_end_when_left(struct server *s)
{
	s->is_once = true;
	s->left_ns = clock_now_ns();
}

void server_hold_leaving(struct server *s)
{
	const struct worker *w;

	DL_FOREACH(s->workers, w)
		if (w->state == WORKER_LEAVING)
			fcntl(link_fd(w->link), F_DUPFD_CLOEXEC, 0);
}

static bool has_staying(const struct server *s)
{
	const struct worker *w;

	DL_FOREACH(s->workers, w)
		if (w->state != WORKER_LEAVING)
			return true;
	return false;
}

/* A worker that has said BYE exits when nboxd has closed its link. Its launcher may wait for that
 * before it starts the next program, so nboxd does not wait for the other workers. */
static void close_leaving(struct server *s)
{
	struct worker *w;

	DL_FOREACH(s->workers, w)
		if (w->state == WORKER_LEAVING)
			worker_set_state(w, WORKER_CLOSED);
}

/* With a door the processes that came in by it count: a script among them may run one program after
 * the other. Without one only links do. Fewer of them than real ranks: some process drives several,
 * or others are still to come. */
static bool is_left(struct server *s, uint64_t now_ns)
{
	bool has_door = s->door.event != NULL;

	if (has_door ? has_staying(s) || !door_is_deserted(s) : s->n_workers > 0) {
		if (has_door)
			close_leaving(s);
		s->left_ns = now_ns;
		return false;
	}
	if (s->door.n_workers || s->n_workers_max >= s->cluster.n_real)
		return true;
	return now_ns - s->left_ns >= (s->n_workers_max ? LEFT_NS : NOBODY_NS);
}

/* Return: true when all links may be slept on. */
static bool arm_links(struct server *s)
{
	struct worker *w;

	DL_FOREACH(s->workers, w) {
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
		w->event = event_new(s->base, link_fd(w->link), (short)(events | EV_PERSIST),
				     server_on_wake, s);
		if (!w->event || event_add(w->event, NULL) < 0)
			return false;
	}
	return true;
}

static void sleep_until(struct server *s, uint64_t due_ns)
{
	uint64_t now = clock_now_ns(), wait_us;
	struct timeval tv;

	if (due_ns <= now)
		return;
	wait_us = (due_ns - now) / NS_PER_US;
	tv = (struct timeval){.tv_sec = (time_t)(wait_us / 1000000),
			      .tv_usec = (suseconds_t)(wait_us % 1000000)};
	if (evtimer_add(s->timer_event, &tv) < 0)
		return;
	event_base_loop(s->base, EVLOOP_ONCE);
	evtimer_del(s->timer_event);
}

/* Not longer than --poll, and only where frames have been coming that fast. */
static bool is_worth_polling(const struct server *s, uint64_t now_ns)
{
	uint64_t budget = spin_budget_ns(&s->spin);

	if (now_ns - s->active_ns < (budget < s->config->poll_ns ? budget : s->config->poll_ns))
		return true;
	return s->config->exchange != EXCHANGE_NONE && s->next_due_ns != UINT64_MAX &&
	       s->next_due_ns < now_ns + clock_slack_ns();
}

static uint64_t wake_time(const struct server *s)
{
	uint64_t due = s->next_due_ns, slack = clock_slack_ns();

	if (due != UINT64_MAX && s->config->exchange != EXCHANGE_NONE)
		due = due > slack ? due - slack : 0;
	return due < s->tick_ns ? due : s->tick_ns;
}

/* One round. Return: true when something moved. */
static bool round_once(struct server *s, uint64_t now_ns)
{
	uint64_t sent = s->ops.n_messages_out;
	bool moved = move_links(s);

	s->next_due_ns = engine_advance(s->ops.engine, clock_now_ns());
	/* What the engine released goes out in this round, not in the next one. */
	if (s->ops.n_messages_out != sent)
		moved = move_links(s) || moved;
	if (now_ns >= s->tick_ns)
		tick(s, now_ns);
	remove_over(s, now_ns);
	return moved;
}

int server_run(struct server *s, struct err *err)
{
	bool was_moving = false;
	unsigned polls = 0;

	(void)err;
	while (!(s->is_stopping && (!has_staying(s) || clock_now_ns() >= s->stop_ns))) {
		uint64_t now_ns = clock_now_ns();
		bool moved = round_once(s, now_ns);

		if (moved) {
			if (!was_moving)
				spin_learn(&s->spin, now_ns - s->active_ns);
			s->active_ns = clock_now_ns();
		}
		was_moving = moved;
		if (!s->is_stopping && (s->stop_signal || (s->is_once && is_left(s, now_ns)))) {
			begin_stop(s);
			continue; /* nobody may be left to wait for */
		}
		if (moved || is_worth_polling(s, clock_now_ns())) {
			if (++polls % POLLS_A_LOOK == 0)
				event_base_loop(s->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
			else if (!moved)
				sched_yield();
			continue;
		}
		if (s->is_stopping && s->tick_ns > s->stop_ns)
			s->tick_ns = s->stop_ns;
		if (arm_links(s))
			sleep_until(s, wake_time(s));
		else
			event_base_loop(s->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
	return 0;
}
