/* Six ranks on three nodes, of which the first ones are real, and what is said of their NCCL. */
#pragma once

#include "cmocka-all.h"

#include <stdbool.h>
#include <stdint.h>

#include "traffic/traffic.h"

struct told {
	struct traffic *t;
	struct traffic_bodies *bodies;
	struct traffic_comm *c;
	uint32_t n_sent, n_identity;
	uint64_t bytes; /* of the last */
	unsigned char first;
	char failed[512];
};

#define TOLD_MAX_BYTES (UINT64_C(1) << 20)
#define TOLD_POOL_BYTES (UINT64_C(1) << 26)

extern struct told told;
extern struct err err;

/* @n_real: ranks. */
int open_with(uint32_t n_real, bool has_bodies);
/* Another communicator of that kind. */
int open_more(uint32_t n_real, struct traffic_comm **ret);
void close_all(void);

/* All on channel 0, in LL. */
int flow(uint64_t seq, uint32_t rank, uint32_t peer, bool is_send, uint32_t algorithm, uint64_t n);
int call(uint64_t seq, uint32_t rank, uint32_t kind, uint32_t root);
int want(uint64_t seq, uint32_t rank, uint32_t peer, uint64_t index);
int arrive(uint64_t seq, uint32_t rank, uint32_t peer, uint64_t index, uint64_t bytes,
	   unsigned char fill);
/* @r says so, and the communicator is dead; closes all. */
void refused(int r, const char *why);

#define OPEN(n_real) assert_int_equal(open_with(n_real, true), 0)
#define OK(r) assert_int_equal(r, 0)
