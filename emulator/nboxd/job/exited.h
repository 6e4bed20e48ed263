/* Real ranks whose process has ended for good, as `nbox run` tells over a socket: it started
 * them itself, one process a rank, and starts none again. (A launcher such as torchrun may start
 * its processes again, and tells nobody: see processes.h.) */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct event;
struct loop;
struct players;

struct exited {
	struct loop *loop;             /* borrowed */
	const struct players *players; /* borrowed */
	struct event *event;           /* owned; NULL: nobody tells */
	int fd;                        /* owned, while event is there */
	int16_t *codes;                /* owned; by number of the real rank; EXITED_NOT */
	uint32_t n;                    /* how many have ended */
};

#define EXITED_NOT (-1)

/* @fd, ours from now on, carries datagrams "RANK CODE": the world rank, and the exit code of a
 * shell. Return: 0; -ENOMEM. */
int exited_watch(struct exited *e, struct loop *loop, const struct players *players, int fd);
void exited_close(struct exited *e); /* a zeroed struct is allowed */
/* The exit code of the process that played @world_rank; EXITED_NOT. */
int exited_code(const struct exited *e, int64_t world_rank);
