/* For tests: the device of device-cuda.c over another driver than the process's. */
#pragma once

#include "shim/gate/cuda-driver.h"
#include "shim/gate/device.h"

/* Takes @d and checks that it will do. Return: 0; -ENODEV, -ENOTSUP, -EINVAL
 * (NBOX_FOOTPRINT) with the sentence. */
int device_cuda_use(const struct cuda_driver *d, struct err *err);
