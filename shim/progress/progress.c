/* See progress.h. */
#include "shim/progress/progress.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"
#include "shim/gate/device-choose.h"
#include "shim/job/quiet-thread.h"
#include "shim/progress/checkin.h"
#include "shim/progress/comm.h"
#include "shim/progress/play.h"
#include "shim/progress/progress-internal.h"
#include "shim/progress/session.h"
#include "shim/real/comm-id.h"

#define LAZY_NS (1 * NS_PER_MS) /* how late a lazy note may be looked at */
#define BYE_NS (2 * NS_PER_S)   /* a process that leaves without its BYE is thought to have died */
#define SUMMARY_NS \
	(20 * NS_PER_S)        /* session_is_awaited(); of many millions of ops it takes seconds */
#define STOP_NS (3 * NS_PER_S) /* longer than these */

static struct {
	/* Any thread. */
	pthread_mutex_t queue_lock; /* of the notes; after the end: of everything */
	struct note *first, **last;
	_Atomic bool is_asleep; /* see progress_post() and progress_nudge() */
	_Atomic bool has_stopped;
	_Atomic bool is_child; /* we are the child of a fork */
	int wake_fd;
	pthread_t thread;
	bool has_thread;
	int exit_code;  /* of the process, once it ends */
	bool has_ended; /* under progress_waiters.lock */

	/* The progress thread's. */
	bool is_stopping;
} g = {
	.queue_lock = PTHREAD_MUTEX_INITIALIZER,
	.wake_fd = -1,
	.last = &g.first,
};

struct progress_waiters progress_waiters = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

struct timespec progress_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S)};
}

/* --- notes --------------------------------------------------------------------- */

static void wake(void)
{
	uint64_t one = 1;
	ssize_t n = write(g.wake_fd, &one, sizeof(one));

	(void)n; /* the counter is full: it is readable anyway */
}

void progress_post(struct note *n, enum progress_wake how)
{
	if (atomic_load_explicit(&g.is_child, memory_order_relaxed))
		return;
	pthread_mutex_lock(&g.queue_lock);
	if (atomic_load_explicit(&g.has_stopped, memory_order_relaxed)) {
		n->run(n); /* the process is ending, the thread is gone */
		pthread_mutex_unlock(&g.queue_lock);
		return;
	}
	n->next = NULL;
	*g.last = n;
	g.last = &n->next;
	pthread_mutex_unlock(&g.queue_lock);
	/* Either the sleeper looks at the queue after us and sees the note, or its look was before
	 * ours: then the mutex shows us the @is_asleep that it had set. The mutex alone does that,
	 * on any machine. */
	if (how == PROGRESS_WAKE && atomic_exchange(&g.is_asleep, false))
		wake();
}

void progress_nudge(void)
{
	/* seq_cst, after the device counted what was enqueued (n_pending in cuda-gate.c): see
	 * sleep_until(). Each side stores one word and then loads the other's, which release and
	 * acquire do not keep in order. */
	if (atomic_exchange(&g.is_asleep, false))
		wake();
}

static struct note *take_notes(void)
{
	struct note *list;

	pthread_mutex_lock(&g.queue_lock);
	list = g.first;
	g.first = NULL;
	g.last = &g.first;
	pthread_mutex_unlock(&g.queue_lock);
	return list;
}

static bool run_notes(void)
{
	struct note *n = take_notes();
	bool any = n != NULL;

	while (n) {
		struct note *next = n->next;

		n->run(n);
		n = next;
	}
	return any;
}

/* --- waiting for it ---------------------------------------------------------------- */

void progress_signal_idle(void)
{
	pthread_mutex_lock(&progress_waiters.lock);
	pthread_cond_broadcast(&progress_waiters.cond);
	pthread_mutex_unlock(&progress_waiters.lock);
}

/* Under the lock. Who sets @async signals after that. */
static bool goes_on(struct comm *c, enum progress_idle until)
{
	return comm_is_busy(c) &&
	       (until == PROGRESS_IDLE ||
		atomic_load_explicit(&c->async, memory_order_acquire) == ncclSuccess);
}

bool progress_wait_idle(struct comm *c, enum progress_idle until, uint64_t timeout_ns)
{
	struct timespec ts = progress_timespec(clock_now_ns() + timeout_ns);
	int rc = 0;

	if (atomic_load_explicit(&g.is_child, memory_order_relaxed))
		return false;
	if (atomic_exchange(&g.is_asleep, false))
		wake();
	pthread_mutex_lock(&progress_waiters.lock);
	while (goes_on(c, until) && !rc)
		rc = pthread_cond_clockwait(&progress_waiters.cond, &progress_waiters.lock,
					    CLOCK_MONOTONIC, &ts);
	pthread_mutex_unlock(&progress_waiters.lock);
	return !comm_is_busy(c);
}

/* --- the thread --------------------------------------------------------------------------- */

bool progress_is_stopping(void)
{
	return g.is_stopping;
}

