/* The fabric file: classes, nodes, network, links. emulator/fabric/README.md says the keys. */
#pragma once

#include "fabric/fabric.h"
#include "fabric/read/yaml-doc.h"

/* @n_nodes: 0: those of the file, else 1. @gpus_per_node: 0: those of its smallest class. Return:
 * 0; -EINVAL with FILE:LINE:COLUMN; -ENOMEM. */
int fabric_read_yaml(struct yaml_doc *d, uint32_t n_nodes, uint32_t gpus_per_node,
		     struct fabric **ret);
