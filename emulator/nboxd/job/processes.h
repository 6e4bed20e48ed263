/* Whether a real rank that has not come still has a process, as far as nboxd knows or can see.
 *
 * Of the processes that `nbox run` has started, it tells (exited.h). torchrun's agent tells nobody:
 * it starts its workers all at once, and never starts one that has ended well again alone, so the
 * others would wait for that one until their time is over. nboxd therefore looks, once somebody has
 * waited for some seconds, at the processes of this machine whose environment says that they belong
 * to the same agent and rank. A rank counts as gone when two looks, seconds apart and none between
 * that found one, have found no such process, no child of it either, and nothing that could be one
 * in disguise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct exited;
struct players;

struct processes_sink {
	/* A process of the job on this machine; 0: none. */
	pid_t (*somebody)(void *ctx);
	/* Since when the oldest wait is; UINT64_MAX: nobody waits. */
	uint64_t (*waits_since_ns)(void *ctx);
};

struct processes {
	const struct processes_sink *sink; /* borrowed */
	void *ctx;                         /* borrowed: the sink's */
	const struct players *players;     /* borrowed */
	const struct exited *exited;       /* borrowed */
	uint32_t gpus_per_node;
	uint64_t next_ns;
	struct processes_misses {
		uint32_t n;
		uint64_t first_ns;
	} * misses; /* owned; by number of the real rank: looks that found no process; NULL before
		     * the first */
	uint32_t n_gone;
	pid_t agent; /* in the last look */
};

/* Looks when it is time. On the loop: takes some microseconds for each process of the machine, at
 * most every 4 s, while somebody waits and a real rank has no link. */
void processes_tick(struct processes *p, uint64_t now_ns);
/* Has the process of @world_rank ended, as was told, or was seen since @since_ns? An earlier look
 * may have been of workers that were started anew since. */
bool processes_ended(const struct processes *p, int64_t world_rank, uint64_t since_ns);
/* Has any? */
bool processes_any_ended(const struct processes *p);
/* "has ended with exit code 3". Return: @buf. */
char *processes_ended_text(const struct processes *p, int64_t world_rank, char *buf, size_t size);
#define PROCESSES_TEXT_MAX 128
void processes_deinit(struct processes *p);
