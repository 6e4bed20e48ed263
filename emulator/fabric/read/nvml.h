/* What NVIDIA's management library says of a GPU, where it is installed. */
#pragma once

#include <stdint.h>

struct nvml;

struct nvml *nvml_open(void);            /* NULL: not installed, or it does not work */
struct nvml *nvml_close(struct nvml *n); /* NULL; takes NULL */
/* @bus: "0000:18:00.0". *ret_links: that are up. Return: 0; -1: it does not know the GPU. */
int nvml_ask(struct nvml *n, const char *bus, uint32_t *ret_sm, uint32_t *ret_links);
