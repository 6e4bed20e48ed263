/* The device `cuda`: gates are words in pinned memory that the GPU writes and waits for. */
#pragma once

#include "shim/gate/cuda-driver.h"
#include "shim/gate/device.h"

extern const struct device device_cuda;

/* Takes @d, the driver of the process or of a test, and checks that it will do. Return: 0; -ENODEV,
 * -ENOTSUP, -EINVAL (NBOX_FOOTPRINT) with the sentence. */
int device_cuda_use(const struct cuda_driver *d, struct err *err);
