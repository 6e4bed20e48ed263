/* See exited.h. */
#include "nboxd/job/exited.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "members/members.h"
#include "nboxd/job/players.h"
#include "nboxd/loop/loop.h"

static void on_exit_told(evutil_socket_t fd, short what, void *ctx)
{
	struct exited *e = ctx;
	unsigned int rank, exit_code;
	char text[32];
	ssize_t n;

	(void)what;
	while ((n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0) {
		int i;

		text[n] = '\0';
		if (sscanf(text, "%u %u", &rank, &exit_code) != 2 || exit_code > 255)
			continue;
		i = players_index(e->players, rank);
		if (i < 0 || e->codes[i] != EXITED_NOT)
			continue;
		e->codes[i] = (int16_t)exit_code;
		e->n++;
		e->loop->tick_ns = 0; /* those who wait for it are looked at */
		log_info("the process of rank %u has ended with exit code %u", rank, exit_code);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		event_del(e->event); /* nbox has gone */
}

int exited_watch(struct exited *e, struct loop *loop, const struct players *players, int fd)
{
	size_t n = players->cluster->n_real;

	*e = (struct exited){.loop = loop, .players = players, .fd = fd};
	e->codes = malloc(n * sizeof(*e->codes));
	for (size_t i = 0; e->codes && i < n; i++)
		e->codes[i] = EXITED_NOT;
	e->event = loop_watch(loop, fd, EV_READ | EV_PERSIST, on_exit_told, e);
	return e->event && e->codes ? 0 : -ENOMEM;
}

void exited_close(struct exited *e)
{
	if (e->event) {
		event_free(e->event);
		close(e->fd);
	}
	free(e->codes);
	*e = (struct exited){0};
}

int exited_code(const struct exited *e, int64_t world_rank)
{
	int i = e->n ? players_index(e->players, world_rank) : -1;

	return i >= 0 ? e->codes[i] : EXITED_NOT;
}
