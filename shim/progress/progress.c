/* See progress.h. */
#include "shim/progress/progress.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"
#include "shim/edges/edges.h"
#include "shim/gate/device-choose.h"
#include "shim/job/quiet-thread.h"
#include "shim/progress/checkin.h"
#include "shim/progress/comm.h"
#include "shim/progress/known.h"
#include "shim/progress/meet.h"
#include "shim/progress/note.h"
#include "shim/progress/play.h"
#include "shim/progress/session.h"
#include "shim/progress/traffic.h"
#include "shim/progress/tune.h"
#include "shim/progress/waiters.h"
#include "shim/real/comm-id.h"

#define LAZY_NS (1 * NS_PER_MS) /* how late a lazy note may be looked at */
#define BYE_NS (2 * NS_PER_S)   /* a process that leaves without its BYE is thought to have died */
#define SUMMARY_NS (20 * NS_PER_S) /* nboxd's summary of many millions of ops takes seconds */
#define STOP_NS (3 * NS_PER_S)     /* longer than these */

static struct {
	pthread_t thread;
	bool has_thread;
	int exit_code;    /* of the process, once it ends */
	bool has_ended;   /* under waiters.lock */
	bool is_stopping; /* the progress thread's */
} g;

/* --- frames from nboxd ------------------------------------------------------------- */

/* One of NCCL's own. */
static void take_message(struct comm *c, const struct wire_hdr *h)
{
	const struct traffic_events *ev = traffic_get_events();
	struct err err;

	if (ev && ev->received(c, h, &err))
		play_fail(c, -EBADMSG, err.text);
}

static int on_frame(const struct wire_hdr *h, const void *body)
{
	struct comm *c;

	switch (h->type) {
	case WIRE_COMM_READY:
		checkin_on_ready(h, body);
		return 0;
	case WIRE_ABORT:
		checkin_on_abort(h, body);
		return 0;
	case WIRE_TUNE:
		tune_on_answer(body);
		return 0;
	case WIRE_MEET:
	case WIRE_LOCAL_ID:
	case WIRE_RELEASE:
	case WIRE_MOVE:
	case WIRE_MESSAGE:
		break;
	default:
		return -EPROTO;
	}
	c = known_find(h->comm, h->rank);
	if (h->type == WIRE_MESSAGE && traffic_is_full()) {
		take_message(c, h);
		return 0;
	}
	if (!c)
		return 0; /* freed, and nboxd did not know it yet */
	if (h->type == WIRE_MEET)
		meet_on_all(c);
	else if (h->type == WIRE_LOCAL_ID)
		meet_on_id(c, body);
	else
		play_frame(c, h, body);
	return 0;
}

static void *body_for(const struct wire_hdr *h)
{
	struct comm *c = known_find(h->comm, h->rank);

	if (!traffic_is_full())
		return play_body(c, h);
	return c && traffic_get_events() ? traffic_get_events()->body_for(c, h) : NULL;
}

static void on_sent(uint64_t cookie)
{
	if (!traffic_is_full())
		play_body_sent(cookie);
	else if (traffic_get_events())
		traffic_get_events()->sent(cookie);
}

/* At the end of the process nobody is told. */
static bool on_lost(const char *text)
{
	tune_lost();
	return checkin_lose(text) && !g.is_stopping;
}

static const struct session_events session_events = {
	.on_frame = on_frame,
	.body_for = body_for,
	.on_sent = on_sent,
	.on_lost = on_lost,
};

/* --- waiting for it ---------------------------------------------------------------- */

/* Under the lock. A thread that sets @async signals after that. */
static bool goes_on(struct comm *c, enum progress_idle until)
{
	return comm_is_busy(c) && (until == PROGRESS_IDLE || !comm_error(c));
}

bool progress_wait_idle(struct comm *c, enum progress_idle until, uint64_t timeout_ns)
{
	uint64_t until_ns = clock_now_ns() + timeout_ns;
	int r = 0;

	if (note_is_child())
		return false;
	note_nudge();
	pthread_mutex_lock(&waiters.lock);
	while (goes_on(c, until) && !r)
		r = waiters_wait(until_ns);
	pthread_mutex_unlock(&waiters.lock);
	return !comm_is_busy(c);
}

/* --- the thread --------------------------------------------------------------------------- */

/* How long the thread may sleep, as gates must be looked at. */
static uint64_t nap_ns(uint64_t quiet_since)
{
	const struct device *dev = device_chosen();
	uint64_t now = clock_now_ns();

	if (!dev || !dev->poll)
		return UINT64_MAX;
	return dev->nap_ns(now > quiet_since ? now - quiet_since : 0);
}

/* Return: whether somebody woke us. */
static bool sleep_until(uint64_t until_ns, uint64_t quiet_since)
{
	struct pollfd fds[3] = {{.events = POLLIN}};
	uint64_t now, nap;
	struct timespec ts;
	bool is_empty;

	if (!session_arm(&fds[1]))
		return false;
	is_empty = note_arm(&fds[0].fd);
	/* seq_cst, after note_arm(): either we see that a gate may move, or the thread that has
	 * just enqueued it sees that we are asleep */
	nap = nap_ns(quiet_since);
	if (is_empty && nap) {
		now = clock_now_ns();
		if (nap != UINT64_MAX && now + nap < until_ns)
			until_ns = now + nap;
		ts = waiters_timespec(until_ns > now ? until_ns - now : 0);
		ppoll(fds, 3, until_ns == UINT64_MAX ? NULL : &ts, NULL);
	}
	return note_disarm(fds[0].revents & POLLIN);
}

