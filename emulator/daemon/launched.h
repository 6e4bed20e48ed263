/* Whether a real rank that has not come still has a process, as far as can be seen from here. torchrun's agent
 * starts its workers all at once, and one that has ended well never again alone: the others would wait for it
 * until their time is over. Nobody tells (of what nbox run started itself ended.h knows), so it is looked at
 * once somebody has waited for some seconds: the processes of this machine whose environment says that they
 * belong to the same job, agent, and rank. A rank counts as gone when two looks in a row, seconds apart, have
 * found no such process, no child of its process either, and nothing that could be one in disguise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct server;

struct launched {
	uint64_t next_ns;
	uint8_t *misses; /* owned; of cluster.real[i]: looks in a row that found no process; NULL before the first */
	uint32_t n_gone;
	pid_t agent;     /* in the last look */
};

/* Looks when it is time. On the loop: takes some microseconds for each process of the machine, at most every 4 s,
 * while somebody waits and a real rank has no link. */
void launched_tick(struct server *s, uint64_t now_ns);
bool launched_is_gone(const struct server *s, int64_t world_rank);
void launched_deinit(struct server *s);
