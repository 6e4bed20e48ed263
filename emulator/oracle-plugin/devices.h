/* The devices that NCCL finds: those that were set, and those that NCCL made of several of them. */
#pragma once

#include "nccl-plugin/net.h"
#include "oracle-plugin/oracle-plugin.h"

/* As nbox_oracle_set_devices(). */
int devices_set(const struct nbox_oracle_device *devices, size_t n);
/* How many there are; from now on they stay. */
int devices_count(void);
/* Return: enum plugin_result; strings stay. */
int devices_properties(int device, struct net_properties_v9 *ret);
/* Makes one of those in @of, of their summed speed. Return: enum plugin_result. */
int devices_fuse(const struct net_fused *of, int *ret_device);
