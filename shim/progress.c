#include "shim/progress.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/spin.h"
#include "links/link.h"
#include "shim/comm.h"
#include "shim/env.h"
#include "shim/last-error.h"
#include "shim/play.h"
#include "shim/progress-internal.h"

#define CONNECT_MS 5000
#define N_PINGS 8
#define LAZY_NS (1 * NS_PER_MS)      /* how late a lazy note may be looked at */
#define BYE_NS (200 * NS_PER_MS)
#define STOP_NS (2 * NS_PER_S)

enum session { SESSION_NONE, SESSION_GREETING, SESSION_UP, SESSION_LOST };

static struct {
	/* Any thread. */
	pthread_mutex_t queue_lock; /* of the notes; after the end: of everything */
	struct note *first, **last;
	_Atomic bool is_asleep;     /* seq_cst, with the queue: see post() */
	_Atomic bool has_stopped;
	_Atomic bool is_child;      /* we are the child of a fork */
	_Atomic int link_fd;        /* for in_child(); -1: none */
	_Atomic int back_fd;
	int wake_fd;

	pthread_mutex_t wait_lock;  /* of session, start_err, and comm->checkin... */
	pthread_cond_t wait_cond;
	enum session session;
	int start_code;
	struct err start_err;
	pthread_t thread;
	bool has_thread, has_ended;

	/* The progress thread's. */
	struct link *link;
	struct link *back;           /* payload over tcp: messages towards us; or NULL */
	bool needs_clock, needs_back; /* before the session is up */
	struct wire_welcome welcome; /* constant once SESSION_UP */
	int64_t clock_offset;        /* nboxd's clock minus ours */
	uint32_t n_pings;
	uint64_t best_rtt_ns;
	struct comm *pending, *known;
	uint32_t next_cookie;
	bool is_stopping;
} g = {
	.queue_lock = PTHREAD_MUTEX_INITIALIZER,
	.wait_lock = PTHREAD_MUTEX_INITIALIZER,
	.wake_fd = -1,
	.link_fd = -1,
	.back_fd = -1,
	.last = &g.first,
};

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
	/* seq_cst on both sides: either the sleeper sees the note when it looks for a
	 * last time, or we see that it is asleep */
	if (how == PROGRESS_WAKE && atomic_exchange(&g.is_asleep, false))
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

/* --- for play.c ------------------------------------------------------------------ */

struct link *progress_link(void)
{
	return g.link;
}

const struct wire_welcome *progress_welcome(void)
{
	return &g.welcome;
}

uint64_t progress_to_daemon(uint64_t own_ns)
{
	return own_ns + (uint64_t)g.clock_offset;
}

uint64_t progress_from_daemon(uint64_t daemon_ns)
{
	return daemon_ns - (uint64_t)g.clock_offset;
}

void progress_signal_idle(void)
{
	pthread_mutex_lock(&g.wait_lock);
	pthread_cond_broadcast(&g.wait_cond);
	pthread_mutex_unlock(&g.wait_lock);
}

static void send_text(const struct comm *c, enum wire_type type, int code, const char *text)
{
	struct wire_text body = {.code = code};
	struct wire_hdr h;

	if (!g.link)
		return;
	snprintf(body.text, sizeof(body.text), "%s", text);
	wire_hdr_init(&h, type, sizeof(body));
	h.comm = c->number;
	h.rank = c->rank;
	link_send_copy(g.link, &h, &body);
}

static void kill_comm(struct comm *c)
{
	play_kill(c);
	progress_signal_idle();
}

void progress_fail_comm(struct comm *c, ncclResult_t result, const char *text)
{
	if (atomic_load(&c->async) == ncclSuccess) {
		log_error("communicator %u, rank %u of %u: %s", c->number, c->rank, c->n_ranks,
			  text);
		send_text(c, WIRE_ABORT, EPROTO, text);
	}
	comm_fail(c, result, "%s", text);
	kill_comm(c);
}

/* --- check-ins --------------------------------------------------------------------- */

