/* Chooses the device of this process, once (NBOX_DEVICE):
 *
 *   host   device-host.c: the CUDA runtime's functions, host functions in streams and a futex.
 *          Right for a runtime whose streams have threads of their own; on a GPU the host
 *          functions of all streams share one thread.
 *   cuda   device-cuda.c: NVIDIA's driver; the GPU itself writes and waits for words in pinned
 *          memory, which the progress thread looks at.
 *   auto   cuda where the driver sees a GPU and the process's CUDA runtime stands on that driver,
 *          else host */
#pragma once

#include "shim/gate/device.h"

/* The device that NBOX_DEVICE names, opened. Return: NULL with the sentence. */
const struct device *device_get(struct err *err);
/* The device that an earlier device_get() has opened; NULL: none. */
const struct device *device_chosen(void);

/* After device_get(): why gates are not the GPU's own waits although there is a GPU; NULL: they
 * are, or no GPU is there. */
const char *device_fallback(void);
