/* The proxy thread: each process has one, for the links and players of all its communicators.
 * While ops run it polls their links without a pause for a short time, then it sleeps in poll()
 * on all of them. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"
#include "standins/nccl/impl.h"

#define SWEEP_NS NS_PER_MS      /* busy: how often idle links are looked at */
#define TELL_NS (10 * NS_PER_S) /* an op that takes longer is worth a line */
#define LEAVE_NS (200 * NS_PER_MS)

static struct pollfd *fds;
static size_t fds_size;

static bool take_requests(void)
{
	struct request *r, *next;

	pthread_mutex_lock(&px.lock);
	r = px.first;
	px.first = NULL;
	px.end = &px.first;
	pthread_mutex_unlock(&px.lock);
	if (!r)
		return false;
	for (; r; r = next) {
		/* once done is set, or fn ran, the request may be gone */
		_Atomic uint32_t *done = r->done;
		bool is_owned = r->is_owned;

		next = r->next;
		r->fn(r->arg);
		if (is_owned)
			free(r);
		else if (done)
			futex_wake_done(done);
	}
	return true;
}

static bool has_requests(void)
{
	bool has;

	pthread_mutex_lock(&px.lock);
	has = px.first != NULL;
	pthread_mutex_unlock(&px.lock);
	return has;
}

static void do_attach(void *arg)
{
	struct ncclComm *c = arg;

	c->proxy_next = px.comms;
	px.comms = c;
	c->is_attached = true;
	frames_attach(c);
}

static void unlink_comm(struct ncclComm *c)
{
	struct ncclComm **p;

	for (p = &px.comms; *p != c;)
		p = &(*p)->proxy_next;
	*p = c->proxy_next;
	c->is_attached = false;
	memcpy(px.gone[px.n_gone % GONE].magic, c->magic, 16);
	px.gone[px.n_gone++ % GONE].rank = c->rank;
}

/* Nothing touches the users' buffers after this. */
static void close_data(struct ncclComm *c)
{
	conn_close_data(c);
	while (c->gathers)
		gather_drop(c, c->gathers->number);
}

/* What a failed communicator still has to do, outside of all callbacks. */
static void close_failed(struct ncclComm *c)
{
	c->is_closed = true;
	conn_say_abort(c, errno_of_result((ncclResult_t)atomic_load(&c->error)), c->text);
	close_data(c);
	run_fail_all(c);
}

static void do_detach(void *arg)
{
	struct ncclComm *c = arg;

	if (!c->is_attached)
		return;
	if (c->is_failed && !c->is_closed)
		close_failed(c);
	c->is_leaving = true;
	close_data(c); /* says goodbye first, when nothing failed */
	run_fail_all(c);
	unlink_comm(c);
}

struct abort_arg {
	struct ncclComm *comm;
	const char *text;
	bool tell;
};

static void do_abort(void *arg)
{
	struct abort_arg *a = arg;
	struct ncclComm *c = a->comm;

	if (!c->is_attached || c->is_closed)
		return;
	if (a->tell)
		conn_say_abort(c, ECANCELED, a->text);
	close_data(c);
	c->is_failed = c->is_closed = true;
	run_fail_all(c);
}

void proxy_attach(struct ncclComm *c)
{
	proxy_call(do_attach, comm_get(c));
}

void proxy_detach(struct ncclComm *c)
{
	bool was = c->is_attached; /* changed only by do_attach and do_detach, which we wait for */

	proxy_call(do_detach, c);
	if (was)
		comm_put(c);
}

void proxy_abort(struct ncclComm *c, const char *text, bool tell)
{
	struct abort_arg a = {.comm = c, .text = text, .tell = tell};

	proxy_call(do_abort, &a);
}

/* --- the loop ------------------------------------------------------------------ */

static bool is_active(const struct conn *k)
{
	return k->n_sent || k->has_post || k->filling || (k->inbox && k->inbox->n_posts) ||
	       k->is_parked;
}

static bool progress(bool all)
{
	bool moved = false;
	struct conn *k;

	for (k = px.conns; k; k = k->next) {
		if (!k->is_dead && (all || is_active(k)))
			moved |= link_progress(k->link) == 1;
	}
	return moved;
}

static void reap(void)
{
	struct conn **p = &px.conns;
	uint64_t now = 0;

	while (*p) {
		struct conn *k = *p;

		if (k->is_lingering && !k->is_dead) {
			now = now ? now : clock_now_ns();
			k->is_dead = !link_queued_bytes(k->link) || now > k->until_ns;
		}
		if (!k->is_dead) {
			p = &k->next;
			continue;
		}
		*p = k->next;
		conn_free(k);
	}
}

static void tell_slow(struct ncclComm *c)
{
	char what[160], where[200];
	struct run *r = c->run;

	if (r->is_told || clock_now_ns() - r->started_ns < TELL_NS)
		return;
	r->is_told = true;
	op_describe(r->op, what, sizeof(what));
	player_describe(r->player, where, sizeof(where));
	debug_line(DEBUG_WARN, "rank %u: %s takes longer than 10 s: %s", c->rank, what, where);
}

/* Return: something happened. *ret_runs: ops are in progress. */
static bool advance(bool *ret_runs)
{
	struct ncclComm *c;
	bool moved = false;

	*ret_runs = false;
	for (c = px.comms; c; c = c->proxy_next) {
		if (c->is_lost && !c->is_failed && !c->is_leaving)
			peer_judge_lost(c);
		if (c->is_failed && !c->is_closed) {
			close_failed(c);
			moved = true;
		}
		if (c->run)
			peer_look_for_left(c);
		if (c->run)
			moved |= run_advance(c);
		*ret_runs |= c->run != NULL;
	}
	return moved;
}

