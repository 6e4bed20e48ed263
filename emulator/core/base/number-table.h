/* Small numbers by large ones: an open hash table. */
#pragma once

#include <stdint.h>

struct number_table {
	uint64_t *key;   /* owned; 0: empty */
	uint32_t *value; /* owned */
	uint32_t n, capacity;
};

void number_table_deinit(struct number_table *t);
/* The value of @key, which is not 0; it is 0 where the key is new. It moves with the next key.
 * NULL: out of memory. */
uint32_t *number_table_at(struct number_table *t, uint64_t key);
uint32_t number_table_get(const struct number_table *t, uint64_t key); /* 0: not there */
