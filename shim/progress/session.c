/* See session.h. */
#include "shim/progress/session.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "links/endpoint.h"
#include "shim/job/env.h"
#include "shim/progress/clock-offset.h"
#include "shim/progress/payload-gpu.h"
#include "shim/progress/waiters.h"

#define LATE_NS (2 * NS_PER_S) /* a link that cannot be made says why, a little after its time */
#define FDS_MAX 24

enum state { STATE_NONE, STATE_GREETING, STATE_UP, STATE_LOST };

static struct {
	const struct session_events *ev; /* constant after session_begin() */
	_Atomic bool was_answered;       /* a frame has come */
	_Atomic bool is_connecting;      /* or could not be connected */
	_Atomic int fds[FDS_MAX];        /* of both links, each plus one; 0: none */
	uint64_t due_ns; /* both links are up and greeted by then; constant after session_begin() */

	/* Under waiters.lock; written by the progress thread. */
	enum state state;
	int start_error;
	struct err start_err;

	/* The progress thread's. */
	struct link *link;
	struct link *back; /* payload over tcp, or with a GPU: messages towards us; or NULL */
	bool needs_clock, needs_back; /* before the session is up */
	struct wire_welcome welcome;  /* constant once STATE_UP */
	uint32_t *classes;            /* the same; owned, by world rank; NULL: there is one */
	uint64_t n_classed;           /* entries of that */
	struct clock_offset clock;
	uint64_t pinged_ns; /* our time in the PING that is on its way; 0: none is */
	uint64_t ping_ns; /* when the next ping is due; UINT64_MAX: one is on its way, or none is */
	bool is_leaving;  /* BYE was said, after which nothing more is */
	struct err closed; /* what the links said when they closed */
} g;

/* --- what others ask ---------------------------------------------------------------- */

struct link *session_link(void)
{
	return g.link;
}

const struct wire_welcome *session_welcome(void)
{
	return &g.welcome;
}

const uint32_t *session_classes(void)
{
	return g.classes;
}

bool session_was_answered(void)
{
	return atomic_load_explicit(&g.was_answered, memory_order_relaxed);
}

uint64_t session_to_daemon(uint64_t own_ns)
{
	return clock_offset_to_daemon(&g.clock, own_ns);
}

uint64_t session_from_daemon(uint64_t daemon_ns)
{
	return clock_offset_from_daemon(&g.clock, daemon_ns);
}

uint64_t session_clock_error_ns(uint64_t own_ns)
{
	return clock_offset_error_ns(&g.clock, own_ns);
}

/* --- frames ------------------------------------------------------------------------- */

static void set_state(enum state s, int r, const char *text)
{
	pthread_mutex_lock(&waiters.lock);
	g.state = s;
	g.start_error = r;
	if (r)
		err_set(&g.start_err, -r, "%s", text);
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
}

int session_send(enum wire_type type, uint32_t comm, uint32_t rank, uint64_t seq, const void *body,
		 size_t bytes)
{
	struct wire_hdr h;

	if (!g.link)
		return 0;
	wire_hdr_init(&h, type, bytes);
	h.comm = comm;
	h.rank = rank;
	h.seq = seq;
	return link_send_copy(g.link, &h, body);
}

void session_send_abort(uint32_t comm, uint32_t rank, uint64_t seq, int code, const char *text)
{
	struct wire_text body = {.code = code};

	snprintf(body.text, sizeof(body.text), "%s", text);
	session_send(WIRE_ABORT, comm, rank, seq, &body, sizeof(body));
}

static const struct link_events events;

/* Before a link is used. */
static void note_fds(void)
{
	int fds[FDS_MAX], n = link_all_fds(g.link, fds, FDS_MAX);

	if (g.back)
		n += link_all_fds(g.back, fds + n, FDS_MAX - n);
	for (int i = 0; i < n; i++)
		atomic_store(&g.fds[i], fds[i] + 1);
}

static void say_hello(struct link *l, enum wire_role role)
{
	struct wire_hello hello = {.now_ns = clock_now_ns(),
				   .pid = (uint32_t)getpid(),
				   .role = role,
				   .worker = g.welcome.worker};
	struct wire_hdr h;

	memcpy(hello.token, env_get()->token, sizeof(hello.token));
	clock_id(hello.clock_id);
	gethostname(hello.host, sizeof(hello.host) - 1);
	wire_hdr_init(&h, WIRE_HELLO, sizeof(hello));
	link_send_copy(l, &h, &hello);
}

static void send_ping(void)
{
	struct wire_ping p = {.worker_ns = clock_now_ns()};

	g.pinged_ns = p.worker_ns;
	session_send(WIRE_PING, 0, 0, 0, &p, sizeof(p));
}

static void greeted(void)
{
	if (g.state == STATE_GREETING && !g.needs_clock && !g.needs_back)
		set_state(STATE_UP, 0, NULL);
}

