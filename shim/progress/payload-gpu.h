/* The dummy bytes of exchange `payload` in memory of the GPU, so that they cross its PCIe link like
 * a real collective's: the NIC sends bodies from there and receives them into there. Over link rdma
 * and with device cuda; NBOX_PAYLOAD_MEMORY (auto, host, device). The player's work,
 * NBOX_PAYLOAD_WORK, stays the CPU's, in scratch memory of the host.
 *
 * All memory is allocated before the session is up, and stays until the process ends: allocating or
 * freeing later could wait for the GPU, which may be waiting at a gate that only this thread opens.
 * Never run on a GPU. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "links/link.h"

/* Which GPU this process uses: a device's ordinal, or DEVICE_NONE. Any thread, before the
 * session is opened; the first call counts. */
void payload_gpu_is(int ordinal);

/* The progress thread's, as all that follows; with @l up and exchange `payload` chosen. Decides,
 * and makes a second link for messages towards us. *ret_back NULL: the bodies lie in the host's
 * memory. Logs the decision and its reason once, at level info. Return: 0; with `device`, negative
 * errno with the sentence. */
int payload_gpu_open(struct link *l, const char *addr, int timeout_ms, const struct link_events *ev,
		     void *owner, struct link **ret_back, struct err *err);
bool payload_gpu_is_used(void);
/* The decision and its reason, for the summary; "": nothing was to decide, the link has no
 * device. */
const char *payload_gpu_decided(void);
