/* The job's own list of who is in the communicator that it is making. NCCL is never told,
 * but PyTorch, in this same process, keeps it: asked through Python's documented C interface,
 * found at run time, when there is a Python here and torch.distributed is loaded.
 *
 * Only looks. NBOX_ASK_PYTHON=0 leaves it out: for a job in which a thread keeps the
 * interpreter's lock while it waits for a communicator that another thread makes. */
#pragma once

#include <stdint.h>

/**
 * job_ranks - the world ranks of the communicator that the calling thread is making
 * @n_ranks: how many; 0: not known (a split)
 * @rank: of this process in it, @world_rank in the world: the list must have it there
 * @ret: the caller's to free(); at most @most ranks
 *
 * Waits for Python's interpreter lock; PyTorch holds none when it waits for NCCL.
 * Return: how many ranks; 0: nobody knows.
 */
uint32_t job_ranks(uint32_t n_ranks, uint32_t rank, uint32_t world_rank, uint32_t most,
		   uint32_t **ret);