/* When to wake at the latest: for a gate that is due, or for lazy notes. */
static uint64_t next_time(uint64_t due_ns, uint64_t now)
{
	if (due_ns != UINT64_MAX)
		due_ns = due_ns > clock_slack_ns() ? due_ns - clock_slack_ns() : 0;
	if (play_n_open() && now + LAZY_NS < due_ns)
		return now + LAZY_NS;
	return due_ns;
}

/* Nothing moved: spin where something usually comes soon, else sleep. */
static void rest(const struct spin *spin, uint64_t *quiet_since, uint64_t due_ns, uint64_t wake_ns)
{
	uint64_t now = clock_now_ns(), until = next_time(due_ns, now);

	if (!*quiet_since)
		*quiet_since = now;
	if (now - *quiet_since < spin_budget_ns(spin) || !nap_ns(*quiet_since))
		sched_yield();
	else if (sleep_until(until < wake_ns ? until : wake_ns, *quiet_since) &&
		 nap_ns(*quiet_since) != UINT64_MAX)
		*quiet_since = clock_now_ns(); /* there is work again: look closely */
}

/* A device's gates that must be looked at. */
static bool poll_device(void)
{
	static bool is_precise; /* the progress thread's */
	const struct device *dev = device_chosen();

	if (!dev || !dev->poll)
		return false;
	if (!is_precise) { /* else a nap of 10 us lasts 60; this thread is ours */
		prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
		is_precise = true;
	}
	return dev->poll();
}

static void *progress_main(void *arg)
{
	uint64_t stop_by = UINT64_MAX, quiet_since = 0;
	struct spin spin = {0};

	(void)arg;
	pthread_setname_np(pthread_self(), "nbox-progress");
	session_open();
	for (;;) {
		bool moved = note_run_all();
		uint32_t n_open;
		uint64_t now, due, ping;

		moved = poll_device() || moved;
		moved = session_progress() || moved;
		moved = play_step() || moved;
		n_open = play_n_open();
		now = clock_now_ns();
		due = play_open_due(now);
		ping = session_follow_clock(now);
		/* an opened gate goes on at once: look closely, or its passing is noted late */
		moved = moved || play_n_open() != n_open;
		if (g.is_stopping) {
			stop_by = stop_by == UINT64_MAX
					  ? now + (session_is_awaited() ? SUMMARY_NS : BYE_NS)
					  : stop_by;
			if ((session_is_flushed() && !session_is_awaited()) || now >= stop_by)
				break;
		}
		if (moved) {
			if (quiet_since)
				spin_learn(&spin, clock_now_ns() - quiet_since);
			quiet_since = 0;
			continue;
		}
		rest(&spin, &quiet_since, due, ping < stop_by ? ping : stop_by);
	}
	session_close();
	if (device_chosen() && device_chosen()->stop)
		device_chosen()->stop();
	pthread_mutex_lock(&waiters.lock);
	g.has_ended = true;
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
	return NULL;
}

static void in_child(void)
{
	/* No thread, and the locks may be held by threads that are not here. The copies of
	 * the links' descriptors go: nboxd must see the end of the parent. */
	note_in_child();
	edges_in_child();
	waiters_in_child();
	comm_id_in_child();
	comm_in_child();
	session_in_child();
}

/* Runs before stop(). */
static void on_process_exit(int status, void *arg)
{
	(void)arg;
	g.exit_code = status & 0xff; /* as wait() gives it */
}

static void start(void)
{
	char text[ERR_TEXT_MAX];
	int r = note_open();

	if (r) {
		snprintf(text, sizeof(text), "eventfd: %s", strerror(-r));
		session_fail(r, text);
		return;
	}
	pthread_atfork(NULL, NULL, in_child);
	on_exit(on_process_exit, NULL); /* libnbox.so is never unloaded (-z nodelete) */
	session_begin(&session_events);
	r = -quiet_thread(&g.thread, progress_main, NULL);
	if (r) {
		snprintf(text, sizeof(text), "cannot start the progress thread: %s", strerror(-r));
		session_fail(r, text);
		return;
	}
	g.has_thread = true;
}

int progress_start(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	if (note_is_child())
		return err_set(err, ESRCH,
			       "this process was forked after NCCL was set up in its parent");
	return session_wait(err);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void run_stop(struct note *n)
{
	static bool is_last; /* notes that came with this one may have posted others */

	if (!is_last) {
		is_last = true;
		note_post(n, NOTE_LAZY);
		return;
	}
	/* a lost link may be why the process ends: then that is still said */
	session_progress();
	g.is_stopping = true;
	checkin_stop();
	tune_lost();
	session_say_bye(g.exit_code);
}

/* At exit. */
__attribute__((destructor)) static void stop(void)
{
	static struct note note = {.run = run_stop};
	uint64_t until_ns;
	int r = 0;

	if (!g.has_thread || note_is_child() || pthread_equal(pthread_self(), g.thread))
		return;
	until_ns = clock_now_ns() + STOP_NS + (session_is_joined() ? SUMMARY_NS : BYE_NS);
	note_post(&note, NOTE_WAKE);
	pthread_mutex_lock(&waiters.lock);
	while (!g.has_ended && !r)
		r = waiters_wait(until_ns);
	pthread_mutex_unlock(&waiters.lock);
	if (r)
		return; /* stuck: the process ends all the same */
	pthread_join(g.thread, NULL);
	note_close();
}
