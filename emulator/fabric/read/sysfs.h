/* The node that this program runs on: GPUs and NICs from /sys, and what NVML says of the GPUs. */
#pragma once

#include "fabric/read/nvml.h"

/* @root: "", or where a /sys and a /proc are that stand for another machine. @nvml: NULL: nobody
 * can be asked. Return: 0; -ENODEV with the sentence: no GPU, or one that nobody knows; -ENOMEM. */
int sysfs_read(const char *root, struct nvml *nvml, struct machine *ret, struct err *err);
