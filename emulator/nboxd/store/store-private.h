/* What store.c (the table) and client.c (the requests) share. */
#pragma once

#include <uthash.h>

#include "nboxd/store/buffer.h"
#include "nboxd/store/store.h"

struct queued {
	struct queued *prev, *next;
	size_t n;
	uint8_t bytes[];
};

/* One client that waits for one key. */
struct await {
	struct store_client *client; /* borrowed */
	struct entry *entry;         /* borrowed; NULL: it came */
	struct await *prev, *next;   /* of the same key */
};

/* A key; there while it has a value, a queue or somebody who waits for it. */
struct entry {
	UT_hash_handle hh;
	struct buffer value;
	bool has_value;
	struct queued *queue; /* owned list */
	uint64_t n_queued;
	struct await *awaits; /* list; owned by the clients */
	size_t n_key;
	uint8_t key[];
};

struct store {
	const struct store_events *ev; /* borrowed */
	void *owner;
	struct entry *entries; /* hash, owned */
	uint64_t n_keys, n_bytes, n_clients, n_waits, n_requests;
	uint64_t n_client_bytes,
		clients_max; /* what clients hold; STORE_CLIENTS_MAX, less in tests */
};

struct store_client {
	struct store *store; /* borrowed */
	void *owner;
	struct buffer in, out;
	struct store_scan scan;
	bool is_valid;
	struct await *awaits;               /* owned; NULL: does not wait */
	size_t n_awaits, n_missing, n_room; /* that wait; of those not there; room in awaits */
	size_t n_held;                      /* of store->n_client_bytes */
};

struct entry *entry_find(const struct store *s, struct store_bytes key);
/* A value, or something in its queue. */
bool entry_is_there(const struct entry *e);
/* Frees @e when nothing is left of it. */
void entry_tidy(struct store *s, struct entry *e);

/* Changes of the table; each wakes who waits. Return: 0; -ENOMEM, -ENOBUFS. */
int table_set(struct store *s, struct store_bytes key, struct store_bytes value,
	      struct entry **ret);
int table_append(struct store *s, struct store_bytes key, struct store_bytes value,
		 struct entry **ret);
int table_push(struct store *s, struct store_bytes key, struct store_bytes value);
void table_pop(struct store *s, struct entry *e); /* the first of its queue */
/* Sets a decimal number, and wakes nobody. */
int table_count(struct store *s, struct store_bytes key, int64_t value, struct entry **ret);
void table_wake(struct store *s, struct entry *e);
/* The number that a value begins with. Return: 0; -EPROTO it does not. */
int entry_number(const struct entry *e, int64_t *ret);

/* Whether @c may hold @more bytes. Return: 0; -EDQUOT. */
int client_has_room(const struct store_client *c, size_t more);
/* Counts what @c holds: after each change. */
void client_count(struct store_client *c);

/* Begins to wait for the @n keys that @cursor stands at, those that are missing.
 * Return: 0 (n_missing says whether it waits); -ENOMEM, -ENOBUFS, -EDQUOT. */
int wait_begin(struct store_client *c, struct store_cursor cursor, uint64_t n, bool is_barrier);
void wait_end(struct store_client *c); /* nothing is answered */
