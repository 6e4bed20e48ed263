/* The NICs that NCCL finds: NBOX_NET_DEVICES=NAME:MBPS[:PCIPATH][,...], read once. */
#pragma once

#include "base/err.h"
#include "nccl-plugin/net.h"

#define DEVICES_MAX 64

/* Return: how many; -EINVAL with the sentence. Thread-safe. */
int devices_count(struct err *err);
/* Return: enum plugin_result; strings stay. */
int devices_properties(int device, struct net_properties_v9 *ret);