/* How long gates that must be looked at allow to sleep. */
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
	struct pollfd fds[3] = {{.fd = g.wake_fd, .events = POLLIN}};
	uint64_t now, count, nap;
	struct timespec ts;
	bool is_empty;

	if (!session_arm(&fds[1]))
		return false;
	atomic_store(&g.is_asleep, true);
	pthread_mutex_lock(&g.queue_lock);
	is_empty = !g.first;
	pthread_mutex_unlock(&g.queue_lock);
	/* seq_cst, after @is_asleep: either we see that a gate may move, or who has just
	 * enqueued it sees that we are asleep */
	nap = nap_ns(quiet_since);
	if (is_empty && nap) {
		now = clock_now_ns();
		if (nap != UINT64_MAX && now + nap < until_ns)
			until_ns = now + nap;
		ts = progress_timespec(until_ns > now ? until_ns - now : 0);
		ppoll(fds, 3, until_ns == UINT64_MAX ? NULL : &ts, NULL);
	}
	atomic_store(&g.is_asleep, false);
	return fds[0].revents & POLLIN && read(g.wake_fd, &count, sizeof(count)) > 0;
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
static void rest(const struct spin *spin, uint64_t *quiet_since, uint64_t due_ns, uint64_t stop_by)
{
	uint64_t now = clock_now_ns(), until = next_time(due_ns, now);

	if (!*quiet_since)
		*quiet_since = now;
	if (now - *quiet_since < spin_budget_ns(spin) || !nap_ns(*quiet_since))
		sched_yield();
	else if (sleep_until(until < stop_by ? until : stop_by, *quiet_since) &&
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
		bool moved = run_notes();
		uint32_t n_open;
		uint64_t due;

		moved = poll_device() || moved;
		moved = session_progress() || moved;
		moved = play_step() || moved;
		n_open = play_n_open();
		due = play_open_due(clock_now_ns());
		/* what was opened now goes on at once: look closely, or it is thought late */
		moved = moved || play_n_open() != n_open;
		if (g.is_stopping) {
			uint64_t now = clock_now_ns();

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
		rest(&spin, &quiet_since, due, stop_by);
	}
	session_close();
	if (device_chosen() && device_chosen()->stop)
		device_chosen()->stop();
	pthread_mutex_lock(&progress_waiters.lock);
	g.has_ended = true;
	pthread_cond_broadcast(&progress_waiters.cond);
	pthread_mutex_unlock(&progress_waiters.lock);
	return NULL;
}

static int start_thread(void)
{
	return -quiet_thread(&g.thread, NULL, progress_main, NULL);
}

static void in_child(void)
{
	/* No thread, and the locks may be held by threads that are not here. The copies of
	 * the links' descriptors go: nboxd must see the end of the parent. */
	atomic_store(&g.is_child, true);
	pthread_mutex_init(&g.queue_lock, NULL);
	pthread_mutex_init(&progress_waiters.lock, NULL);
	pthread_cond_init(&progress_waiters.cond, NULL);
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
	int rc;

	g.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g.wake_fd < 0) {
		rc = errno;
		snprintf(text, sizeof(text), "eventfd: %s", strerror(rc));
		session_fail(-rc, text);
		return;
	}
	pthread_atfork(NULL, NULL, in_child);
	on_exit(on_process_exit, NULL); /* libnbox.so is never unloaded (-z nodelete) */
	session_begin();
	rc = start_thread();
	if (rc) {
		snprintf(text, sizeof(text), "cannot start the progress thread: %s", strerror(-rc));
		session_fail(rc, text);
		return;
	}
	g.has_thread = true;
}

bool progress_is_child(void)
{
	return atomic_load_explicit(&g.is_child, memory_order_relaxed);
}

int progress_start(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	if (atomic_load_explicit(&g.is_child, memory_order_relaxed))
		return err_set(err, ESRCH,
			       "this process was forked after NCCL was set up in its parent");
	return session_wait(err);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void run_stop(struct note *n)
{
	(void)n;
	/* a link that is lost may be why the process ends: then that is still said */
	session_progress();
	g.is_stopping = true;
	checkin_stop();
	session_say_bye(g.exit_code);
}

/* At exit. */
__attribute__((destructor)) static void stop(void)
{
	static struct note note = {.run = run_stop};
	struct timespec ts;
	int rc = 0;

	if (!g.has_thread || atomic_load_explicit(&g.is_child, memory_order_relaxed) ||
	    pthread_equal(pthread_self(), g.thread))
		return;
	ts = progress_timespec(clock_now_ns() + STOP_NS +
			       (session_is_joined() ? SUMMARY_NS : BYE_NS));
	progress_post(&note, PROGRESS_WAKE);
	pthread_mutex_lock(&progress_waiters.lock);
	while (!g.has_ended && !rc)
		rc = pthread_cond_clockwait(&progress_waiters.cond, &progress_waiters.lock,
					    CLOCK_MONOTONIC, &ts);
	pthread_mutex_unlock(&progress_waiters.lock);
	if (rc)
		return; /* stuck: the process ends all the same */
	pthread_join(g.thread, NULL);
	pthread_mutex_lock(&g.queue_lock);
	atomic_store(&g.has_stopped, true);
	while (g.first) {
		struct note *n = g.first;

		g.first = n->next;
		n->run(n);
	}
	g.last = &g.first;
	pthread_mutex_unlock(&g.queue_lock);
}
