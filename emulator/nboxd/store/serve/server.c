/* See server.h. */
#include "nboxd/store/serve/server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "links/endpoint.h"
#include "nboxd/loop/warn.h"
#include "nboxd/store/serve/virtual.h"

#define ACCEPTS_A_TURN 64
#define STRANGER_NS (5 * NS_PER_S)
#define FORGET_NS (500 * NS_PER_MS) /* without any client: the next one is a new job's */

/* --- peers ------------------------------------------------------------------------- */

static void peer_free(struct store_peer *p)
{
	struct store_server *ss = p->server;

	p->client = store_client_free(p->client); /* ends its wait */
	if (p->stream) {
		bufferevent_disable(p->stream, EV_READ | EV_WRITE);
		bufferevent_free(p->stream);
	}
	close(p->fd); /* now: libevent would do so in the next turn of the loop */
	if (p->is_stranger)
		DL_DELETE2(ss->strangers, p, prev_stranger, next_stranger);
	DL_DELETE(ss->peers, p);
	if (--ss->n_peers == 0)
		ss->empty_ns = clock_now_ns();
	free(p);
}

static void peer_refuse(struct store_peer *p, const char *why)
{
	warn_stranger("store client %s is cut off: %s", p->name, why);
	peer_free(p);
}

static void on_read(struct bufferevent *b, void *ctx)
{
	struct store_peer *p = ctx;
	struct evbuffer *in = bufferevent_get_input(b);
	const uint8_t *bytes = evbuffer_pullup(in, -1);
	size_t n = evbuffer_get_length(in), n_taken = 0;
	struct err err = {""};
	int r;

	store_client_set_unread(p->client, evbuffer_get_length(bufferevent_get_output(b)));
	r = n && !bytes ? err_set(&err, ENOMEM, "nboxd is out of memory")
			: store_client_feed(p->client, bytes, n, &n_taken, &err);
	if (p->is_stranger && store_client_is_valid(p->client)) {
		DL_DELETE2(p->server->strangers, p, prev_stranger, next_stranger);
		p->is_stranger = false;
	}
	if (r < 0) {
		peer_refuse(p, err.text);
		return;
	}
	evbuffer_drain(in, n_taken);
	if (evbuffer_get_length(bufferevent_get_output(b)) >= STORE_OUTPUT_HIGH)
		bufferevent_disable(b, EV_READ);
}

/* All replies have gone out: what it asked meanwhile is served, and it is read from again. */
static void on_drained(struct bufferevent *b, void *ctx)
{
	struct store_peer *p = ctx;

	if (p->is_over)
		peer_free(p);
	else if (bufferevent_get_enabled(b) & EV_READ)
		store_client_set_unread(p->client, 0);
	else if (bufferevent_enable(b, EV_READ) < 0)
		peer_refuse(p, "nboxd is out of memory");
	else
		on_read(b, p);
}

/* A peer that has shut down only its half of the connection still gets its replies. */
static void on_end(struct bufferevent *b, short what, void *ctx)
{
	struct store_peer *p = ctx;

	p->is_over = true;
	if (what != (BEV_EVENT_READING | BEV_EVENT_EOF) ||
	    evbuffer_get_length(bufferevent_get_output(b)) == 0)
		peer_free(p);
}

/* --- the store's events ---------------------------------------------------------------- */

static void on_output(void *client_owner, const void *bytes, size_t n)
{
	struct store_peer *p = client_owner;

	if (bufferevent_write(p->stream, bytes, n) == 0)
		return;
	warn_stranger("store client %s is cut off: nboxd is out of memory", p->name);
	store_peer_end(p);
}

static void on_wait(void *client_owner, bool begins)
{
	struct store_peer *p = client_owner;
	struct store_server *ss = p->server;

	if (p->is_waiting)
		DL_DELETE2(ss->waiting, p, prev_waiting, next_waiting);
	p->is_waiting = begins;
	if (!begins)
		return;
	DL_APPEND2(ss->waiting, p, prev_waiting, next_waiting);
	p->wait_ns = clock_now_ns();
	p->look_ns = p->wait_ns + ss->env.config->settle_ns;
	p->is_told = false;
	loop_tick_by(ss->env.loop, p->look_ns);
}

