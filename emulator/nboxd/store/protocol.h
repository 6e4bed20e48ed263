/* The requests of torch's TCPStore client, as bytes. A request is one byte that names the
 * operation, then its fields: integers in the order of this host, keys and values as a
 * u64 length and the bytes. Replies carry no header: the client knows what it asked.
 *
 *   VALIDATE     u32 magic; first on each connection        -
 *   SET          key value                                  -
 *   COMPARE_SET  key expected desired                       value
 *   GET          key                                        value, empty when missing
 *   ADD          key i64                                    i64
 *   CHECK        n key...                                   u8 0 ready, 1 not ready
 *   WAIT         n key...                                   u8 0, once all are there
 *   GETNUMKEYS                                              i64
 *   DELETE_KEY   key                                        i64 0 or 1
 *   APPEND       key value                                  -
 *   MULTI_GET    n key...                                   n values
 *   MULTI_SET    n (key value)...                           -
 *   CANCEL_WAIT                                             u8 1
 *   PING         u32                                        the same u32
 *   QUEUE_PUSH   key value                                  -
 *   QUEUE_POP    key                                        i64 length before, and a value if above
 * 0 QUEUE_LEN    key                                        i64 LIST_KEYS i64 n, n keys BARRIER key
 * i64                                    u8 0, once i64 clients were there
 *
 * Checked against the clients and servers of torch 2.4.1 and 2.7.1 (up to PING), 2.11 (up to
 * LIST_KEYS) and 2.15 (all): tests/torch/store_client.py. No I/O, no allocation here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum store_op {
	STORE_VALIDATE,
	STORE_SET,
	STORE_COMPARE_SET,
	STORE_GET,
	STORE_ADD,
	STORE_CHECK,
	STORE_WAIT,
	STORE_GETNUMKEYS,
	STORE_DELETE_KEY,
	STORE_APPEND,
	STORE_MULTI_GET,
	STORE_MULTI_SET,
	STORE_CANCEL_WAIT,
	STORE_PING,
	STORE_QUEUE_PUSH,
	STORE_QUEUE_POP,
	STORE_QUEUE_LEN,
	STORE_LIST_KEYS,
	STORE_BARRIER,
	STORE_OPS
};

#define STORE_MAGIC UINT32_C(0x3C85F7CE)
/* Limits of torch's own server, and one for a whole request. */
#define STORE_KEY_MAX (8u << 10)
#define STORE_VALUE_MAX (8u << 20)
#define STORE_KEYS_MAX (128u << 10)
#define STORE_REQUEST_MAX (64u << 20)

const char *store_op_name(uint32_t op); /* "?" when there is none */

/* How far a request has been looked at; zeroed before each. */
struct store_scan {
	size_t pos;      /* bytes understood so far, or the size of the request */
	uint64_t n_left; /* items of a list still to come */
	uint8_t op;      /* enum store_op, once has_op */
	uint8_t field;   /* in the operation's shape */
	bool has_op;
};

enum { STORE_COMPLETE = 1 };

/**
 * store_scan - looks whether a whole request stands at the front of @bytes
 * @s: kept by the caller between calls with the same bytes and more of them, so that a
 *     long request is not looked at again and again
 *
 * Return: 0 more is needed; STORE_COMPLETE: s->pos bytes are the request; -EPROTO with the
 * sentence.
 */
int store_scan(struct store_scan *s, const uint8_t *bytes, size_t n, struct err *err);

struct store_bytes { /* borrowed */
	const uint8_t *p;
	size_t n;
};

/* For the log: cut to fit, and one line of printable characters, whatever a client sent.
 * Return: @buf. */
char *store_bytes_print(struct store_bytes b, char *buf, size_t size);

/* Takes the fields of a request that store_scan() found complete, one after the other;
 * the caller knows the operation's shape. */
struct store_cursor {
	const uint8_t *p;
};
uint32_t cursor_u32(struct store_cursor *c);
uint64_t cursor_u64(struct store_cursor *c);
struct store_bytes cursor_bytes(struct store_cursor *c);
