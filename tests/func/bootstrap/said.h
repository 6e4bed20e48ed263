/* What real ranks say of themselves in a communicator's all-gathers, and what each then has to hear
 * of all ranks: the slow, obvious rule, beside that of patches/rewrite.c. Everything follows from a
 * seed, so that each rank knows what the others have said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patches/records.h"

struct said_world {
	const struct nccl_records *records;
	uint32_t n_ranks;
	const uint32_t *node, *template; /* [n_ranks], borrowed; a real rank is its own template */
	uint64_t seed;
	uint32_t *by_node; /* [n_ranks], owned; ranks, node by node, in their order */
	uint32_t *first;   /* [n_ranks], owned; where the node of a rank begins in by_node */
	uint32_t *count;   /* [n_ranks], owned; how many ranks it has */
};

/* @w has records to seed. Return: 0; -1: no memory. */
int said_world_init(struct said_world *w);
void said_world_deinit(struct said_world *w);
/* The rank that stands on @rank's node for @of, which is on the node of @rank's template. */
int32_t said_same_place(const struct said_world *w, uint32_t rank, int32_t of);

/* What real rank @rank says. */
void said_peer(const struct said_world *w, uint32_t rank, uint8_t *ret_record);
void said_graph(const struct said_world *w, uint32_t rank, uint8_t *ret_record);
/* In an all-gather that is none of those: @bytes. */
void said_bytes(const struct said_world *w, uint32_t rank, size_t bytes, uint8_t *ret_record);

/* Is what @rank got right? @all: of all ranks, one after the other. Return: 0; -1 with
 * wire_error(). */
int said_check_contacts(const struct said_world *w, uint32_t rank, const uint8_t *own_record,
			const struct record_contact *c, const uint8_t *all);
int said_check_peers(const struct said_world *w, const uint8_t *all);
int said_check_graphs(const struct said_world *w, const uint8_t *all);
int said_check_bytes(const struct said_world *w, size_t bytes, const uint8_t *all);