static void on_ping(void *client_owner, uint32_t number)
{
	struct store_peer *p = client_owner;

	p->pid = number;
}

static const struct store_events store_events = {
	.on_output = on_output,
	.on_wait = on_wait,
	.on_ping = on_ping,
	.on_missing = virtual_on_missing,
	.on_set = virtual_on_set,
	.initial_count = virtual_initial_count,
};

/* --- accepting --------------------------------------------------------------------------- */

static void name_peer(struct store_peer *p, const struct sockaddr_storage *a, socklen_t len)
{
	char host[64], port[16];

	if (getnameinfo((const struct sockaddr *)a, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(p->name, sizeof(p->name), "?");
	else
		snprintf(p->name, sizeof(p->name), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
			 port);
}

/* A host that vanished is noticed; failures of these are no reason to refuse. */
static void set_options(int fd)
{
	int on = 1, idle_s = 30, interval_s = 10, n_probes = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &n_probes, sizeof(n_probes));
}

/* torchrun starts workers anew after a failure: their keys have the same names, and must
 * not be answered with those of the workers before. */
static void forget_if_new(struct store_server *ss, uint64_t now_ns)
{
	struct store_counts counts = store_counts(ss->store);

	if (ss->n_peers || !counts.n_keys || now_ns < ss->empty_ns + FORGET_NS)
		return;
	log_info("store: all clients had gone; forgets their %llu keys",
		 (unsigned long long)counts.n_keys);
	store_clear(ss->store);
	virtual_clear(ss);
}

/* Owns @fd. Return: 0; -ENOMEM. */
static int peer_new(struct store_server *ss, int fd, const struct sockaddr_storage *a,
		    socklen_t len)
{
	struct store_peer *p = calloc(1, sizeof(*p));
	uint64_t now_ns = clock_now_ns();

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	forget_if_new(ss, now_ns);
	p->server = ss;
	p->fd = fd;
	p->deadline_ns = now_ns + STRANGER_NS;
	name_peer(p, a, len);
	set_options(fd);
	DL_APPEND(ss->peers, p);
	ss->n_peers++;
	p->is_stranger = true;
	DL_APPEND2(ss->strangers, p, prev_stranger, next_stranger);
	p->stream = bufferevent_socket_new(ss->env.loop->base, fd, 0);
	if (!p->stream || store_client_new(ss->store, p, &p->client) < 0 ||
	    bufferevent_enable(p->stream, EV_READ) < 0) {
		peer_free(p);
		return -ENOMEM;
	}
	bufferevent_setcb(p->stream, on_read, on_drained, on_end, p);
	loop_tick_by(ss->env.loop, p->deadline_ns);
	return 0;
}

/* No descriptor is left. A connection that is not taken would keep the listener readable
 * for ever: it is taken with the reserve and hung up. */
static void refuse_one(void *ctx, int listen_fd)
{
	struct store_server *ss = ctx;

	if (ss->reserve >= 0)
		close(ss->reserve);
	closep(&(int){accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)});
	ss->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	warn_stranger("store: a connection was refused, nboxd has no descriptors left "
		      "(%llu clients): raise ulimit -n",
		      (unsigned long long)ss->n_peers);
}

static void on_listen(evutil_socket_t listen_fd, short what, void *ctx)
{
	struct store_server *ss = ctx;

	(void)what;
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		struct sockaddr_storage a;
		socklen_t len = sizeof(a);
		int fd = accept4(listen_fd, (struct sockaddr *)&a, &len,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			refuse_one(ss, listen_fd);
		if (fd < 0)
			return;
		if (peer_new(ss, fd, &a, len) < 0)
			warn_stranger("store: no memory for a client");
		else
			capacity_make(ss->env.capacity, false, ss->peers->prev);
	}
}

