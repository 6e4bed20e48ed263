/* The device `host`: gates are host functions of the CUDA runtime that wait on a futex. */
#pragma once

#include "shim/gate/device.h"

extern const struct device device_host;
