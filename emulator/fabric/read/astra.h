/* ASTRA-sim's analytical network: dimensions of rings, switches and full meshes. */
#pragma once

#include "fabric/fabric.h"
#include "fabric/read/yaml-doc.h"

/* The first of several dimensions is the node, the others are the network between nodes; with one,
 * each node has one GPU. @n_nodes: 0: those of the file. Its GB/s are GiB/s, as ASTRA-sim takes
 * them. Return: 0; -EINVAL with FILE:LINE:COLUMN, also of what nbox has no network for; -ENOMEM. */
int astra_read(struct yaml_doc *d, uint32_t n_nodes, struct fabric **ret);
