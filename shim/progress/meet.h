/* How the real members of a communicator agree to make their real one. The real library's init
 * waits for all of them as long as it takes, and nothing ends it. So no member goes into it before
 * all members have promised to; nboxd counts the promises. Once all have promised, each member goes
 * in, even if its communicator is aborted meanwhile; the member then gives back what was made. A
 * member that is aborted before makes no promise, and then no member goes in. The lowest member
 * makes the id only when all have promised: the real library keeps a thread and a socket for good
 * for an id that no init uses. Where NCCL runs at the virtual size, the id is nboxd's, and nboxd
 * sends it to all members. Then a member need not go in once its communicator has failed: nboxd
 * ends the init of the others. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "shim/progress/comm.h"
#include "wire/wire.h"

/* --- any thread: in this order, each for all communicators of a group before the next ------- */

/* Promises to go in. Return: 0; -ECANCELED: @c has failed or is aborted; -ENOMEM. */
int meet_promise(struct comm *c, struct err *err);
/* Waits for the promises of all. Return: 0; negative errno with the sentence: nobody goes in. */
int meet_wait_all(struct comm *c, struct err *err);
/* Of the lowest member: sends @id to the others; NULL: it could not make one. Return: 0 or
 * -ENOMEM. */
int meet_send_id(struct comm *c, const void *id);
/* Waits until c->local_id is there. Return: 0; negative errno with the sentence: nobody can go in.
 */
int meet_wait_id(struct comm *c, struct err *err);

/* --- the progress thread -------------------------------------------------------------- */

/* Frames: all have promised; the id. */
void meet_on_all(struct comm *c);
void meet_on_id(struct comm *c, const void *body);
/* nboxd says that @c is dead: threads that wait for promises stop waiting. */
void meet_is_off(struct comm *c);
/* nboxd is gone: all waits end. */
void meet_lost(struct comm *c);
