/* Whether a real rank that has not come still has a process, as far as can be seen from here.
 * torchrun's agent starts its workers all at once, and one that has ended well never again alone:
 * the others would wait for it until their time is over. Nobody tells (of what nbox run started
 * itself ended.h knows), so it is looked at once somebody has waited for some seconds: the
 * processes of this machine whose environment says that they belong to the same agent and rank. A
 * rank counts as gone when two looks, seconds apart and none between that found one, have found no
 * such process, no child of it either, and nothing that could be one in disguise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct server;

struct launched {
	uint64_t next_ns;
	struct launched_misses {
		uint32_t n;
		uint64_t first_ns;
	} * misses; /* owned; of cluster.real[i]: looks that found no process; NULL before the first
		     */
	uint32_t n_gone;
	pid_t agent; /* in the last look */
};

/* Looks when it is time. On the loop: takes some microseconds for each process of the machine, at
 * most every 4 s, while somebody waits and a real rank has no link. */
void launched_tick(struct server *s, uint64_t now_ns);
/* For who waits since @since_ns: what was seen before may have been of workers that were started
 * anew since. */
bool launched_is_gone(const struct server *s, int64_t world_rank, uint64_t since_ns);
void launched_deinit(struct server *s);
