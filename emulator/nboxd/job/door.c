/* See door.h. */
#include "nboxd/job/door.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/peer.h"
#include "nboxd/job/proc-env.h"
#include "nboxd/loop/loop.h"
#include "nboxd/loop/warn.h"

#define KNOCK_S 5     /* from connecting to having named its process */
#define REFUSE_MS 300 /* door_refuse() waits so long for one more */
#define BACKLOG 4096  /* workers of a node, and more */

static socklen_t address(const char *name, struct sockaddr_un *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(ret->sun_path + 1));
}

int door_bind(const char *name)
{
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a;
	socklen_t len = address(name, &a);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || listen(fd, BACKLOG))
		return -errno;
	return steal_fd(&fd);
}

int door_connect(const char *name, struct err *err)
{
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	socklen_t len = address(name, &a);
	int r;

	if (fd < 0)
		return err_set(err, errno, "socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&a, len))
		return err_set(err, errno, "@%s: %s", name, strerror(errno));
	r = peer_check(fd, err);
	if (r < 0)
		return err_prefix(err, r, "the socket @%s", name);
	return steal_fd(&fd);
}

/* --- workers -------------------------------------------------------------------------- */

/* It will make no communicator any more. */
static bool has_ended(const struct door_worker *w)
{
	struct pollfd p = {.fd = w->pid_fd, .events = POLLIN};

	if (w->has_left)
		return true;
	if (w->pid_fd < 0)
		return kill(w->pid, 0) < 0 && errno == ESRCH;
	return poll(&p, 1, 0) == 1;
}

bool door_is_deserted(const struct door *d)
{
	for (size_t i = 0; i < d->n_workers; i++)
		if (!has_ended(&d->workers[i]))
			return false;
	return true;
}

void door_on_bye(struct door *d, pid_t pid)
{
	for (size_t i = 0; i < d->n_workers; i++)
		if (d->workers[i].pid == pid)
			d->workers[i].has_left = true;
}

static int add(struct door *d, const struct door_knock *k)
{
	struct door_worker *list = realloc(d->workers, (d->n_workers + 1) * sizeof(*list)), *w;

	if (!list)
		return -ENOMEM;
	d->workers = list;
	w = &list[d->n_workers++];
	*w = (struct door_worker){.rank = k->rank,
				  .pid = k->pid,
				  .pid_fd = (int)syscall(SYS_pidfd_open, k->pid, 0)};
	if (w->pid_fd >= 0)
		w->end_event = loop_watch(d->loop, w->pid_fd, EV_READ, loop_on_wake, d);
	return 0;
}

/* Into @text, behind the first byte. Return: DOOR_COME: it is one of this job's workers, and is on
 * the list. */
static enum door_answer judge(struct door *d, const struct door_knock *k, char *text, size_t size)
{
	bool is_known = false;

	if (k->pid_namespace != proc_namespace()) {
		snprintf(
			text, size,
			"another job with the same variables runs under nboxd (pid %d there) in another container (pid "
			"namespace) of this host",
			(int)getpid());
		return DOOR_WAIT;
	}
	for (size_t i = 0; i < d->n_workers; i++) {
		const struct door_worker *w = &d->workers[i];

		is_known = is_known || (w->pid == k->pid && w->rank == k->rank);
		if (has_ended(w))
			snprintf(
				text, size,
				"the nboxd (pid %d) of a job with the same variables, whose rank %d (pid %d) has "
				"ended, is still there",
				(int)getpid(), (int)w->rank, (int)w->pid);
		else if (w->rank == k->rank && w->pid != k->pid)
			snprintf(
				text, size,
				"another job with the same variables runs under nboxd (pid %d): its rank %d is "
				"pid %d",
				(int)getpid(), (int)w->rank, (int)w->pid);
		else
			continue;
		return DOOR_WAIT;
	}
	if (is_known || add(d, k) == 0)
		return DOOR_COME;
	snprintf(text, size, "nboxd is out of memory");
	return DOOR_WAIT;
}

/* --- the loop's callbacks --------------------------------------------------------------- */

/* A helper that has connected, and has not named its process yet. */
struct door_guest {
	struct door *door;
	int fd;              /* owned */
	struct event *event; /* owned; NULL allowed */
	struct door_guest *prev, *next;
};

static void guest_free(struct door_guest *g)
{
	DL_DELETE(g->door->guests, g);
	if (g->event)
		event_free(g->event);
	close(g->fd);
	free(g);
}

static void on_knock(evutil_socket_t fd, short what, void *ctx)
{
	struct door_guest *g = ctx;
	struct door *d = g->door;
	char why[400];
	struct door_knock k;
	enum door_answer answer;

	if ((what & EV_READ) && recv(fd, &k, sizeof(k), MSG_DONTWAIT) == sizeof(k) &&
	    k.magic == DOOR_MAGIC) {
		answer = judge(d, &k, why + 1, sizeof(why) - 1);
		why[0] = (char)answer;
		if (answer == DOOR_COME)
			send(fd, d->text, d->n_text, MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			send(fd, why, strlen(why), MSG_DONTWAIT | MSG_NOSIGNAL);
		log_info("rank %d (pid %d) is at the door: %s", (int)k.rank, (int)k.pid,
			 answer == DOOR_COME ? "comes in" : why + 1);
	}
	guest_free(g);
}

static void on_guest(evutil_socket_t listening, short what, void *ctx)
{
	const struct timeval patience = {.tv_sec = KNOCK_S};
	CLEANUP(closep) int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct door_guest *g = NULL;
	struct door *d = ctx;
	struct err err = {""};

	(void)what;
	if (fd < 0)
		return;
	if (peer_check(fd, &err) < 0) {
		warn_stranger("somebody knocked: %s", err.text);
		return;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return;
	g->door = d;
	g->fd = steal_fd(&fd);
	DL_APPEND(d->guests, g);
	g->event = event_new(d->loop->base, g->fd, EV_READ, on_knock, g);
	if (!g->event || event_add(g->event, &patience) < 0)
		guest_free(g);
}

/* --- life ------------------------------------------------------------------------------- */

int door_open(struct door *d, struct loop *loop, int fd, const char *text, size_t n)
{
	d->loop = loop;
	d->fd = fd;
	d->text[0] = DOOR_COME;
	memcpy(d->text + 1, text, n);
	d->n_text = n + 1;
	d->event = loop_watch(loop, fd, EV_READ | EV_PERSIST, on_guest, d);
	return d->event ? 0 : -ENOMEM;
}

void door_close(struct door *d)
{
	if (d->event) {
		event_free(d->event);
		close(d->fd);
	}
	d->event = NULL;
	while (d->guests)
		guest_free(d->guests);
	for (size_t i = 0; i < d->n_workers; i++) {
		if (d->workers[i].end_event)
			event_free(d->workers[i].end_event);
		closep(&d->workers[i].pid_fd);
	}
	free(d->workers);
	d->workers = NULL;
	d->n_workers = 0;
}

void door_refuse(int fd, const char *why)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char text[ERR_TEXT_MAX + 1];

	snprintf(text, sizeof(text), "%c%s", DOOR_FAILED, why);
	while (poll(&p, 1, REFUSE_MS) == 1) {
		int guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (guest < 0)
			break;
		if (peer_check(guest, NULL) == 0)
			send(guest, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
		close(guest);
	}
	close(fd);
}