static void checkin_answer(struct comm *c, int code)
{
	pthread_mutex_lock(&g.wait_lock);
	if (c->checkin == CHECKIN_SENT)
		c->checkin = code ? CHECKIN_FAILED : CHECKIN_OK;
	c->checkin_code = code;
	pthread_cond_broadcast(&g.wait_cond);
	pthread_mutex_unlock(&g.wait_lock);
}

static void list_remove(struct comm **list, const struct comm *c)
{
	for (; *list; list = &(*list)->next) {
		if (*list == c) {
			*list = c->next;
			return;
		}
	}
}

static struct comm *find_pending(uint32_t cookie)
{
	for (struct comm *c = g.pending; c; c = c->next)
		if (c->cookie == cookie)
			return c;
	return NULL;
}

static struct comm *find_known(uint32_t number, uint32_t rank)
{
	for (struct comm *c = g.known; c; c = c->next)
		if (c->number == number && c->rank == rank)
			return c;
	return NULL;
}

static void run_checkin(struct note *n)
{
	struct comm *c = container_of(n, struct comm, checkin_note);
	struct wire_hdr h;

	if (!g.link) {
		err_set(&c->checkin_err, EPIPE, "the link to nboxd is lost");
		checkin_answer(c, -EPIPE);
		comm_unref(c);
		return;
	}
	c->cookie = g.next_cookie++;
	switch (c->checkin_type) {
	case WIRE_COMM_INIT:
		((struct wire_comm_init *)c->checkin_body)->cookie = c->cookie;
		break;
	case WIRE_COMM_SPLIT:
		((struct wire_comm_split *)c->checkin_body)->cookie = c->cookie;
		break;
	default:
		((struct wire_comm_shrink *)c->checkin_body)->cookie = c->cookie;
		break;
	}
	wire_hdr_init(&h, c->checkin_type, c->checkin_bytes);
	h.comm = c->checkin_parent;
	h.rank = c->checkin_rank;
	c->next = g.pending;
	g.pending = c;
	link_send_copy(g.link, &h, c->checkin_body);
}

int progress_checkin_begin(struct comm *c, enum wire_type type, uint32_t parent, uint32_t rank,
			   const void *body, size_t bytes)
{
	c->checkin_body = malloc(bytes);
	if (!c->checkin_body)
		return -ENOMEM;
	memcpy(c->checkin_body, body, bytes);
	c->checkin_bytes = bytes;
	c->checkin_type = (uint16_t)type;
	c->checkin_parent = parent;
	c->checkin_rank = rank;
	c->checkin = CHECKIN_SENT;
	c->checkin_note.run = run_checkin;
	comm_ref(c); /* the progress thread's */
	progress_post(&c->checkin_note, PROGRESS_WAKE);
	return 0;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S)};
}

/* Under wait_lock. Return: 0; -ETIMEDOUT; -ECANCELED. */
static int wait_more(const struct comm *c, uint64_t until_ns)
{
	struct timespec ts = to_timespec(until_ns);

	if (atomic_load(&c->cancelled))
		return -ECANCELED;
	return pthread_cond_clockwait(&g.wait_cond, &g.wait_lock, CLOCK_MONOTONIC, &ts) ==
			       ETIMEDOUT ?
		       -ETIMEDOUT :
		       0;
}

int progress_checkin_wait(struct comm *c, struct err *err)
{
	uint64_t until = clock_now_ns() + env_get()->timeout_ns;
	int rc = 0;

	pthread_mutex_lock(&g.wait_lock);
	while (c->checkin == CHECKIN_SENT && !rc)
		rc = wait_more(c, until);
	if (c->checkin == CHECKIN_SENT) {
		c->checkin = CHECKIN_FAILED; /* a late answer is sent back */
		if (rc == -ECANCELED)
			err_set(err, ECANCELED, "aborted");
		else
			err_set(err, ETIMEDOUT,
				"the other real members of the communicator did not check in "
				"within NBOX_INIT_TIMEOUT (%.0f s)",
				(double)env_get()->timeout_ns / 1e9);
	} else if (c->checkin == CHECKIN_FAILED) {
		*err = c->checkin_err;
		rc = c->checkin_code;
	} else {
		rc = 0;
	}
	pthread_mutex_unlock(&g.wait_lock);
	return rc;
}

