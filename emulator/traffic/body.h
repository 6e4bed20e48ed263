/* Bodies of NCCL's messages on their way through nboxd. They lie in memory that stays mapped as it
 * is until traffic_bodies_free(), so that a link may keep it registered. One thread. */
#pragma once

#include <stdint.h>

struct traffic_bodies;

struct traffic_body {
	unsigned char *at; /* 64-byte aligned */
	uint64_t bytes;
	/* private */
	struct region *in;
	struct traffic_body *next; /* of those that are free there */
	uint32_t refs;
};

/* They and the gaps between them take no more than @max_bytes, 512 KiB at least, and what
 * was never in use takes none. NULL: no memory. */
struct traffic_bodies *traffic_bodies_new(uint64_t max_bytes);
/* Those that are still lent become invalid. NULL allowed. Returns NULL. */
struct traffic_bodies *traffic_bodies_free(struct traffic_bodies *b);
/* @bytes > 0, of any content; one reference. NULL: no memory. */
struct traffic_body *traffic_body_new(struct traffic_bodies *b, uint64_t bytes);
struct traffic_body *traffic_body_ref(struct traffic_body *body);
void traffic_body_unref(struct traffic_body *body);             /* NULL allowed */
uint64_t traffic_body_room(const struct traffic_body *body);    /* bytes that it takes */
uint64_t traffic_bodies_mapped(const struct traffic_bodies *b); /* bytes */
uint64_t traffic_bodies_lent(const struct traffic_bodies *b);   /* ... of them in use */
