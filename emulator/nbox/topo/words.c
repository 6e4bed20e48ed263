/* See words.h. */
#include "nbox/topo/words.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

static char *scaled(double value, const char *unit, char *buf, size_t size)
{
	static const char prefixes[] = " KMGTPE";
	size_t i = 0;

	for (; value >= 999.95 && prefixes[i + 1]; i++)
		value /= 1000;
	snprintf(buf, size, "%.*f %.*s%s",
		 value >= 99.95 || value - (int)value < 0.005 ? 0
		 : value >= 9.995                             ? 1
							      : 2,
		 value, i > 0, &prefixes[i], unit);
	return buf;
}

char *topo_rate(double bytes_per_ns, char *buf, size_t size)
{
	return scaled(bytes_per_ns * 1e9, "B/s", buf, size);
}

char *topo_bits(double bytes_per_ns, char *buf, size_t size)
{
	return scaled(bytes_per_ns * 8e9, "bit/s", buf, size);
}

const char *topo_intra(const struct fabric_class *c)
{
	switch (c->intra) {
	case FABRIC_NVSWITCH:
		return c->has_nvls ? "NVSwitch with NVLS" : "NVSwitch";
	case FABRIC_NVLINK:
		return "NVLink";
	case FABRIC_PCIE:
	default:
		return "PCIe";
	}
}

const char *topo_nic(enum fabric_nic nic)
{
	static const char *const names[] = {
		[FABRIC_INFINIBAND] = "InfiniBand",
		[FABRIC_ROCE] = "RoCE",
		[FABRIC_EFA] = "EFA",
		[FABRIC_EFA2] = "EFA",
		[FABRIC_SLINGSHOT] = "Slingshot",
		[FABRIC_SOCKET] = "TCP",
		[FABRIC_TCPX] = "TCPX",
	};

	return names[nic];
}

const char *topo_leaf(const struct fabric *f)
{
	switch (f->network.kind) {
	case FABRIC_SWITCH:
		return "switch";
	case FABRIC_CABLES:
		return "sw";
	case FABRIC_DRAGONFLY:
		return "router";
	case FABRIC_RAIL:
	case FABRIC_LEAF_SPINE:
	case FABRIC_FAT_TREE:
	default:
		return "leaf";
	}
}

const char *topo_cpu(enum fabric_cpu cpu)
{
	static const char *const names[] = {"Intel", "AMD", "Arm", "other CPU"};

	return names[cpu];
}

const char *topo_distance(enum fabric_distance distance)
{
	static const char *const names[] = {"PIX", "PXB", "PHB", "SYS"};

	return names[distance];
}

char *topo_network(const struct fabric *f, char *buf, size_t size)
{
	const struct fabric_network *n = &f->network;
	size_t used;

	switch (n->kind) {
	case FABRIC_SWITCH:
		snprintf(buf, size, "one switch that never blocks");
		break;
	case FABRIC_RAIL:
		snprintf(buf, size,
			 "rails: NIC i of each node of a group of %u at leaf i; oversubscription "
			 "%g",
			 n->nodes_per_leaf, n->oversubscription);
		break;
	case FABRIC_LEAF_SPINE:
		snprintf(buf, size, "leaf and spine: %u nodes a leaf; oversubscription %g",
			 n->nodes_per_leaf, n->oversubscription);
		break;
	case FABRIC_FAT_TREE:
		snprintf(buf, size,
			 "fat tree: %u nodes a leaf, %u leaves a pod; oversubscription %g",
			 n->nodes_per_leaf, n->leaves_per_pod, n->oversubscription);
		break;
	case FABRIC_DRAGONFLY:
		snprintf(buf, size,
			 "dragonfly: %u nodes a router, %u routers a group; oversubscription %g",
			 n->nodes_per_leaf, n->leaves_per_pod, n->oversubscription);
		break;
	case FABRIC_CABLES:
	default:
		snprintf(buf, size, "%u switches, %zu cables", f->n_switches, f->n_cables);
		break;
	}
	used = strlen(buf);
	if (n->ecmp)
		snprintf(buf + used, size - used, "; ECMP, seed %u", n->ecmp);
	return buf;
}

char *topo_change(const struct fabric *f, size_t i, char *buf, size_t size)
{
	char name[64], rate[32], time[32];
	struct fabric_link l;

	fabric_link(f, f->changes[i].link, &l);
	snprintf(buf, size, "%s: %s, %s",
		 fabric_link_name(f, f->changes[i].link, name, sizeof(name)),
		 topo_rate(l.bytes_per_ns / fabric_link_efficiency(f, f->changes[i].link), rate,
			   sizeof(rate)),
		 units_print_time(l.latency_ns, time, sizeof(time)));
	return buf;
}

char *topo_nodes(uint32_t first, uint32_t n, char *buf, size_t size)
{
	if (n == 1)
		snprintf(buf, size, "node%u", first);
	else
		snprintf(buf, size, "node%u to node%u", first, first + n - 1);
	return buf;
}