int progress_local_id_wait(struct comm *c, uint8_t ret[WIRE_ID_BYTES], struct err *err)
{
	uint64_t until = clock_now_ns() + env_get()->timeout_ns;
	int rc = 0;

	pthread_mutex_lock(&g.wait_lock);
	while (!c->has_local_id && !rc && atomic_load(&c->async) == ncclSuccess)
		rc = wait_more(c, until);
	if (c->has_local_id) {
		memcpy(ret, c->local_id, WIRE_ID_BYTES);
		rc = 0;
	} else if (rc == -ETIMEDOUT) {
		err_set(err, ETIMEDOUT,
			"real member 0 (rank %u) sent no id within NBOX_INIT_TIMEOUT",
			c->members[0].rank);
	} else if (rc) {
		err_set(err, ECANCELED, "aborted");
	} else {
		rc = err_set(err, EPIPE, "%s", c->why);
	}
	pthread_mutex_unlock(&g.wait_lock);
	return rc;
}

void progress_wait_idle(struct comm *c, uint64_t timeout_ns)
{
	struct timespec ts = to_timespec(clock_now_ns() + timeout_ns);
	int rc = 0;

	if (atomic_load_explicit(&g.is_child, memory_order_relaxed))
		return;
	if (atomic_exchange(&g.is_asleep, false))
		wake();
	pthread_mutex_lock(&g.wait_lock);
	/* acquire: pairs with play_passed() */
	while (atomic_load_explicit(&c->n_pending, memory_order_acquire) && !rc)
		rc = pthread_cond_clockwait(&g.wait_cond, &g.wait_lock, CLOCK_MONOTONIC, &ts);
	pthread_mutex_unlock(&g.wait_lock);
}

static void run_kill(struct note *n)
{
	kill_comm(container_of(n, struct comm, kill_note));
	comm_unref(container_of(n, struct comm, kill_note));
}

void progress_kill(struct comm *c)
{
	if (atomic_exchange(&c->kill_posted, true))
		return;
	c->kill_note.run = run_kill;
	comm_ref(c);
	progress_post(&c->kill_note, PROGRESS_WAKE);
	progress_signal_idle(); /* those that wait for a check-in */
}

/* --- frames for others --------------------------------------------------------------- */

struct send_note {
	struct note note;
	struct comm *comm;
	struct wire_hdr hdr;
	char body[];
};

static void run_send(struct note *n)
{
	struct send_note *s = container_of(n, struct send_note, note);
	struct comm *c = s->comm;

	s->hdr.comm = c->number;
	s->hdr.rank = c->rank;
	if (g.link && c->number)
		link_send_copy(g.link, &s->hdr, s->hdr.body_bytes ? s->body : NULL);
	if (s->hdr.type == WIRE_COMM_FREE) {
		struct comm **list = &g.known;

		while (*list && *list != c)
			list = &(*list)->next;
		if (*list) {
			*list = c->next;
			comm_unref(c);
		}
	}
	comm_unref(c);
	free(s);
}

int progress_send(struct comm *c, enum wire_type type, const void *body, size_t bytes)
{
	struct send_note *s;

	if (atomic_load_explicit(&g.is_child, memory_order_relaxed))
		return 0;
	s = calloc(1, sizeof(*s) + bytes);
	if (!s)
		return -ENOMEM;
	s->note.run = run_send;
	s->comm = comm_ref(c);
	wire_hdr_init(&s->hdr, type, bytes);
	if (bytes)
		memcpy(s->body, body, bytes);
	progress_post(&s->note, PROGRESS_WAKE);
	return 0;
}

/* --- frames from nboxd ------------------------------------------------------------------ */

