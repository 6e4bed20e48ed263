/* Makes the records of a virtual rank of those of a real one. */
#include <errno.h>
#include <string.h>

#include "rewrite.h"

int32_t record_int(const uint8_t *record, struct record_field f)
{
	int32_t value;

	memcpy(&value, record + f.at, sizeof(value));
	return value;
}

void record_set_int(uint8_t *record, struct record_field f, int32_t value)
{
	memcpy(record + f.at, &value, sizeof(value));
}

uint64_t record_u64(const uint8_t *record, struct record_field f)
{
	uint64_t value;

	memcpy(&value, record + f.at, sizeof(value));
	return value;
}

void record_set_u64(uint8_t *record, struct record_field f, uint64_t value)
{
	memcpy(record + f.at, &value, sizeof(value));
}

void rewrite_contact(const struct record_contact *c, const uint8_t address[NCCL_ADDRESS_BYTES],
		     uint8_t *record)
{
	if (c->peer_address.bytes)
		memcpy(record + c->peer_address.at, address, NCCL_ADDRESS_BYTES);
}

/* One to one in @node for a given @hash (splitmix64's steps, G. Steele, D. Lea, C. Flood, OOPSLA
 * 2014): two nodes that are made of one host never come out alike. */
static uint64_t mix(uint64_t hash, uint32_t node)
{
	hash += (node + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
	return hash ^ (hash >> 31);
}

void rewrite_peer(const struct record_peer *r, const struct rewrite_places *p, uint32_t rank,
		  uint8_t *record)
{
	if (p->template[rank] == rank)
		return;
	record_set_int(record, r->rank, (int32_t)rank);
	record_set_u64(record, r->host_hash, mix(record_u64(record, r->host_hash), p->node[rank]));
	memset(record + r->comm.at, 0, r->comm.bytes);
	memset(record + r->cluster_uuid.at, 0, r->cluster_uuid.bytes);
}

static int rewrite_array(const struct record_graph *g, const struct rewrite_places *p,
			 uint32_t rank, enum record_array array, int32_t n, uint8_t *record)
{
	struct record_field f = {(uint16_t)(g->arrays_at +
					    (unsigned)array * g->n_channels_max * sizeof(int32_t)),
				 sizeof(int32_t)};

	if (n < 0 || n > g->n_channels_max)
		return -EINVAL;
	for (int32_t i = 0; i < n; i++, f.at += sizeof(int32_t)) {
		int32_t of = record_int(record, f);
		int64_t there = of == -1 ? -1 : rewrite_same_place(p, rank, of);

		if (there < 0 && of != -1)
			return -EINVAL;
		record_set_int(record, f, (int32_t)there);
	}
	return 0;
}

/* How many channels a graph has. */
static int32_t channels(const struct record_graph *g, const uint8_t *record,
			enum record_graph_of of)
{
	return record_int(record + (unsigned)of * g->graph_bytes, g->n_channels);
}

int rewrite_graph(const struct record_graph *g, const struct rewrite_places *p, uint32_t rank,
		  uint8_t *record)
{
	int32_t ring = channels(g, record, RECORD_OF_RING),
		tree = channels(g, record, RECORD_OF_TREE);

	if (p->template[rank] == rank)
		return 0;
	for (enum record_array a = 0; a < RECORD_ARRAYS; a++) {
		int32_t n = a == RECORD_NVLS_HEADS ? record_int(record, g->nvls_head_count)
			    : ring < tree          ? ring
						   : tree;

		if (rewrite_array(g, p, rank, a, n, record) < 0)
			return -EINVAL;
	}
	return 0;
}
