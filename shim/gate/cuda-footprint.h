/* The optional footprint of a waiting collective (NBOX_FOOTPRINT=N): a kernel of N thread
 * blocks that holds its multiprocessors, with some traffic through the L2 cache, while
 * the stream waits at a gate. Real NCCL occupies about as much while a collective is
 * under way; without it, computing that overlaps with communication is too fast. It is
 * named ncclDevKernel_<Collective>_nbox, so that profilers count its time as
 * communication. Off by default.
 *
 * The kernel decides nothing: it ends when the release word says so, or after
 * FOOTPRINT_HOLD_NS at the latest, and the gate's own wait comes after it in the stream.
 * So it cannot deadlock with real NCCL. Its blocks may keep a real kernel of another communicator
 * from starting, for which other ranks wait, while its own gate waits for those ranks. Then it ends
 * by its time. The next replay may do the same: slow, and visible in the record, but never stuck.
 * Within its own op it starts after the real work is done. Ops of one communicator follow each
 * other, so each communicator has at most one such kernel at a time.
 *
 * The code is PTX text, compiled by the driver when it is first used; nvcc is not
 * needed. Never run on a GPU yet: ptxas has seen it, the hardware has not. */
#pragma once

#include <stdint.h>

#include "shim/gate/cuda-driver.h"

#define FOOTPRINT_HOLD_NS UINT64_C(100000000)
#define FOOTPRINT_THREADS 512

/* Reads NBOX_FOOTPRINT. Return: 0; -EINVAL with the sentence. */
int cuda_footprint_read(struct err *err);
unsigned int cuda_footprint_ctas(void); /* 0: off */

/* Enqueues the kernel for an op of @kind (enum coll_kind); it ends at *@release >= 1. The current
 * context is the stream's. Also during a capture. */
CUresult cuda_footprint_launch(const struct cuda_driver *d, CUstream s, uint32_t kind,
			       CUdeviceptr release);

/* The PTX text; the caller's to free(). NULL: no memory. */
char *cuda_footprint_ptx(void);