static void send_free(uint32_t number, uint32_t rank)
{
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_COMM_FREE, 0);
	h.comm = number;
	h.rank = rank;
	link_send_copy(g.link, &h, NULL);
}

static void on_ready(const struct wire_hdr *h, const struct wire_comm_ready *r)
{
	struct comm *c = find_pending(r->cookie);
	bool is_wanted;
	int rc;

	if (!c)
		return;
	list_remove(&g.pending, c);
	pthread_mutex_lock(&g.wait_lock);
	is_wanted = c->checkin == CHECKIN_SENT;
	pthread_mutex_unlock(&g.wait_lock);
	if (!is_wanted) {
		if (r->n_ranks)
			send_free(h->comm, r->rank);
		comm_unref(c);
		return;
	}
	rc = comm_set_members(c, r, (const struct wire_member *)(const void *)(r + 1), h->comm,
			      &c->checkin_err);
	if (!rc && r->n_ranks) {
		c->next = g.known;
		g.known = c;
		checkin_answer(c, 0);
		return;
	}
	checkin_answer(c, rc);
	comm_unref(c);
}

static void on_local_id(const struct wire_hdr *h, const void *body)
{
	struct comm *c = find_known(h->comm, h->rank);

	if (!c)
		return;
	pthread_mutex_lock(&g.wait_lock);
	memcpy(c->local_id, body, WIRE_ID_BYTES);
	c->has_local_id = true;
	pthread_cond_broadcast(&g.wait_cond);
	pthread_mutex_unlock(&g.wait_lock);
}

/* The other side of an op that is wrong; or a member that is gone. */
static ncclResult_t result_of(int code)
{
	return code == EPROTO || code == EINVAL ? ncclInvalidUsage : ncclRemoteError;
}

static void on_abort(const struct wire_hdr *h, const struct wire_text *t)
{
	struct comm *c;

	if (h->comm == WIRE_NO_COMM) {
		c = find_pending((uint32_t)h->seq);
		if (!c)
			return;
		list_remove(&g.pending, c);
		err_set(&c->checkin_err, t->code > 0 ? t->code : EPROTO, "%s", t->text);
		checkin_answer(c, -EPROTO);
		comm_unref(c);
		return;
	}
	for (c = g.known; c; c = c->next) {
		if (c->number != h->comm || atomic_load(&c->async) != ncclSuccess)
			continue;
		log_error("communicator %u, rank %u of %u: %s", c->number, c->rank, c->n_ranks,
			  t->text);
		comm_fail(c, result_of(t->code), "%s", t->text);
		kill_comm(c);
	}
}

static void set_session(enum session s, int code, const char *text)
{
	pthread_mutex_lock(&g.wait_lock);
	g.session = s;
	g.start_code = code;
	if (code)
		err_set(&g.start_err, -code, "%s", text);
	pthread_cond_broadcast(&g.wait_cond);
	pthread_mutex_unlock(&g.wait_lock);
}

static const struct link_events events;

static void say_hello(struct link *l, enum wire_role role)
{
	struct wire_hello hello = {.now_ns = clock_now_ns(), .pid = (uint32_t)getpid(),
				   .role = role,
				   .worker = g.welcome.worker};
	struct wire_hdr h;
	char id[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned int n = 0, nibble;

	memcpy(hello.token, env_get()->token, sizeof(hello.token));
	if (f) {
		if (!fgets(id, sizeof(id), f))
			id[0] = 0;
		fclose(f);
	}
	for (const char *p = id; *p && n < 32; p++) {
		if (sscanf((const char[2]){*p, 0}, "%1x", &nibble) != 1)
			continue;
		hello.boot_id[n / 2] |= (uint8_t)(n % 2 ? nibble : nibble << 4);
		n++;
	}
	gethostname(hello.host, sizeof(hello.host) - 1);
	wire_hdr_init(&h, WIRE_HELLO, sizeof(hello));
	link_send_copy(l, &h, &hello);
}

static void send_ping(void)
{
	struct wire_ping p = {.worker_ns = clock_now_ns()};
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_PING, sizeof(p));
	link_send_copy(g.link, &h, &p);
}