static int ms_left(void)
{
	uint64_t now_ns = clock_now_ns(),
		 ms = g.due_ns > now_ns ? (g.due_ns - now_ns) / NS_PER_MS : 0;

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

static int waited(int r, struct err *err)
{
	char why[ERR_TEXT_MAX];

	if (r != -ETIMEDOUT)
		return r;
	snprintf(why, sizeof(why), "%s", err->text);
	return err_set(err, ETIMEDOUT, "%.400s (waited for NBOX_CONNECT_TIMEOUT, %g s)", why,
		       (double)env_get()->connect_ns / (double)NS_PER_S);
}

/* The second link, for messages towards us, where one is needed. */
static int open_back(struct err *err)
{
	const char *addr = env_get()->addr;
	int r = 0;

	atomic_store(&g.is_connecting, true);
	if (g.welcome.nccl != NCCL_FULL)
		r = payload_gpu_open(g.link, addr, ms_left(), &events, &g.closed, &g.back, err);
	if (!r && !g.back && !strcmp(link_kind(g.link), "tcp"))
		r = link_connect(addr, ms_left(), &events, &g.closed, &g.back, err);
	atomic_store(&g.is_connecting, r != 0);
	return waited(r, err);
}

/* Tells nboxd, for the summary, where the bodies of messages lie. */
static void note_payload(void)
{
	struct wire_text text = {.code = 1}; /* any but 0 */

	if (!payload_gpu_decided()[0])
		return;
	snprintf(text.text, sizeof(text.text), WIRE_NOTE_PAYLOAD "%s", payload_gpu_decided());
	session_send(WIRE_NOTE, 0, 0, 0, &text, sizeof(text));
}

static int on_classes(const struct wire_hdr *h, const void *body, struct err *err)
{
	if (g.classes || g.state != STATE_GREETING)
		return err_set(err, EPROTO, "CLASSES after WELCOME, or twice");
	g.classes = malloc(h->body_bytes + 1);
	if (!g.classes)
		return err_set(err, ENOMEM, "no memory for the classes of ranks");
	memcpy(g.classes, body, h->body_bytes);
	g.n_classed = h->body_bytes / sizeof(*g.classes);
	return 0;
}

static int on_welcome(const struct link *l, const struct wire_welcome *w, struct err *err)
{
	int r;

	if (g.state != STATE_GREETING)
		return 0;
	if (l == g.back) {
		g.needs_back = false;
		greeted();
		return 0;
	}
	if (g.classes && g.n_classed != w->world)
		return err_set(err, EPROTO, "%llu classes of %u ranks",
			       (unsigned long long)g.n_classed, w->world);
	g.welcome = *w;
	log_debug("worker %u of a world of %u ranks (%u real), exchange %s, data %s", w->worker,
		  w->world, w->n_real, wire_exchange_name(w->exchange), wire_data_name(w->data));
	g.needs_clock = !w->same_clock;
	if (g.needs_clock)
		send_ping();
	r = w->exchange == EXCHANGE_PAYLOAD ? open_back(err) : 0;
	if (r)
		return r;
	note_payload();
	g.needs_back = g.back != NULL;
	if (g.back) {
		note_fds();
		say_hello(g.back, WIRE_ROLE_BACK);
	}
	greeted();
	return 0;
}

static int on_ping(const struct wire_ping *p, struct err *err)
{
	if (!g.pinged_ns || p->worker_ns != g.pinged_ns)
		return err_set(err, EPROTO, "a PING that was not asked for");
	g.pinged_ns = 0;
	if (g.is_leaving)
		return 0;
	clock_offset_add(&g.clock, p->worker_ns, p->daemon_ns, clock_now_ns());
	if (g.clock.n_pings < CLOCK_FIRST_PINGS) {
		send_ping();
		return 0;
	}
	g.ping_ns = clock_offset_next_ns(&g.clock);
	g.needs_clock = false;
	greeted();
	return 0;
}

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	(void)owner;
	if (h->type == WIRE_MESSAGE && h->body_bytes && !(l == g.back && payload_gpu_is_used())) {
		*ret_body = g.ev->body_for(h);
		if (!*ret_body && g.welcome.nccl != NCCL_FULL)
			return -ENOMEM;
	}
	return 0;
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	int r = wire_body_check(h, body, owner);

	atomic_store_explicit(&g.was_answered, true, memory_order_relaxed);

	if (r)
		return r;
	switch (h->type) {
	case WIRE_WELCOME:
		return on_welcome(l, body, owner);
	case WIRE_CLASSES:
		return on_classes(h, body, owner);
	case WIRE_PING:
		return on_ping(body, owner);
	case WIRE_ERROR:
		err_set(owner, EPROTO, "%s", ((const struct wire_text *)body)->text);
		return -ECONNABORTED;
	default:
		return g.ev->on_frame(h, body);
	}
}

