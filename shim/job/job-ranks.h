/* The job's own list of the ranks in a communicator that it is making. The job does not tell NCCL,
 * but PyTorch, in this same process, keeps such lists. The shim asks PyTorch through Python's
 * documented C interface, found at run time, where there is a Python and torch.distributed is
 * loaded.
 *
 * It only looks, with Python's interpreter lock. It waits for that lock no longer than
 * JOB_RANKS_WAIT_NS, since the thread that holds it may be waiting for this very communicator. It
 * does not ask where the calling thread itself holds the lock, nor with NBOX_ASK_PYTHON=0. */
#pragma once

#include <stdint.h>

#include "wire/wire.h"

/* Longer than any step of Python holds the lock, also on a busy machine; shorter than the other
 * ranks of the job are patient. A process waits that long once: see job-ranks.c. */
#define JOB_RANKS_WAIT_NS UINT64_C(5000000000)

/**
 * job_ranks - the world ranks of the communicator that the calling thread is making
 * @n_ranks: how many; 0: not known (a split)
 * @rank: of this process in it, @world_rank in the world: the list must have it there
 * @ret: the caller's to free(); at most @most ranks
 *
 * Any thread. Return: how many ranks; 0: the list is not known, or Python could not be asked in
 * time.
 */
uint32_t job_ranks(uint32_t n_ranks, uint32_t rank, uint32_t world_rank, uint32_t most,
		   uint32_t **ret);

/**
 * job_groups - all named groups that the process is in, but the default one
 * @each: is called for each, from the calling thread
 *
 * Any thread, waits as job_ranks().
 */
void job_groups(void (*each)(const struct wire_group *g, const uint32_t *ranks));