static void greeted(void)
{
	if (g.session == SESSION_GREETING && !g.needs_clock && !g.needs_back)
		set_session(SESSION_UP, 0, NULL);
}

static int on_welcome(const struct link *l, const struct wire_welcome *w, struct err *err)
{
	int rc;

	if (g.session != SESSION_GREETING)
		return 0;
	if (l == g.back) {
		g.needs_back = false;
		greeted();
		return 0;
	}
	g.welcome = *w;
	log_debug("worker %u of a world of %u ranks (%u real), exchange %s, data %s", w->worker,
		  w->world, w->n_real, wire_exchange_name(w->exchange), wire_data_name(w->data));
	g.needs_clock = !w->same_clock;
	if (g.needs_clock)
		send_ping();
	g.needs_back = w->exchange == EXCHANGE_PAYLOAD && strcmp(link_kind(l), "tcp") == 0;
	if (g.needs_back) {
		rc = link_connect(env_get()->addr, CONNECT_MS, &events, err, &g.back, err);
		if (rc)
			return rc;
		atomic_store(&g.back_fd, link_fd(g.back));
		say_hello(g.back, WIRE_ROLE_BACK);
	}
	greeted();
	return 0;
}

/* The offset of the ping with the shortest round trip. */
static void on_ping(const struct wire_ping *p)
{
	uint64_t now = clock_now_ns(), rtt = now - p->worker_ns;

	if (g.n_pings == 0 || rtt < g.best_rtt_ns) {
		g.best_rtt_ns = rtt;
		g.clock_offset = (int64_t)(p->daemon_ns - (p->worker_ns + rtt / 2));
	}
	if (++g.n_pings < N_PINGS) {
		send_ping();
		return;
	}
	g.needs_clock = false;
	greeted();
}

static void on_op_frame(const struct wire_hdr *h, const void *body)
{
	struct comm *c = find_known(h->comm, h->rank);
	struct op *op = c ? play_find(c, h->seq) : NULL;
	struct err err;
	int rc;

	if (!c || atomic_load(&c->async) != ncclSuccess)
		return; /* freed or dead, and nboxd did not know it yet */
	if (!op)
		rc = err_set(&err, EPROTO, "%s for op %llu, which is not under way",
			     wire_type_name(h->type), wire_seq_number(h->seq));
	else if (h->type == WIRE_RELEASE)
		rc = play_release(op, body, &err);
	else
		rc = play_message(op, h, &err);
	if (rc)
		progress_fail_comm(c, ncclInternalError, err.text);
}

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	(void)owner;
	(void)l;
	if (h->type == WIRE_MESSAGE && h->body_bytes) {
		*ret_body = play_body(h->body_bytes);
		if (!*ret_body)
			return -ENOMEM;
	}
	return 0;
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	int rc = wire_body_check(h, body, owner);

	if (rc)
		return rc;
	switch (h->type) {
	case WIRE_WELCOME:
		return on_welcome(l, body, owner);
	case WIRE_PING:
		on_ping(body);
		return 0;
	case WIRE_COMM_READY:
		on_ready(h, body);
		return 0;
	case WIRE_LOCAL_ID:
		on_local_id(h, body);
		return 0;
	case WIRE_RELEASE:
	case WIRE_MESSAGE:
		on_op_frame(h, body);
		return 0;
	case WIRE_ABORT:
		on_abort(h, body);
		return 0;
	case WIRE_ERROR:
		err_set(owner, EPROTO, "%s", ((const struct wire_text *)body)->text);
		return -ECONNABORTED;
	default:
		return -EPROTO;
	}
}

static void on_sent(void *owner, struct link *l, uint64_t cookie)
{
	(void)owner;
	(void)l;
	play_body_sent(cookie);
}