static void on_sent(void *owner, struct link *l, uint64_t cookie)
{
	(void)owner;
	(void)l;
	g.ev->on_sent(cookie);
}

static void on_closed(void *owner, struct link *l, int r, const char *why)
{
	struct err *err = owner;

	(void)l;
	if (!err->text[0])
		err_set(err, r ? -r : EPIPE, "%s", why && *why ? why : "closed");
}

static const struct link_events events = {
	.on_header = on_header,
	.on_frame = on_frame,
	.on_sent = on_sent,
	.on_closed = on_closed,
};

/* --- the links' life ------------------------------------------------------------------ */

void session_open(void)
{
	struct err err;
	int r = link_connect(env_get()->addr, ms_left(), &events, &g.closed, &g.link, &err);

	if (waited(r, &err)) {
		set_state(STATE_LOST, r, err.text);
		return;
	}
	note_fds();
	say_hello(g.link, WIRE_ROLE_WORKER);
	atomic_store(&g.is_connecting, false);
}

void session_close(void)
{
	for (int i = 0; i < FDS_MAX; i++)
		atomic_store(&g.fds[i], 0);
	g.back = link_free(g.back);
	g.link = link_free(g.link);
}

/* The link is gone: everybody who waits for nboxd is told. */
static void lose(const char *why)
{
	bool was_up, is_news;
	char text[ERR_TEXT_MAX];

	session_close();
	pthread_mutex_lock(&waiters.lock);
	was_up = g.state == STATE_UP;
	snprintf(text, sizeof(text), "%s nboxd at %s: %.400s",
		 was_up ? "lost the link to" : "refused by", env_get()->addr, why);
	pthread_mutex_unlock(&waiters.lock);
	is_news = g.ev->on_lost(text);
	set_state(STATE_LOST, -EPIPE, text);
	if (was_up && is_news)
		log_error("%s; all communicators fail with ncclSystemError", text);
}

bool session_progress(void)
{
	int r = g.link ? link_progress(g.link) : 0;
	bool moved = r > 0;

	if (r >= 0 && g.back) {
		r = link_progress(g.back);
		moved = moved || r > 0;
	}
	if (r < 0)
		lose(g.closed.text[0] ? g.closed.text : strerror(-r));
	return moved;
}

uint64_t session_follow_clock(uint64_t now_ns)
{
	if (now_ns >= g.ping_ns) {
		g.ping_ns = UINT64_MAX;
		send_ping();
	}
	return g.ping_ns;
}

bool session_arm(struct pollfd fds[2])
{
	struct link *const links[2] = {g.link, g.back};

	for (int i = 0; i < 2; i++) {
		fds[i] = (struct pollfd){.fd = -1};
		if (!links[i])
			continue;
		if (!link_arm(links[i]))
			return false;
		fds[i].fd = link_fd(links[i]);
		fds[i].events = link_poll_events(links[i]);
	}
	return true;
}

void session_say_bye(int exit_code)
{
	g.is_leaving = true;
	g.ping_ns = UINT64_MAX;
	session_send(WIRE_BYE, 0, 0, (uint64_t)exit_code, NULL, 0);
}

bool session_is_flushed(void)
{
	return !g.link || !link_queued_bytes(g.link);
}

bool session_is_joined(void)
{
	return env_get()->addr &&
	       !strncmp(env_get()->addr, WIRE_ADDR_JOINED, strlen(WIRE_ADDR_JOINED));
}

bool session_is_awaited(void)
{
	return g.link && session_is_joined();
}

void session_in_child(void)
{
	for (int i = 0; i < FDS_MAX; i++) {
		int fd = atomic_load(&g.fds[i]) - 1;

		if (fd >= 0)
			close(fd);
	}
}

/* --- the start, as others see it -------------------------------------------------------- */

void session_begin(const struct session_events *ev)
{
	g.ev = ev;
	g.ping_ns = UINT64_MAX;
	g.due_ns = clock_now_ns() + env_get()->connect_ns;
	atomic_store(&g.is_connecting, true);
	set_state(STATE_GREETING, 0, NULL);
}

void session_fail(int r, const char *text)
{
	set_state(STATE_LOST, r, text);
}

int session_wait(struct err *err)
{
	uint64_t until = g.due_ns;
	int r = 0;

	pthread_mutex_lock(&waiters.lock);
	while (g.state == STATE_GREETING && !r) {
		r = waiters_wait(until);
		if (r == -ETIMEDOUT && until == g.due_ns && atomic_load(&g.is_connecting)) {
			until += LATE_NS;
			r = 0;
		}
	}
	if (g.state == STATE_UP)
		r = 0;
	else if (g.state == STATE_GREETING)
		r = waited(err_set(err, ETIMEDOUT, "nboxd at %s does not answer", env_get()->addr),
			   err);
	else {
		r = g.start_error;
		*err = g.start_err;
	}
	pthread_mutex_unlock(&waiters.lock);
	return r;
}
