/* The root thread of one id: it collects the check-ins of all ranks, answers each with the table
 * of all ranks, and ends. It closes a connection that does not begin with the id's magic. When a
 * rank leaves before all have checked in, it ends the wait of the others. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "schedule/schedule.h"
#include "standins/nccl/boot-io.h"
#include "standins/nccl/boot-root.h"
#include "standins/nccl/debug.h"

struct guest {
	int fd;
	size_t has;
	bool is_in;
	struct boot_hello hello;
};

struct root {
	int listen_fd;
	uint64_t magic;
	uint32_t n_ranks; /* 0: nobody has come */
	uint32_t n_in;
	struct guest **guests;
	struct pollfd *fds; /* the listener, then one for each guest */
	size_t n_guests, size;
	bool is_over;
};

static void root_drop(struct root *r, size_t i)
{
	close(r->guests[i]->fd);
	free(r->guests[i]);
	r->guests[i] = r->guests[--r->n_guests];
}

static void guest_answer(const struct root *r, const struct guest *g, ncclResult_t code,
			 const char *text)
{
	struct boot_reply reply;

	memset(&reply, 0, sizeof(reply));
	reply.magic = r->magic;
	reply.code = code;
	snprintf(reply.text, sizeof(reply.text), "%s", text);
	boot_write(g->fd, &reply, sizeof(reply), 1000);
}

static void root_refuse_all(struct root *r, ncclResult_t code, const char *text)
{
	size_t i;

	for (i = 0; i < r->n_guests; i++) {
		if (r->guests[i]->is_in)
			guest_answer(r, r->guests[i], code, text);
	}
	r->is_over = true;
}

static void root_publish(struct root *r)
{
	struct boot_reply reply;
	struct peer_info *table = calloc(r->n_ranks, sizeof(*table));
	size_t i;

	memset(&reply, 0, sizeof(reply));
	if (!table || boot_random(reply.comm_magic, sizeof(reply.comm_magic))) {
		free(table);
		root_refuse_all(r, ncclSystemError, "the root is out of memory");
		return;
	}
	reply.magic = r->magic;
	reply.n_ranks = r->n_ranks;
	for (i = 0; i < r->n_guests; i++) {
		if (r->guests[i]->is_in)
			table[r->guests[i]->hello.info.rank] = r->guests[i]->hello.info;
	}
	for (i = 0; i < r->n_guests; i++) {
		if (!r->guests[i]->is_in)
			continue;
		if (!boot_write(r->guests[i]->fd, &reply, sizeof(reply), 10000))
			boot_write(r->guests[i]->fd, table, r->n_ranks * sizeof(*table), 10000);
	}
	free(table);
	r->is_over = true;
}

/* Return: false: this guest is to be dropped. */
static bool root_check_in(struct root *r, struct guest *g)
{
	const struct peer_info *p = &g->hello.info;
	char text[200];
	size_t i;

	text[0] = 0;
	if (g->hello.version != BOOT_VERSION)
		snprintf(text, sizeof(text), "another version of host NCCL made this id");
	else if (!p->n_ranks || p->rank >= p->n_ranks || p->n_ranks > SCHED_MAX_RANKS)
		snprintf(text, sizeof(text), "rank %u of %u ranks", p->rank, p->n_ranks);
	else if (r->n_ranks && p->n_ranks != r->n_ranks)
		snprintf(text, sizeof(text), "rank %u says nranks is %u, others said %u", p->rank,
			 p->n_ranks, r->n_ranks);
	for (i = 0; i < r->n_guests && !text[0]; i++) {
		if (r->guests[i]->is_in && r->guests[i]->hello.info.rank == p->rank)
			snprintf(text, sizeof(text), "rank %u checked in twice", p->rank);
	}
	if (text[0]) {
		guest_answer(r, g, ncclInvalidUsage, text);
		root_refuse_all(r, ncclInvalidUsage, text);
		return false;
	}
	r->n_ranks = p->n_ranks;
	g->is_in = true;
	if (++r->n_in == r->n_ranks)
		root_publish(r);
	return true;
}

/* Return: false: this guest is to be dropped. */
static bool root_read(struct root *r, struct guest *g)
{
	ssize_t n;
	char c;

	if (g->is_in) { /* it has nothing more to say: it is gone */
		char text[100];

		n = recv(g->fd, &c, 1, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		g->is_in = false;
		snprintf(text, sizeof(text), "rank %u left before all ranks had checked in",
			 g->hello.info.rank);
		root_refuse_all(r, ncclRemoteError, text);
		return false;
	}
	n = recv(g->fd, (char *)&g->hello + g->has, sizeof(g->hello) - g->has, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	g->has += (size_t)n;
	if (g->has >= sizeof(g->hello.magic) && g->hello.magic != r->magic)
		return false;
	if (g->has < sizeof(g->hello))
		return true;
	if (g->hello.command == BOOT_DISMISS) {
		root_refuse_all(r, ncclRemoteError,
				"a rank gave up before all ranks had checked in");
		return false;
	}
	return root_check_in(r, g);
}

static void root_accept(struct root *r)
{
	CLEANUP(closep) int fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct guest *g;

	if (fd < 0)
		return;
	if (r->n_guests + 1 >= r->size) {
		size_t size = r->size ? 2 * r->size : 16;
		void *guests = realloc(r->guests, size * sizeof(*r->guests));
		void *fds;

		if (!guests)
			return;
		r->guests = guests;
		fds = realloc(r->fds, size * sizeof(*r->fds));
		if (!fds)
			return;
		r->fds = fds;
		r->size = size;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return;
	g->fd = steal_fd(&fd);
	r->guests[r->n_guests++] = g;
}

static void *root_thread(void *arg)
{
	struct root *r = arg;
	size_t i, n;

	while (!r->is_over) {
		n = r->n_guests;
		r->fds[0] = (struct pollfd){.fd = r->listen_fd, .events = POLLIN};
		for (i = 0; i < n; i++)
			r->fds[i + 1] = (struct pollfd){.fd = r->guests[i]->fd, .events = POLLIN};
		if (poll(r->fds, n + 1, -1) < 0)
			continue;
		for (i = n; i-- > 0 && !r->is_over;) {
			if (r->fds[i + 1].revents && !root_read(r, r->guests[i]))
				root_drop(r, i);
		}
		if (!r->is_over && r->fds[0].revents)
			root_accept(r);
	}
	while (r->n_guests)
		root_drop(r, r->n_guests - 1);
	close(r->listen_fd);
	free(r->guests);
	free(r->fds);
	free(r);
	return NULL;
}

ncclResult_t boot_root_start(int listen_fd, uint64_t magic)
{
	struct root *r = calloc(1, sizeof(*r));
	pthread_attr_t attr;
	pthread_t t;
	int e = ENOMEM;

	if (r) {
		r->listen_fd = listen_fd;
		r->magic = magic;
		r->size = 16;
		r->guests = calloc(r->size, sizeof(*r->guests));
		r->fds = calloc(r->size, sizeof(*r->fds));
	}
	if (r && r->guests && r->fds) {
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		e = pthread_create(&t, &attr, root_thread, r);
		pthread_attr_destroy(&attr);
		if (!e)
			return ncclSuccess;
	}
	if (r) {
		free(r->guests);
		free(r->fds);
	}
	free(r);
	close(listen_fd);
	return fail(ncclSystemError, "cannot start the root thread: %s", strerror(e));
}
