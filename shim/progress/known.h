/* The communicators that nboxd knows, from its COMM_READY to our COMM_FREE, and the frames about
 * them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shim/progress/comm.h"
#include "wire/wire.h"

/* --- any thread --------------------------------------------------------------------------- */

/* Sends a frame about @c (body copied), unless nboxd does not know @c, or knows it no longer;
 * COMM_FREE takes @c off the list. @c: NULL: a frame of no communicator. Return: 0 or -ENOMEM. */
int known_send(struct comm *c, enum wire_type type, const void *body, size_t bytes);
/* @code: of struct wire_text. */
int known_abort(struct comm *c, int code, const char *text);

/* --- the progress thread --------------------------------------------------------------- */

/* Takes over the caller's reference. */
void known_add(struct comm *c);
struct comm *known_find(uint32_t number, uint32_t rank); /* NULL: not known */
/* The first one; c->next is the one after it. */
struct comm *known_first(void);