static void on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct err *err = owner;

	(void)l;
	if (!err->text[0])
		err_set(err, code ? -code : EPIPE, "%s", why && *why ? why : "closed");
}

static const struct link_events events = {
	.on_header = on_header,
	.on_frame = on_frame,
	.on_sent = on_sent,
	.on_closed = on_closed,
};

/* --- the thread --------------------------------------------------------------------------- */

static void close_links(void)
{
	atomic_store(&g.link_fd, -1);
	atomic_store(&g.back_fd, -1);
	g.back = link_free(g.back);
	g.link = link_free(g.link);
}

/* The link is gone: nobody may be left waiting. */
static void lose_link(const char *why)
{
	bool was_up, is_news = false;
	char text[ERR_TEXT_MAX];
	struct comm *c;

	close_links();
	pthread_mutex_lock(&g.wait_lock);
	was_up = g.session == SESSION_UP;
	snprintf(text, sizeof(text), "%s nboxd at %s: %.400s",
		 was_up ? "lost the link to" : "refused by", env_get()->addr, why);
	pthread_mutex_unlock(&g.wait_lock);
	while ((c = g.pending)) {
		g.pending = c->next;
		err_set(&c->checkin_err, EPIPE, "%s", text);
		checkin_answer(c, -EPIPE);
		comm_unref(c);
		is_news = true;
	}
	for (c = g.known; c; c = c->next) {
		is_news = is_news || atomic_load(&c->async) == ncclSuccess;
		comm_fail(c, ncclSystemError, "%s", text);
		play_kill(c);
	}
	set_session(SESSION_LOST, -EPIPE, text);
	if (was_up && is_news && !g.is_stopping)
		log_error("%s; all communicators fail with ncclSystemError", text);
}

/* Moves frames on both links. Return: whether something moved; a lost link is dealt
 * with. */
static bool progress_links(struct err *closed)
{
	int rc = g.link ? link_progress(g.link) : 0;
	bool moved = rc > 0;

	if (rc >= 0 && g.back) {
		rc = link_progress(g.back);
		moved = moved || rc > 0;
	}
	if (rc < 0)
		lose_link(closed->text[0] ? closed->text : strerror(-rc));
	return moved;
}

static void sleep_until(uint64_t until_ns)
{
	struct pollfd fds[3] = {{.fd = g.wake_fd, .events = POLLIN}, {.fd = -1}, {.fd = -1}};
	uint64_t now, count;
	struct timespec ts;
	bool is_empty;

	if (g.link) {
		if (!link_arm(g.link))
			return;
		fds[1].fd = link_fd(g.link);
		fds[1].events = link_poll_events(g.link);
	}
	if (g.back) {
		if (!link_arm(g.back))
			return;
		fds[2].fd = link_fd(g.back);
		fds[2].events = link_poll_events(g.back);
	}
	atomic_store(&g.is_asleep, true);
	pthread_mutex_lock(&g.queue_lock);
	is_empty = !g.first;
	pthread_mutex_unlock(&g.queue_lock);
	if (is_empty) {
		now = clock_now_ns();
		ts = to_timespec(until_ns > now ? until_ns - now : 0);
		ppoll(fds, 3, until_ns == UINT64_MAX ? NULL : &ts, NULL);
	}
	atomic_store(&g.is_asleep, false);
	if (fds[0].revents & POLLIN && read(g.wake_fd, &count, sizeof(count)) < 0)
		return;
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
	if (now - *quiet_since < spin_budget_ns(spin))
		sched_yield();
	else
		sleep_until(until < stop_by ? until : stop_by);
}

