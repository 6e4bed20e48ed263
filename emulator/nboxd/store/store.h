/* A TCPStore without sockets, clocks or threads: the key table, who waits for which
 * key, and what is to be answered. The owner brings bytes in and takes bytes out:
 *
 *   store_new() → store_client_new() ... store_client_feed() → store_client_output()
 *
 * Semantics are those of torch's own server (see protocol.h), but for virtual ranks: the
 * owner is told of keys that are asked for and missing, and may set them, then or
 * later; and it says how many virtual ranks are counted as having checked in already.
 * Callbacks may call store_set(); they may not free clients. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
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
	/* store_client_output() has bytes that were not there before. */
	void (*on_output)(void *client_owner);
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
/* Forgets all keys and queues. Who waits goes on waiting. */
void store_clear(struct store *s);

int store_client_new(struct store *s, void *client_owner, struct store_client **ret);
struct store_client *store_client_free(struct store_client *c); /* ends its wait, silently */
/**
 * store_client_feed - what the client sent
 * @n: 0 is allowed: to go on after store_client_sent()
 *
 * Return: 0; -EPROTO, -ENOBUFS, -EDQUOT (STORE_CLIENTS_MAX), -ENOMEM with the sentence: answer what
 * is in the output, then hang up.
 */
int store_client_feed(struct store_client *c, const void *bytes, size_t n, struct err *err);
/* False while its replies pile up: read no more from it. */
bool store_client_is_served(const struct store_client *c);
struct store_bytes store_client_output(const struct store_client *c);
void store_client_sent(struct store_client *c, size_t n);
bool store_client_is_valid(const struct store_client *c); /* has shown the magic number */
/* How many keys it waits for (0: it does not wait), and the @i-th of those, in the order
 * asked; *ret is borrowed until the next change. */
size_t store_client_n_awaited(const struct store_client *c);
struct store_bytes store_client_awaited(const struct store_client *c, size_t i);
