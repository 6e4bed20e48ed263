/* Makes the records of a virtual rank of those of a real one. Pure. */
#pragma once

#include "records.h"

/* Where the ranks of a communicator stand. Ranks count inside the communicator. */
struct rewrite_places {
	uint32_t n_ranks;
	const uint32_t *node;	  /* [n_ranks]; any numbers, equal for ranks of one node */
	const uint32_t *template; /* [n_ranks]; a real rank's is itself */
	/* made by rewrite_places_init() */
	uint64_t *by_node_and_template; /* owned; sorted */
};

/**
 * rewrite_places_init - prepares @p for rewrite_graph()
 * @p: n_ranks, node and template are set and stay the caller's
 *
 * NCCL asks that each virtual node has the ranks of the template's node, each once.
 * Return: 0; -EINVAL (some node has not: the sentence names it); -ENOMEM.
 */
int rewrite_places_init(struct rewrite_places *p, char *sentence, size_t size);
void rewrite_places_deinit(struct rewrite_places *p);
/* The rank that stands on @rank's node for what real rank @of is on its own; -1: none. */
int64_t rewrite_same_place(const struct rewrite_places *p, uint32_t rank, uint32_t of);

/* In all: @record is a copy of the record of @rank's template, and becomes @rank's. */
void rewrite_contact(const struct record_contact *c, const uint8_t address[NCCL_ADDRESS_BYTES], uint8_t *record);
void rewrite_peer(const struct record_peer *r, const struct rewrite_places *p, uint32_t rank, uint8_t *record);
/* Return: 0; -EINVAL where a rank in the record is none of the template's node. */
int rewrite_graph(const struct record_graph *g, const struct rewrite_places *p, uint32_t rank, uint8_t *record);

/* Little helpers for fields of 4 bytes in the machine's order, and of 8. */
int32_t record_int(const uint8_t *record, struct record_field f);
void record_set_int(uint8_t *record, struct record_field f, int32_t value);
uint64_t record_u64(const uint8_t *record, struct record_field f);
void record_set_u64(uint8_t *record, struct record_field f, uint64_t value);