static struct store_peer *oldest_silent(struct store_server *ss, const struct store_peer *but)
{
	struct store_peer *p;
	char byte;

	/* a peer whose bytes, or whose end, can be read is libevent's to read */
	DL_FOREACH2(ss->strangers, p, next_stranger)
	if (p != but && recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return p;
	return NULL;
}

uint64_t store_server_silent_until(void *ss, const void *but)
{
	struct store_peer *p = oldest_silent(ss, but);

	return p ? p->deadline_ns : UINT64_MAX;
}

void store_server_oust_silent(void *ss, const void *but)
{
	struct store_peer *p = oldest_silent(ss, but);

	if (p)
		peer_refuse(p, "another connection needs its place, and it has said nothing yet");
}

/* --- life ---------------------------------------------------------------------------------- */

int store_server_open(const struct store_env *env, const char *addr, struct store_server **ret,
		      struct err *err)
{
	struct store_server *ss = calloc(1, sizeof(*ss));
	char text[320];
	int r;

	if (!ss)
		return err_set(err, ENOMEM, "out of memory");
	ss->env = *env;
	ss->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	snprintf(text, sizeof(text), "tcp:%s", addr);
	r = listener_open(text, &ss->listener, err);
	if (r == -EADDRINUSE)
		err_set(err, EADDRINUSE,
			"another program listens at %s; choose another --store (port 0: "
			"any)",
			addr);
	else if (r < 0)
		err_prefix(err, r, "store");
	if (r == 0 &&
	    (store_new(&store_events, ss, &ss->store) < 0 || virtual_open(ss, refuse_one) < 0))
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0) {
		ss->listen_event = loop_watch(env->loop, listener_fd(ss->listener),
					      EV_READ | EV_PERSIST, on_listen, ss);
		if (!ss->listen_event)
			r = err_set(err, ENOMEM, "out of memory");
	}
	if (r < 0) {
		store_server_close(ss);
		return r;
	}
	snprintf(ss->addr, sizeof(ss->addr), "%s", listener_addr(ss->listener) + strlen("tcp:"));
	*ret = ss;
	return 0;
}

void store_server_stop_listening(struct store_server *ss)
{
	if (!ss)
		return;
	if (ss->listen_event)
		event_free(ss->listen_event);
	ss->listen_event = NULL;
	ss->listener = listener_free(ss->listener);
}

struct store_server *store_server_close(struct store_server *ss)
{
	if (!ss)
		return NULL;
	store_server_stop_listening(ss);
	while (ss->peers)
		peer_free(ss->peers);
	virtual_close(ss);
	store_free(ss->store);
	if (ss->reserve >= 0)
		close(ss->reserve);
	free(ss);
	return NULL;
}

const char *store_server_addr(const struct store_server *ss)
{
	return ss->addr;
}

struct store_server_counts store_server_counts(const struct store_server *ss)
{
	return (struct store_server_counts){store_counts(ss->store), ss->n_invented};
}

/* --- time ------------------------------------------------------------------------------------ */

void store_server_look_again(struct store_server *ss)
{
	struct store_peer *p;

	if (!ss)
		return;
	DL_FOREACH2(ss->waiting, p, next_waiting)
	p->look_ns = 0;
	ss->env.loop->tick_ns = 0;
}

uint64_t store_server_tick(struct store_server *ss, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;
	struct store_peer *p, *next;

	/* in the order in which they came: those that are due stand in front */
	DL_FOREACH_SAFE2(ss->strangers, p, next, next_stranger)
	{
		if (now_ns < p->deadline_ns) {
			due_ns = p->deadline_ns;
			break;
		}
		peer_refuse(p, "said nothing within 5 s");
	}
	virtual_tick(ss, now_ns);
	DL_FOREACH2(ss->waiting, p, next_waiting)
	if (p->look_ns < due_ns)
		due_ns = p->look_ns;
	return due_ns;
}