static void *progress_main(void *arg)
{
	struct err closed = {""}, err;
	uint64_t stop_by = UINT64_MAX, quiet_since = 0;
	struct spin spin = {0};
	int rc;

	(void)arg;
	pthread_setname_np(pthread_self(), "nbox-progress");
	rc = link_connect(env_get()->addr, CONNECT_MS, &events, &closed, &g.link, &err);
	if (rc) {
		set_session(SESSION_LOST, rc, err.text);
	} else {
		atomic_store(&g.link_fd, link_fd(g.link));
		say_hello(g.link, WIRE_ROLE_WORKER);
	}
	for (;;) {
		bool moved = run_notes();
		uint64_t due;

		moved = progress_links(&closed) || moved;
		moved = play_step() || moved;
		due = play_open_due(clock_now_ns());
		if (g.is_stopping) {
			uint64_t now = clock_now_ns();

			stop_by = stop_by == UINT64_MAX ? now + BYE_NS : stop_by;
			if (!g.link || !link_queued_bytes(g.link) || now >= stop_by)
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
	close_links();
	pthread_mutex_lock(&g.wait_lock);
	g.has_ended = true;
	pthread_cond_broadcast(&g.wait_cond);
	pthread_mutex_unlock(&g.wait_lock);
	return NULL;
}

/* Without signals: the mask of the caller is as before. */
static int start_thread(void)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&g.thread, NULL, progress_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

static void in_child(void)
{
	int fds[2] = {atomic_load(&g.link_fd), atomic_load(&g.back_fd)};

	/* No thread, and the locks may be held by threads that are not here. The copies of
	 * the links' descriptors go: nboxd must see the end of the parent. */
	atomic_store(&g.is_child, true);
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void start(void)
{
	g.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g.wake_fd < 0) {
		g.start_code = err_set(&g.start_err, errno, "eventfd: %s", strerror(errno));
		return;
	}
	pthread_cond_init(&g.wait_cond, NULL);
	pthread_atfork(NULL, NULL, in_child);
	g.session = SESSION_GREETING;
	g.start_code = start_thread();
	if (g.start_code) {
		g.session = SESSION_LOST;
		err_set(&g.start_err, -g.start_code, "cannot start the progress thread: %s",
			strerror(-g.start_code));
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
	uint64_t until = clock_now_ns() + 2 * CONNECT_MS * NS_PER_MS;
	struct timespec ts = to_timespec(until);
	int rc = 0;

	pthread_once(&once, start);
	if (atomic_load_explicit(&g.is_child, memory_order_relaxed))
		return err_set(err, ESRCH,
			       "this process was forked after NCCL was set up in its parent");
	pthread_mutex_lock(&g.wait_lock);
	while (g.session == SESSION_GREETING && !rc)
		rc = pthread_cond_clockwait(&g.wait_cond, &g.wait_lock, CLOCK_MONOTONIC, &ts);
	if (g.session == SESSION_UP)
		rc = 0;
	else if (g.session == SESSION_GREETING)
		rc = err_set(err, ETIMEDOUT, "nboxd at %s does not answer", env_get()->addr);
	else {
		rc = g.start_code;
		*err = g.start_err;
	}
	pthread_mutex_unlock(&g.wait_lock);
	return rc;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void run_stop(struct note *n)
{
	struct wire_hdr h;

	(void)n;
	g.is_stopping = true;
	for (struct comm *c = g.known; c; c = c->next) {
		comm_fail(c, ncclSystemError, "the process is ending");
		play_kill(c);
	}
	if (!g.link)
		return;
	wire_hdr_init(&h, WIRE_BYE, 0);
	link_send_copy(g.link, &h, NULL);
}

/* At exit, or when the library is unloaded. */
__attribute__((destructor)) static void stop(void)
{
	static struct note note = {.run = run_stop};
	struct timespec ts = to_timespec(clock_now_ns() + STOP_NS);
	int rc = 0;

	if (!g.has_thread || atomic_load_explicit(&g.is_child, memory_order_relaxed) ||
	    pthread_equal(pthread_self(), g.thread))
		return;
	progress_post(&note, PROGRESS_WAKE);
	pthread_mutex_lock(&g.wait_lock);
	while (!g.has_ended && !rc)
		rc = pthread_cond_clockwait(&g.wait_cond, &g.wait_lock, CLOCK_MONOTONIC, &ts);
	pthread_mutex_unlock(&g.wait_lock);
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
