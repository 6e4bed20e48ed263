/* See link.h. */
#include "bootstrap/serve/link.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "bootstrap/serve/address.h"

#define PIECES_A_TURN 4 /* then the others have their turn */
#define SAID_BYTES 12   /* the magic, and what the connection is for */
#define OUST_LOOKS 64   /* at that many silent ones */

static void on_in(evutil_socket_t fd, short what, void *ctx);
static void on_out(evutil_socket_t fd, short what, void *ctx);

/* --- life and end ------------------------------------------------------------------ */

static void set_silent(struct serve_link *l, bool is_silent)
{
	struct bootstrap_serve *s = l->serve;

	if (l->is_silent)
		DL_DELETE2(s->silent, l, prev_silent, next_silent);
	l->is_silent = is_silent;
	if (!is_silent)
		return;
	l->silent_until_ns = clock_now_ns() + s->limits.silence_ns;
	DL_APPEND2(s->silent, l, prev_silent, next_silent);
	if (l == s->silent)
		links_arm(s, l->silent_until_ns);
}

static void close_socket(struct serve_link *l)
{
	set_silent(l, false);
	if (l->on_in)
		event_free(l->on_in);
	if (l->on_out)
		event_free(l->on_out);
	l->on_in = l->on_out = NULL;
	if (l->fd >= 0) {
		close(l->fd);
		l->serve->n_open--;
	}
	l->fd = -1;
	free(l->rest);
	l->rest = NULL;
}

static void link_free(struct serve_link *l)
{
	struct bootstrap_serve *s = l->serve;

	close_socket(l);
	if (l->is_queued)
		DL_DELETE2(s->queued, l, prev_queued, next_queued);
	DL_DELETE(s->links, l);
	free(l);
}

/* Nobody is to come in at @l's port any more. */
static void close_port(struct serve_link *l)
{
	struct serve_link *guest, *next;

	DL_FOREACH_SAFE(l->serve->links, guest, next)
		if (guest->port == l->port && guest != l)
			link_free(guest);
	l->port = port_free(l->port);
}

/* It is hung up, and the machine's connection goes with it. */
static void link_end(struct serve_link *l)
{
	struct bootstrap_conn *conn = l->conn;

	if (l->port)
		close_port(l);
	link_free(l);
	bootstrap_conn_closed(conn);
}

/* Its socket is of no use any more. The machine will hang up, if it has not. */
static void link_broke(struct serve_link *l, int error)
{
	if (!l->conn) {
		link_free(l);
	} else if (l->is_hung_up) {
		link_end(l);
	} else {
		close_socket(l);
		bootstrap_conn_ended(l->conn, error);
	}
}

static struct serve_link *link_new(struct bootstrap_serve *s)
{
	struct serve_link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->serve = s;
	l->fd = -1;
	DL_APPEND(s->links, l);
	return l;
}

/* Return: 0; -ENOMEM. @fd is @l's in any case. */
static int link_open(struct serve_link *l, int fd)
{
	int on = 1;

	l->fd = fd;
	l->serve->n_open++;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	l->on_in = event_new(l->serve->env.base, fd, EV_READ | EV_PERSIST, on_in, l);
	l->on_out = event_new(l->serve->env.base, fd, EV_WRITE, on_out, l);
	return l->on_in && l->on_out ? 0 : -ENOMEM;
}

void link_refused(void *serve, const char *from, const char *why)
{
	struct bootstrap_serve *s = serve;
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "bootstrap: a connection from %s was refused: %s",
		 from, why);
	if (s->told.refused)
		s->told.refused(s->told_ctx, sentence);
}

/* Owns @fd. Return: 0; -ENOMEM. */
static int link_accepted(struct bootstrap_serve *s, struct serve_port *port, int fd)
{
	struct serve_link *l = link_new(s);

	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	if (link_open(l, fd) < 0 || event_add(l->on_in, NULL) < 0) {
		link_free(l);
		return -ENOMEM;
	}
	if (port->link) {
		l->port = port;
	} else {
		l->conn = bootstrap_conn_accepted(s->machine, port->number);
		if (!l->conn) {
			link_free(l);
			return -ENOMEM;
		}
		bootstrap_conn_set_sink(l->conn, l);
	}
	set_silent(l, true);
	return 0;
}