static int add_fd(size_t *n, int fd, short events)
{
	if (*n == fds_size) {
		size_t size = fds_size ? 2 * fds_size : 64;
		void *grown = realloc(fds, size * sizeof(*fds));

		if (!grown)
			return -ENOMEM;
		fds = grown;
		fds_size = size;
	}
	fds[(*n)++] = (struct pollfd){.fd = fd, .events = events};
	return 0;
}

/* Return: false: a link has more to do at once. */
static bool gather_fds(size_t *ret_n)
{
	struct port_ref *p;
	struct conn *k;
	size_t n = 0;
	int port[2], i, n_port;

	add_fd(&n, px.wake_fd, POLLIN);
	for (p = px.ports; p; p = p->next) {
		n_port = port_fds(p->port, port);
		for (i = 0; i < n_port; i++)
			add_fd(&n, port[i], POLLIN);
	}
	for (k = px.conns; k; k = k->next) {
		if (k->is_dead)
			continue;
		if (!link_arm(k->link))
			return false;
		if (add_fd(&n, link_fd(k->link), link_poll_events(k->link)))
			return false;
	}
	*ret_n = n;
	return true;
}

static void rest(bool has_runs)
{
	struct ncclComm *c;
	struct conn *k;
	uint64_t count;
	size_t n;
	int timeout = has_runs ? 1000 : -1;

	atomic_store(&px.is_asleep, true);
	if (!has_requests() && gather_fds(&n)) {
		for (k = px.conns; k; k = k->next)
			timeout = k->is_lingering ? 50 : timeout;
		for (c = px.comms; c; c = c->proxy_next)
			timeout = c->is_lost && !c->is_failed ? 50 : timeout;
		poll(fds, n, timeout);
	}
	atomic_store(&px.is_asleep, false);
	if (read(px.wake_fd, &count, sizeof(count)) < 0) {
		/* it was something else that woke us */
	}
	for (c = px.comms; c && has_runs && debug_on(DEBUG_WARN); c = c->proxy_next) {
		if (c->run)
			tell_slow(c);
	}
}

static void accept_all(void)
{
	struct port_ref *p;

	for (p = px.ports; p; p = p->next) {
		while (port_accept(p->port, &frame_events) == 1)
			;
	}
}

static void *proxy_main(void *arg)
{
	uint64_t quiet_since = 0, swept = 0, now;
	struct spin spin = {0};
	bool moved, has_runs;

	(void)arg;
	pthread_setname_np(pthread_self(), "nccl-proxy");
	for (;;) {
		moved = take_requests();
		now = clock_now_ns();
		if (now - swept > SWEEP_NS) {
			swept = now;
			accept_all();
			moved |= progress(true);
			reap();
		} else {
			moved |= progress(false);
		}
		moved |= advance(&has_runs);
		if (moved) {
			if (quiet_since)
				spin_learn(&spin, clock_now_ns() - quiet_since);
			quiet_since = 0;
			continue;
		}
		if (!quiet_since)
			quiet_since = now;
		if (now - quiet_since < spin_budget_ns(&spin)) {
			sched_yield();
			continue;
		}
		reap();
		rest(has_runs);
		swept = 0;
	}
	return NULL;
}

/* A forked child has no proxy thread, and none of the parent's communicators. */
static void after_fork(void)
{
	px.generation++;
	debug_after_fork();
	pthread_mutex_init(&px.lock, NULL);
	px.is_started = false;
	px.first = NULL;
	px.end = &px.first;
	px.conns = NULL;
	px.comms = NULL;
	px.ports = NULL;
	fds = NULL;
	fds_size = 0;
	if (px.wake_fd >= 0)
		close(px.wake_fd);
	px.wake_fd = -1;
	atomic_store(&px.is_asleep, false);
}

static void do_leave(void *arg)
{
	for (struct conn *k = px.conns; k; k = k->next) {
		if (!k->comm || k->comm->is_failed || k->is_dead || k->is_lingering)
			continue;
		conn_say_bye(k);
		link_progress(k->link);
	}
	sem_post(arg);
}

/* A program that calls exit() with communicators that it did not destroy, as many do: the other
 * ranks are told, so that only an op that needs this rank fails. */
__attribute__((destructor)) static void leave(void)
{
	static sem_t done;
	uint64_t until = clock_now_ns() + LEAVE_NS;
	struct timespec ts = {.tv_sec = (time_t)(until / NS_PER_S),
			      .tv_nsec = (long)(until % NS_PER_S)};
	bool is_started;

	pthread_mutex_lock(&px.lock);
	is_started = px.is_started;
	pthread_mutex_unlock(&px.lock);
	if (!is_started || sem_init(&done, 0, 0) || proxy_post(do_leave, &done))
		return;
	while (sem_clockwait(&done, CLOCK_MONOTONIC, &ts) && errno == EINTR)
		;
}

ncclResult_t proxy_start(void)
{
	static bool is_hooked;
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t t;
	int e = 0;

	pthread_mutex_lock(&px.lock);
	if (!px.is_started) {
		px.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (px.wake_fd < 0) {
			e = errno;
		} else {
			pthread_attr_init(&attr);
			pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
			sigfillset(&all); /* the job's signals are for the job's threads */
			pthread_sigmask(SIG_SETMASK, &all, &old);
			e = pthread_create(&t, &attr, proxy_main, NULL);
			pthread_sigmask(SIG_SETMASK, &old, NULL);
			pthread_attr_destroy(&attr);
		}
		px.is_started = !e;
		if (!e && !is_hooked)
			is_hooked = !pthread_atfork(NULL, NULL, after_fork);
	}
	pthread_mutex_unlock(&px.lock);
	return e ? fail(ncclSystemError, "cannot start the proxy thread: %s", strerror(e))
		 : ncclSuccess;
}
