/* The job's own list of who is in the communicator that it is making. NCCL is never told,
 * but PyTorch, in this same process, keeps it: asked through Python's documented C interface,
 * found at run time, when there is a Python here and torch.distributed is loaded.
 *
 * Only looks, and only with Python's interpreter lock, which it waits for no longer than
 * JOB_RANKS_WAIT_NS: a thread of the job may keep it while it waits for this very communicator.
 * Not asked is where the calling thread holds the lock itself, and with NBOX_ASK_PYTHON=0. */
#pragma once

#include <stdint.h>

#include "wire/wire.h"

/* Long beside any step of Python that holds the lock, on a busy machine too; short beside the
 * patience of the job's other ranks. Once in a process: see job-ranks.c. */
#define JOB_RANKS_WAIT_NS UINT64_C(5000000000)

/**
 * job_ranks - the world ranks of the communicator that the calling thread is making
 * @n_ranks: how many; 0: not known (a split)
 * @rank: of this process in it, @world_rank in the world: the list must have it there
 * @ret: the caller's to free(); at most @most ranks
 *
 * Any thread. Return: how many ranks; 0: nobody knows, or nobody could be asked in time.
 */
uint32_t job_ranks(uint32_t n_ranks, uint32_t rank, uint32_t world_rank, uint32_t most,
		   uint32_t **ret);

/**
 * job_groups - all groups that the process is in and knows by a name, but the default one
 * @each: is called for each, from the calling thread
 *
 * Any thread, waits as job_ranks().
 */
void job_groups(void (*each)(const struct wire_group *g, const uint32_t *ranks));