/* Ends one that has said nothing, to make room. Return: whether there was one. */
static bool oust_silent(struct bootstrap_serve *s)
{
	struct serve_link *l;
	int n = 0;
	char byte;

	DL_FOREACH2(s->silent, l, next_silent)
	{
		/* what can be read has said something, and its turn comes */
		if (!l->is_dialling && recv(l->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
		    errno == EAGAIN) {
			link_broke(l, ETIMEDOUT);
			return true;
		}
		if (++n >= OUST_LOOKS)
			return false;
	}
	return false;
}

void link_taken(void *serve, struct serve_port *port, int fd,
		const uint8_t from[NCCL_ADDRESS_BYTES])
{
	struct bootstrap_serve *s = serve;
	char text[ADDRESS_TEXT_MAX];

	address_text(from, text, sizeof(text));
	if (s->n_open >= s->limits.n_connections && !oust_silent(s)) {
		close(fd);
		link_refused(s, text,
			     "as many as are allowed are open, and all have said what they want");
	} else if (link_accepted(s, port, fd) < 0) {
		link_refused(s, text, "out of memory");
	}
}

int link_await(struct bootstrap_serve *s, struct bootstrap_conn *conn, struct serve_port *port)
{
	struct serve_link *l = link_new(s);

	if (!l)
		return -ENOMEM;
	l->conn = conn;
	l->port = port;
	port->link = l;
	bootstrap_conn_set_sink(conn, l);
	return 0;
}

int link_dial(struct bootstrap_serve *s, struct bootstrap_conn *conn,
	      const uint8_t address[NCCL_ADDRESS_BYTES], struct err *err)
{
	struct sockaddr_storage a = {0};
	socklen_t len = address_len(address);
	char text[ADDRESS_TEXT_MAX];
	struct serve_link *l;
	int fd, on = 1, r = 0;

	address_text(address, text, sizeof(text));
	if (!len)
		return err_set(err, EAFNOSUPPORT, "bootstrap: a rank told %s, no address of IP",
			       text);
	memcpy(&a, address, len);
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, errno, "bootstrap: no socket to reach %s: %s%s", text,
			       strerror(errno),
			       errno == EMFILE || errno == ENFILE ? "; raise ulimit -n" : "");
	/* each message is a connection: ports of those that have ended must not keep ports from new
	 * listeners */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	l = link_new(s);
	if (!l) {
		close(fd);
		return err_set(err, ENOMEM, "bootstrap: out of memory");
	}
	/* whether it went well on_out() hears, also of a connection that was there at once */
	if (link_open(l, fd) < 0 || event_add(l->on_out, NULL) < 0)
		r = err_set(err, ENOMEM, "bootstrap: out of memory");
	else if (connect(fd, (const struct sockaddr *)&a, len) < 0 && errno != EINPROGRESS)
		r = err_set(err, errno, "bootstrap: cannot connect to %s: %s", text,
			    strerror(errno));
	if (r < 0) {
		link_free(l);
		return r;
	}
	l->conn = conn;
	l->is_dialling = true;
	bootstrap_conn_set_sink(conn, l);
	set_silent(l, true);
	return 0;
}

/* --- out --------------------------------------------------------------------------- */

enum flushed {
	FLUSHED_ALL,
	FLUSHED_SOME, /* the socket has no room, or others want their turn */
	FLUSHED_ENDED /* @l may be gone */
};

/* Sends @n bytes and keeps what the socket does not take. Return: errno. */
static int send_piece(struct serve_link *l, const uint8_t *bytes, size_t n)
{
	ssize_t k = send(l->fd, bytes, n, MSG_NOSIGNAL);
	size_t n_sent = k < 0 ? 0 : (size_t)k;

	if (k < 0 && errno != EAGAIN && errno != EINTR)
		return errno;
	if (n_sent < n && bytes == l->serve->scratch) {
		l->rest = malloc(n - n_sent);
		if (!l->rest)
			return ENOMEM;
		memcpy(l->rest, bytes + n_sent, n - n_sent);
		l->at_rest = 0;
		l->n_rest = n - n_sent;
	} else if (bytes != l->serve->scratch) {
		l->at_rest += n_sent;
		l->n_rest -= n_sent;
		if (!l->n_rest) {
			free(l->rest);
			l->rest = NULL;
		}
	}
	return 0;
}

static enum flushed flush(struct serve_link *l)
{
	struct bootstrap_serve *s = l->serve;
	int error = 0;

	for (int i = 0; i < PIECES_A_TURN && !error; i++) {
		if (!l->rest) {
			size_t n = bootstrap_conn_out(l->conn, s->scratch, sizeof(s->scratch));

			if (n == 0)
				return FLUSHED_ALL;
			error = send_piece(l, s->scratch, n);
		} else {
			error = send_piece(l, l->rest + l->at_rest, l->n_rest);
		}
		if (l->rest)
			break;
	}
	if (!error && event_add(l->on_out, NULL) == 0)
		return FLUSHED_SOME;
	link_broke(l, error ? error : ENOMEM);
	return FLUSHED_ENDED;
}

