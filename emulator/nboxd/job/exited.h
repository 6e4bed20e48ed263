/* Real ranks whose process has ended for good, as `nbox run` tells over a socket: it started
 * them itself, one process a rank, and starts none again. (What a launcher such as torchrun
 * started may come again; of that nobody tells.) Who waits for such a rank is told at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct server;

struct ended {
	struct event *event; /* owned; NULL: nobody tells */
	int fd;
	int16_t *codes; /* owned; of config->real[i]; ENDED_NOT */
	uint32_t n;     /* how many have ended */
};

#define ENDED_NOT (-1)

/* Is told at @fd from now on, which is ours then: a datagram each, "RANK CODE", the world rank and
 * the exit code of a shell. Return: 0; -ENOMEM. */
int ended_watch(struct server *s, int fd);
void ended_close(struct server *s);
/* Return: the exit code of the process that played @world_rank, as was told; ENDED_NOT. */
int ended_code(const struct server *s, int64_t world_rank);
/* Has it ended, as was told or is seen by one who waits since @since_ns (launched.h)? */
bool ended_is(const struct server *s, int64_t world_rank, uint64_t since_ns);
/* "has ended with exit code 3". Return: @buf. */
char *ended_text(const struct server *s, int64_t world_rank, char *buf, size_t size);
#define ENDED_TEXT_MAX 128
