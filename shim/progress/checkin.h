/* Check-ins of communicators with nboxd: a COMM_INIT, SPLIT or SHRINK goes out, COMM_READY or ABORT
 * comes back. Any thread begins check-ins and waits for them; the progress thread keeps those that
 * nboxd has not answered. It also fails the communicators that nboxd calls off. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "shim/progress/comm.h"
#include "wire/wire.h"

/* --- any thread ------------------------------------------------------------------- */

/* Checks @c in by the frame @type (COMM_INIT, SPLIT, SHRINK; its cookie is filled in; @parent and
 * @rank go to hdr.comm and hdr.rank). Several check-ins may be under way: begin them all, then wait
 * for each. */
void checkin_begin(struct comm *c, enum wire_type type, uint32_t parent, uint32_t rank,
		   const void *body, size_t bytes);
/* Waits for the answer, up to NBOX_INIT_TIMEOUT. A caller that gives up, or is aborted, takes its
 * check-in back. Return: 0, the members are known; negative errno with the sentence. */
int checkin_wait(struct comm *c, struct err *err);

/* --- the progress thread ------------------------------------------------------------ */

/* Frames from nboxd. */
void checkin_on_ready(const struct wire_hdr *h, const struct wire_comm_ready *ready);
void checkin_on_abort(const struct wire_hdr *h, const struct wire_text *t);

/* The link is lost: all check-ins and communicators fail with @text. Return: whether
 * that is news to anybody. */
bool checkin_lose(const char *text);
/* The process is ending: all communicators fail, nobody is told. */
void checkin_stop(void);
