/* Which nodes a drawing shows: of equal ones that stand together only the first. */
#pragma once

#include "fabric/fabric.h"

/* A domain: a node, or those that one NVSwitch joins. */
struct topo_unit {
	uint32_t first, n_nodes; /* of one of them */
	uint32_t n_equal;        /* it stands for so many, itself included */
	uint32_t class;
	uint32_t row;
	uint64_t changes; /* what the user changed of its links, as one number; 0: nothing */
};

/* Nodes at the same leaf, leaves of rails, or switch. */
struct topo_row {
	uint32_t row, n_equal;
	size_t first_unit, n_units;
};

struct topo_fold {
	struct topo_unit *units; /* owned */
	size_t n_units;
	struct topo_row *rows; /* owned */
	size_t n_rows;
	uint32_t n_left_out; /* nodes that are not drawn and not like one that is */
};

/* Return: 0; -ENOMEM. */
int topo_fold(const struct fabric *f, struct topo_fold *ret);
void topo_fold_deinit(struct topo_fold *fold);
