/* NCCL's own messages on the progress thread: where the session says NCCL_FULL, MESSAGE frames are
 * NCCL's, not a player's. The room above (shim/plugin) is what NCCL sends and receives through; it
 * gets onto this thread by notes (note.h), sends frames with session_send() and link_send() on
 * session_link(), and hears of what comes by these. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/wire.h"

struct comm;

/* All on the progress thread. */
struct traffic_events {
	/* Where a message's body goes, valid until received(); NULL: nowhere. @c: known. */
	void *(*body_for)(struct comm *c, const struct wire_hdr *h);
	/* @c: dead, perhaps; NULL: it was freed while the body came.
	 * Return: 0; -EPROTO with the sentence: the communicator fails. */
	int (*received)(struct comm *c, const struct wire_hdr *h, struct err *err);
	/* A body that was lent to link_send() may be reused. */
	void (*sent)(uint64_t cookie);
	/* @c is dead, or the link is lost, which is said of each communicator: whoever waits for
	 * its messages goes on. */
	void (*failed)(struct comm *c);
	/* Op @seq of @c has passed in the stream. */
	void (*passed)(struct comm *c, uint64_t seq);
};

/* Before progress_start(). @ev: borrowed for good. */
void traffic_set_events(const struct traffic_events *ev);
const struct traffic_events *traffic_get_events(void); /* NULL: none */
/* Any thread, after progress_start(): does NCCL itself run at the virtual size? */
bool traffic_is_full(void);
