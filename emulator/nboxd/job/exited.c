/* See ended.h. */
#include "nboxd/job/exited.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "nboxd/server.h"

static int16_t *code_of(const struct server *s, int64_t world_rank)
{
	for (size_t i = 0; s->ended.codes && i < s->cluster.n_real; i++)
		if (s->cluster.real[i] == world_rank)
			return &s->ended.codes[i];
	return NULL;
}

static void on_told(evutil_socket_t fd, short what, void *ctx)
{
	struct server *s = ctx;
	char text[32];
	unsigned int rank, exit_code;
	int16_t *code;
	ssize_t n;

	(void)what;
	while ((n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0) {
		text[n] = '\0';
		code = sscanf(text, "%u %u", &rank, &exit_code) == 2 ? code_of(s, rank) : NULL;
		if (!code || *code != ENDED_NOT || exit_code > 255)
			continue;
		*code = (int16_t)exit_code;
		s->ended.n++;
		s->tick_ns = 0; /* who waits for it is looked at */
		log_info("the process of rank %u has ended with exit code %u", rank, exit_code);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		event_del(s->ended.event); /* nbox has gone */
}

int ended_watch(struct server *s, int fd)
{
	s->ended.fd = fd;
	s->ended.event = event_new(s->base, fd, EV_READ | EV_PERSIST, on_told, s);
	s->ended.codes = malloc(s->cluster.n_real * sizeof(*s->ended.codes));
	if (!s->ended.event || !s->ended.codes || event_add(s->ended.event, NULL) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->cluster.n_real; i++)
		s->ended.codes[i] = ENDED_NOT;
	return 0;
}

void ended_close(struct server *s)
{
	if (!s->ended.event && !s->ended.codes)
		return;
	if (s->ended.event)
		event_free(s->ended.event);
	close(s->ended.fd);
	free(s->ended.codes);
	s->ended = (struct ended){0};
}

int ended_code(const struct server *s, int64_t world_rank)
{
	const int16_t *code = s->ended.n ? code_of(s, world_rank) : NULL;

	return code ? *code : ENDED_NOT;
}

bool ended_is(const struct server *s, int64_t world_rank, uint64_t since_ns)
{
	return ended_code(s, world_rank) != ENDED_NOT || launched_is_gone(s, world_rank, since_ns);
}

char *ended_text(const struct server *s, int64_t world_rank, char *buf, size_t size)
{
	int code = ended_code(s, world_rank);

	if (code != ENDED_NOT)
		snprintf(buf, size, "has ended with exit code %d", code);
	else
		snprintf(buf, size, "has ended (its launcher, pid %d, has none for it any more)",
			 (int)s->launched.agent);
	return buf;
}
