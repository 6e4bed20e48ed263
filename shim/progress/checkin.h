/* Communicators as nboxd knows them: checked in, known from COMM_READY to
 * COMM_FREE, failed. Check-ins are begun and waited for on any thread; the
 * progress thread keeps the two lists (pending, known) and answers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "shim/progress/comm.h"
#include "wire/wire.h"

/* --- any thread ------------------------------------------------------------------- */

/* Checks @c in with nboxd by the frame @type (COMM_INIT, SPLIT, SHRINK; its
 * cookie is filled in; @parent and @rank go to hdr.comm and hdr.rank) and waits for
 * the answer. Blocks up to NBOX_INIT_TIMEOUT; who gives up, or is aborted, takes its
 * check-in back. Return: 0, the members are known; negative errno or ncclResult_t > 0
 * with the sentence. Several check-ins may be under way: begin them all, then wait
 * for each. */
void checkin_begin(struct comm *c, enum wire_type type, uint32_t parent, uint32_t rank,
		   const void *body, size_t bytes);
int checkin_wait(struct comm *c, struct err *err);

/* Sends a frame for @c (hdr.comm, hdr.rank from it; body copied). COMM_FREE: @c is
 * known no longer. Return: 0 or -ENOMEM. */
int checkin_send(struct comm *c, enum wire_type type, const void *body, size_t bytes);

/* Sends a frame that is of no communicator (body copied). Return: 0 or -ENOMEM. */
int checkin_tell(enum wire_type type, const void *body, size_t bytes);

/* Opens all gates of @c; later ones open at once. The communicator must have its
 * error set. */
void checkin_kill(struct comm *c);

/* --- the progress thread ------------------------------------------------------------ */

struct comm *checkin_find(uint32_t number, uint32_t rank); /* NULL: not known */
/* Something is wrong with @c alone: marks it, opens its gates, tells nboxd, prints
 * one line. */
void checkin_fail_comm(struct comm *c, ncclResult_t result, const char *text);

/* Frames from nboxd. */
void checkin_on_ready(const struct wire_hdr *h, const struct wire_comm_ready *r);
void checkin_on_abort(const struct wire_hdr *h, const struct wire_text *t);

/* The link is lost: all check-ins and communicators fail with @text. Return: whether
 * that is news to anybody. */
bool checkin_lose(const char *text);
/* The process is ending: all communicators fail, nobody is told. */
void checkin_stop(void);
