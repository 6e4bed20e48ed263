/* A rank of NCCL, as far as its bootstrap goes: what it sends and waits for, written after NCCL's
 * protocol. For both forms of the all-gather and of the messages. */
#pragma once

#include "play.h"

struct parked {
	int32_t rank, tag;
	struct wire *wire;
	struct parked *next;
};

struct rank_comm {
	struct player *p;
	const struct nccl_records *records;
	uint32_t rank, n;
	uint64_t magic;
	struct wire *next, *prev;
	struct listener *ring, *peers;
	uint8_t ring_address[NCCL_ADDRESS_BYTES], peer_address[NCCL_ADDRESS_BYTES];
	uint8_t *addresses; /* [n], where others get messages */
	struct parked *parked;
};

/* Root, and the ring. @ids: [n_ids]. */
struct rank_comm *rank_init(struct player *p, const struct nccl_records *records, uint32_t rank,
			    uint32_t n, const uint8_t *ids, uint32_t n_ids);
/* The own record of @all [n][bytes] is set, the others come. */
void rank_gather(struct rank_comm *c, uint8_t *all, uint32_t bytes);
/* The all-gathers of contacts. Return: the table of the first. */
uint8_t *rank_contacts(struct rank_comm *c, bool is_shared);
void rank_send(struct rank_comm *c, uint32_t to, int32_t tag, const void *bytes, int32_t n);
void rank_recv(struct rank_comm *c, uint32_t from, int32_t tag, void *bytes, int32_t n);
void rank_barrier(struct rank_comm *c, int32_t tag);
/* An all-gather among @ranks [n], one of them self; over messages. */
void rank_local_gather(struct rank_comm *c, const uint32_t *ranks, uint32_t n, uint8_t *all,
		       uint32_t bytes);
/* The child, whose members are @ranks [n] of @c. */
struct rank_comm *rank_split(struct rank_comm *c, uint64_t magic, const uint32_t *ranks,
			     uint32_t n);
void rank_close(struct rank_comm *c);
/* A table like 2.28.7's, and one like 2.21.5's: other sizes, all-gathers one way, three contacts,
 * two votes, two heads. */
const struct nccl_records *table_new(void);
const struct nccl_records *table_old(void);