/* What there is to do now: to send, to read on, to end. */
static void go_on(struct serve_link *l)
{
	enum flushed f;

	if (l->is_hung_up && (l->is_hung_up_now || l->fd < 0)) {
		link_end(l);
		return;
	}
	if (l->fd < 0 || l->is_dialling)
		return;
	f = flush(l);
	if (f == FLUSHED_ENDED)
		return;
	if (l->is_hung_up && f == FLUSHED_ALL)
		link_end(l);
	else if (l->is_hung_up || l->is_at_eof)
		event_del(l->on_in);
	else if (bootstrap_conn_room(l->conn) && event_add(l->on_in, NULL) < 0)
		link_broke(l, ENOMEM);
}

static void on_out(evutil_socket_t fd, short what, void *ctx)
{
	struct serve_link *l = ctx;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)what;
	if (l->is_dialling) {
		l->is_dialling = false;
		set_silent(l, false);
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	}
	if (error)
		link_broke(l, error);
	else
		go_on(l);
}

/* --- in ---------------------------------------------------------------------------- */

/* Guest @l has said the magic of the link that its port waits for: it is that link. */
static void become(struct serve_link *l)
{
	struct serve_link *awaited = l->port->link;

	if (awaited->is_hung_up) {
		link_free(l);
		return;
	}
	l->port = NULL;
	l->conn = awaited->conn;
	bootstrap_conn_set_sink(l->conn, l);
	close_port(awaited);
	link_free(awaited);
	bootstrap_conn_in(l->conn, l->magic, sizeof(l->magic));
	link_queue(l);
}

static void guest_in(struct serve_link *l)
{
	struct bootstrap_serve *s = l->serve;
	ssize_t n = recv(l->fd, l->magic + l->n_heard, sizeof(l->magic) - l->n_heard, 0);
	uint64_t magic;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		link_free(l);
		return;
	}
	l->n_heard += (size_t)n;
	if (l->n_heard < sizeof(l->magic))
		return;
	memcpy(&magic, l->magic, sizeof(magic));
	if (bootstrap_conn_awaits(l->port->link->conn, magic)) {
		become(l);
	} else {
		if (s->told.refused)
			s->told.refused(s->told_ctx,
					"bootstrap: a connection to a real rank's own port "
					"was refused: it is of another communicator");
		link_free(l);
	}
}

static void on_in(evutil_socket_t fd, short what, void *ctx)
{
	struct serve_link *l = ctx;
	size_t room;
	ssize_t n;

	(void)what;
	if (!l->conn) {
		guest_in(l);
		return;
	}
	room = bootstrap_conn_room(l->conn);
	if (room > LINK_PIECE_BYTES)
		room = LINK_PIECE_BYTES;
	if (!room || l->is_hung_up) { /* go_on() lets it read on */
		event_del(l->on_in);
		return;
	}
	n = recv(fd, l->serve->scratch, room, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		link_broke(l, errno);
	} else if (n == 0) {
		l->is_at_eof = true;
		set_silent(l, false);
		event_del(l->on_in);
		bootstrap_conn_ended(l->conn, 0);
	} else {
		l->n_heard += l->is_silent ? (size_t)n : 0;
		if (l->n_heard >= SAID_BYTES)
			set_silent(l, false);
		bootstrap_conn_in(l->conn, l->serve->scratch, (size_t)n);
	}
}

/* --- all of them ------------------------------------------------------------------- */

void link_queue(struct serve_link *l)
{
	struct bootstrap_serve *s = l->serve;

	if (l->is_queued)
		return;
	l->is_queued = true;
	DL_APPEND2(s->queued, l, prev_queued, next_queued);
	event_active(s->turn, 0, 0);
}

void links_turn(struct bootstrap_serve *s)
{
	/* those that are queued meanwhile have the next turn */
	struct serve_link *l, *last = s->queued ? s->queued->prev_queued : NULL;
	bool is_last = !last;

	while (!is_last && s->queued) {
		l = s->queued;
		is_last = l == last;
		DL_DELETE2(s->queued, l, prev_queued, next_queued);
		l->is_queued = false;
		go_on(l);
	}
	if (s->queued)
		event_active(s->turn, 0, 0);
}

void links_arm(struct bootstrap_serve *s, uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns(),
		 us = until_ns > now_ns ? (until_ns - now_ns) / 1000 + 1 : 0;
	struct timeval t = {.tv_sec = (time_t)(us / 1000000),
			    .tv_usec = (suseconds_t)(us % 1000000)};

	event_add(s->clock, &t);
}

void links_tick(struct bootstrap_serve *s)
{
	while (s->silent && s->silent->silent_until_ns <= clock_now_ns())
		link_broke(s->silent, ETIMEDOUT);
	if (s->silent)
		links_arm(s, s->silent->silent_until_ns);
}

void links_close(struct bootstrap_serve *s)
{
	while (s->links) {
		s->links->port = s->links->conn ? port_free(s->links->port) : NULL;
		link_free(s->links);
	}
}
