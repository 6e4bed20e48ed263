/* The NICs of a topology file of NCCL's, as nbox's network is to have them: its <net> elements.
 * nccl-xml.h makes a fabric of such a file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define NET_DEVICES_MAX 64

struct net_device {
	char name[64];
	uint64_t guid;
	int port, mbps, n_comms;
	float latency_us;
	bool has_gdr;
};

/* Return: 0; negative errno with the sentence. */
int net_devices_read(const char *path, struct net_device ret[NET_DEVICES_MAX], size_t *ret_n,
		     struct err *err);
/* Of the text of a file @name. Return: 0; -EINVAL with the sentence. */
int net_devices_parse(const char *name, const char *text, struct net_device ret[NET_DEVICES_MAX],
		      size_t *ret_n, struct err *err);
