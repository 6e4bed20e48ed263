/* What NVIDIA's management library says of a GPU, where it is installed. */
#pragma once

#include <stdint.h>

#include "fabric/read/machine.h"

struct nvml;

struct nvml *nvml_open(void);            /* NULL: not installed, or it does not work */
struct nvml *nvml_close(struct nvml *n); /* NULL; takes NULL */
/* Sets sm, NVLinks that are up and their far ends of the GPU at @bus, "0000:18:00.0". Return: 0;
 * -1: NVML does not know it, or its NVLinks: what was there before stays. */
int nvml_ask(struct nvml *n, const char *bus, struct machine_gpu *gpu);
