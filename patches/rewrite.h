/* Makes the records of a virtual rank of those of a real one. Pure. */
#pragma once

#include "places.h"
#include "records.h"

/* In all: @record is a copy of the record of @rank's template, and becomes @rank's. A real rank's
 * stays as it is. */
void rewrite_contact(const struct record_contact *c, const uint8_t address[NCCL_ADDRESS_BYTES],
		     uint8_t *record);
/**
 * rewrite_peer - the rank becomes @rank, and the host another one
 *
 * NCCL takes two ranks of equal host_hash for one host's: with equal bus_id (or GPU's UUID) they
 * are a mistake ("Duplicate GPU detected"), with equal pid_hash one follows the other's comm
 * pointer. So the host_hash is mixed with the node's number, and the pointer becomes 0. The
 * cluster_uuid becomes 0, "no fabric": ranks of equal UUID would be one NVLink domain that shares
 * memory, which nobody can play. NCCL then switches NVLink across hosts off for all; with another
 * UUID for each node a host whose UUID is 0 (HGX) would get one.
 */
void rewrite_peer(const struct record_peer *r, const struct rewrite_places *p, uint32_t rank,
		  uint8_t *record);
/* Each rank becomes the one at the same place of @rank's node; all else stays.
 * Return: 0; -EINVAL where a rank in the record is none of the template's node, or a count is out
 * of bounds (@record is then of no use). */
int rewrite_graph(const struct record_graph *g, const struct rewrite_places *p, uint32_t rank,
		  uint8_t *record);

/* Little helpers for fields of 4 bytes in the machine's order, and of 8. */
int32_t record_int(const uint8_t *record, struct record_field f);
void record_set_int(uint8_t *record, struct record_field f, int32_t value);
uint64_t record_u64(const uint8_t *record, struct record_field f);
void record_set_u64(uint8_t *record, struct record_field f, uint64_t value);
