/* Requests as bytes, and the answers, for tests of the store. */
#pragma once

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "nboxd/store/buffer.h"
#include "nboxd/store/client.h"

#define TEXT(s) ((struct store_bytes){(const uint8_t *)(s), strlen(s)})

/* One request of @op; @shape as in protocol.c: k, v take a char *, i an int64_t, u a
 * uint32_t, n a uint64_t count. */
struct buffer request(enum store_op op, const char *shape, ...);

/* A client of @s that keeps what it has not been served, and what it was answered. */
struct talker {
	struct store_client *client;
	struct buffer in, out;
	bool is_waiting;
	uint32_t pid;
	struct err err;
};
void talker_open(struct talker *t, struct store *s, bool is_valid);
void talker_close(struct talker *t);
/* Feeds bytes of requests. Return: as store_client_feed(). */
int talk_bytes(struct talker *t, const void *bytes, size_t n);
/* Feeds a request and frees it. */
int talk(struct talker *t, struct buffer request);
/* Takes the whole output; compares. */
bool heard(struct talker *t, const void *bytes, size_t n);
bool heard_nothing(struct talker *t);
bool heard_u8(struct talker *t, uint8_t v);
bool heard_i64(struct talker *t, int64_t v);
bool heard_value(struct talker *t, const char *text);
extern const struct store_events talk_events; /* on_output, on_wait, on_ping */
