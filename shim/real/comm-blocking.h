/* NCCL_COMM_BLOCKING: NCCL lets it go before what each communicator's config says, and so does the
 * shim with the job's. The real communicators behind those are blocking ones, whatever the job's
 * are, since the shim does the waiting. So the real library must not see a 0. */
#pragma once

/* 0, 1; -1: neither is said, so configs count. From the first call on the environment says 1 where
 * it said 0. Before the first real communicator. Any thread. */
int comm_blocking_get(void);
