/* Puts the calls of a group into their streams, in this order on each communicator's stream: arrive
 * of every op, the real work (data.h), wait of every op. The host never blocks. Ops of one
 * communicator keep their order when the job changes streams: after each group there is an event
 * that the next group's stream waits for. */
#pragma once

#include <stdint.h>

#include "shim/data/call.h"
#include "shim/real/nccl-api.h"

ncclResult_t enqueue_calls(struct call *calls, uint32_t n);
