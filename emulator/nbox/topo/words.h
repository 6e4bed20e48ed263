/* How people read a fabric's figures. All return @buf. */
#pragma once

#include <stddef.h>

#include "fabric/fabric.h"

char *topo_rate(double bytes_per_ns, char *buf, size_t size); /* "450 GB/s", "12.5 TB/s" */
char *topo_bits(double bytes_per_ns, char *buf, size_t size); /* "400 Gbit/s" */
const char *topo_intra(const struct fabric_class *c);         /* "NVSwitch with NVLS" */
const char *topo_nic(enum fabric_nic nic);                    /* "InfiniBand" */
const char *topo_leaf(const struct fabric *f);                /* "leaf", "router", "switch" */
const char *topo_cpu(enum fabric_cpu cpu);
const char *topo_distance(enum fabric_distance distance);
/* "rails: groups of 32 nodes, NIC i of all nodes of a group at leaf i" */
char *topo_network(const struct fabric *f, char *buf, size_t size);
/* The @i-th link that is otherwise: "node3.nic2.out: 12.5 GB/s, 5.00 us" */
char *topo_change(const struct fabric *f, size_t i, char *buf, size_t size);
/* "node0", "node0 to node31" */
char *topo_nodes(uint32_t first, uint32_t n, char *buf, size_t size);
