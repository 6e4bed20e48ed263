/* The progress thread: one a process, started by the first virtual communicator.
 * It owns the link to nboxd and everything that happens to an op between its
 * arrival and its gate. Others talk to it by posting notes. It sleeps in poll()
 * on the link and an eventfd. All signals are blocked in it, and nowhere else.
 *
 * When the link dies, every gate opens, every communicator is marked
 * ncclSystemError and one line goes to stderr; the thread lives on to open the
 * gates of ops that are still in streams. A forked child has no progress thread:
 * there it is as after a lost link. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/wire.h"

struct comm;
struct op;

struct note {
	struct note *next;
	void (*run)(struct note *n); /* on the progress thread; may free the note */
};

/* Connects, says HELLO, waits for WELCOME, at the first call; later ones return
 * what came of it. Return: 0; negative errno with the sentence. */
int progress_start(struct err *err);
const struct wire_welcome *progress_welcome(void); /* after progress_start() */
bool progress_is_child(void); /* forked after NCCL was set up */

enum progress_wake { PROGRESS_WAKE, PROGRESS_LAZY };
/* Hands a note over, in order. PROGRESS_LAZY: may wait up to some milliseconds. */
void progress_post(struct note *n, enum progress_wake wake);

/* Sends a frame for @c (hdr.comm, hdr.rank from it; body copied). Any thread.
 * Return: 0 or -ENOMEM. */
int progress_send(struct comm *c, enum wire_type type, const void *body, size_t bytes);

/* Checks @c in with nboxd by the frame @type (COMM_INIT, SPLIT, SHRINK; its
 * cookie is filled in; @parent and @rank go to hdr.comm and hdr.rank) and waits for the answer. Blocks up to NBOX_INIT_TIMEOUT.
 * Return: 0, the members are known; negative errno with the sentence. Several
 * check-ins may be under way: begin them all, then wait for each. */
int progress_checkin_begin(struct comm *c, enum wire_type type, uint32_t parent, uint32_t rank,
			   const void *body, size_t bytes);
int progress_checkin_wait(struct comm *c, struct err *err);
/* Waits for the id that the lowest real member of @c sends. As above. */
int progress_local_id_wait(struct comm *c, uint8_t ret[WIRE_ID_BYTES], struct err *err);

/* Until no op of @c is between arrive and passed, or @c is dead, or @timeout_ns. */
void progress_wait_idle(struct comm *c, uint64_t timeout_ns);

/* Opens all gates of @c; later ones open at once. The communicator must have its
 * error set. Any thread. */
void progress_kill(struct comm *c);
