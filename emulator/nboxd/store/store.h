/* The table of a TCPStore without sockets, clocks or threads: keys, values, and which client waits
 * for which key. What clients ask is client.h's.
 *
 * Semantics are those of torch's own server (see protocol.h), but for virtual ranks: the
 * owner is told of keys that are asked for and missing, and may set them, then or
 * later; and it says how many virtual ranks are counted as having checked in already.
 * Callbacks may call store_set(); they may not free clients. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "nboxd/store/buffer.h"
#include "nboxd/store/protocol.h"

struct store;
struct store_client;

#define STORE_BYTES_MAX (UINT64_C(1) << 30)   /* keys, values and what keeps them, in all */
#define STORE_GROWN_MAX (64u << 20)           /* a value by APPEND */
#define STORE_REPLY_MAX (UINT64_C(256) << 20) /* one reply */
#define STORE_OUTPUT_HIGH (1u << 20)          /* a client with more unread replies is not served */
/* Requests that are not whole, replies that are not read and lists of awaited keys, of all clients:
 * beyond it only clients that hold little are given more. */
#define STORE_CLIENTS_MAX (UINT64_C(1) << 30)
#define STORE_CLIENT_LITTLE (64u << 10)

struct store_events { /* all but on_output may be NULL */
	/* Sends a part of a reply. What fails here is the client's end, which the owner sees to. */
	void (*on_output)(void *client_owner, const void *bytes, size_t n);
	/* A WAIT or BARRIER began to wait, or is over (answered, cancelled). */
	void (*on_wait)(void *client_owner, bool begins);
	/* A client asks for a key that is missing: it will wait, or be answered "". */
	void (*on_missing)(void *owner, void *client_owner, struct store_bytes key);
	/* A key has a new value (by a client; not by store_set()). */
	void (*on_set)(void *owner, void *client_owner, struct store_bytes key,
		       struct store_bytes value);
	/* A counter is made by ADD (@world 0) or BARRIER (@world: how many it waits for):
	 * how far it has been counted already. */
	int64_t (*initial_count)(void *owner, struct store_bytes key, int64_t world);
	/* PING: its number is the client's pid in torch. */
	void (*on_ping)(void *client_owner, uint32_t number);
};

struct store_counts {
	uint64_t n_keys, n_bytes, n_clients, n_client_bytes, n_waits, n_requests;
};

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

/* A key; there while it has a value, a queue or a client that waits for it. */
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
	size_t n_in, n_unread; /* bytes of requests that are not whole, and of unread replies */
	struct store_scan scan;
	bool is_valid;
	struct await *awaits;               /* owned; NULL: does not wait */
	size_t n_awaits, n_missing, n_room; /* that wait; of those not there; room in awaits */
	size_t n_held;                      /* of store->n_client_bytes */
};

int store_new(const struct store_events *ev, void *owner, struct store **ret); /* 0, -ENOMEM */
/* All clients must be freed before. NULL allowed; returns NULL. */
struct store *store_free(struct store *s);
struct store_counts store_counts(const struct store *s);
/* As a client's SET, without on_set. Return: 0; -ENOMEM; -ENOBUFS the store is full. */
int store_set(struct store *s, struct store_bytes key, struct store_bytes value);
/* Return: whether it has a value; *ret is borrowed until the next change. */
bool store_get(const struct store *s, struct store_bytes key, struct store_bytes *ret);
/* Return: 1, or 0: there was none. A queue of that name stays. */
int store_delete(struct store *s, struct store_bytes key);
/* Forgets all keys and queues. Clients that wait go on waiting. */
void store_clear(struct store *s);
/* How many keys it waits for (0: it does not wait), and the @i-th of those, in the order
 * asked; *ret is borrowed until the next change. */
size_t store_client_n_awaited(const struct store_client *c);
struct store_bytes store_client_awaited(const struct store_client *c, size_t i);

/* --- for client.c ------------------------------------------------------------------- */

struct entry *entry_find(const struct store *s, struct store_bytes key);
/* A value, or something in its queue. */
bool entry_is_there(const struct entry *e);
/* Frees @e when nothing is left of it. */
void entry_tidy(struct store *s, struct entry *e);

/* Changes of the table; each wakes the clients that wait. Return: 0; -ENOMEM, -ENOBUFS. */
int table_set(struct store *s, struct store_bytes key, struct store_bytes value,
	      struct entry **ret);
int table_append(struct store *s, struct store_bytes key, struct store_bytes value,
		 struct entry **ret);
int table_push(struct store *s, struct store_bytes key, struct store_bytes value);
void table_pop(struct store *s, struct entry *e); /* the first of its queue */
/* Sets a decimal number, and wakes no client. */
int table_count(struct store *s, struct store_bytes key, int64_t value, struct entry **ret);
void table_wake(struct entry *e);
/* The number that a value begins with. Return: 0; -EPROTO it does not. */
int entry_number(const struct entry *e, int64_t *ret);

/* Sends a part of a reply to @c. */
void client_send(struct store_client *c, const void *bytes, size_t n);
/* Whether @c may hold @more bytes. Return: 0; -EDQUOT. */
int client_has_room(const struct store_client *c, size_t more);
/* Counts what @c holds: after each change. */
void client_count(struct store_client *c);

/* Begins to wait for the @n keys that @cursor stands at, those that are missing.
 * Return: 0 (n_missing says whether it waits); -ENOMEM, -ENOBUFS, -EDQUOT. */
int wait_begin(struct store_client *c, struct store_cursor cursor, uint64_t n, bool is_barrier);
void wait_end(struct store_client *c); /* nothing is answered */
