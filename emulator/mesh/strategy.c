/* See strategy.h. */
#include "mesh/strategy.h"

#include <math.h>
#include <stddef.h>

#define K_MAX (1 << 20) /* pieces without start-up times: more win nothing that counts */

const char *const mesh_strategy_names[MESH_STRATEGIES + 1] = {
	[MESH_SENDRECV] = "sendrecv",   [MESH_LOCAL_AG] = "local-ag",
	[MESH_GLOBAL_AG] = "global-ag", [MESH_BROADCAST] = "broadcast",
	[MESH_SIGNAL] = "signal",
};

/* A message of @bytes from host to host, and inside one. */
static double across(double bytes, const struct mesh_net *net)
{
	return net->alpha_ns + bytes / net->nic;
}

static double inside(double bytes, const struct mesh_net *net)
{
	return net->inside_alpha_ns + bytes / net->inside;
}

/* @k pieces through @hosts hops between hosts and @devices inside them, one after another: the
 * first through all of them, the others behind it at the pace of the slowest. */
static double chain_ns(double bytes, uint32_t k, uint32_t hosts, uint32_t devices,
		       const struct mesh_net *net)
{
	double to_host = across(bytes / k, net), to_device = inside(bytes / k, net);

	if (k == MESH_K_ENDLESS)
		return bytes / (devices ? fmin(net->nic, net->inside) : net->nic);
	return hosts * to_host + devices * to_device +
	       (k - 1) * (devices ? fmax(to_host, to_device) : to_host);
}

static double broadcast_ns(uint64_t bytes, uint32_t k, struct mesh_group to, uint32_t place,
			   const struct mesh_net *net)
{
	uint32_t host = place / to.devices;

	return chain_ns((double)bytes, k, host + 1, place - host, net);
}

/* It is convex in K: for each hop that may be the slowest, the sum over the others of their
 * times / K, and that hop's start-up time K times. */
uint32_t mesh_best_k(uint64_t bytes, struct mesh_group to, const struct mesh_net *net)
{
	uint32_t low = 1, high = bytes < K_MAX ? (uint32_t)bytes : K_MAX;
	uint32_t last = to.hosts * to.devices - 1;

	while (low < high) {
		uint32_t k = low + (high - low) / 2;

		if (broadcast_ns(bytes, k, to, last, net) <=
		    broadcast_ns(bytes, k + 1, to, last, net))
			high = k;
		else
			low = k + 1;
	}
	return low;
}

double mesh_strategy_done_ns(enum mesh_strategy s, uint64_t bytes, struct mesh_group to,
			     uint32_t place, const struct mesh_net *net)
{
	double n = to.devices, all = n * to.hosts, size = (double)bytes;
	uint32_t host = place / to.devices;

	switch (s) {
	case MESH_SENDRECV:
		return (place + 1) * across(size, net);
	case MESH_LOCAL_AG:
		return (host + 1) * n * across(size / n, net) + (n - 1) * inside(size / n, net);
	case MESH_GLOBAL_AG:
		return (2 * all - 1) * across(size / all, net);
	case MESH_BROADCAST:
		return broadcast_ns(bytes,
				    net->k == MESH_K_BEST ? mesh_best_k(bytes, to, net) : net->k,
				    to, place, net);
	case MESH_SIGNAL:
	case MESH_STRATEGIES:
		break;
	}
	return across(1, net);
}

double mesh_strategy_ns(enum mesh_strategy s, uint64_t bytes, struct mesh_group to,
			const struct mesh_net *net)
{
	return mesh_strategy_done_ns(s, bytes, to, to.hosts * to.devices - 1, net);
}
