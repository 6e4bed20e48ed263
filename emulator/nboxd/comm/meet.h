/* How the real members of a communicator come to make their real one: see shim/progress/meet.h. A
 * member's MEET is its promise to go into the real init. It is answered once: by MEET, when all
 * members have promised, or by ABORT, when the communicator died before. Then the lowest member
 * sends the id, which nboxd passes to the others; in full mode nboxd itself makes the id, and sends
 * it to all members behind its MEET. */
#pragma once

#include "nboxd/comm/comm.h"

/* MEET of a member. */
int meet_on_promise(struct comms *comms, struct worker *w, const struct wire_hdr *h);
/* The lowest member's id. It is passed on even where the communicator has died: members that were
 * answered by MEET wait for it. */
int meet_on_id(struct comms *comms, struct worker *w, const struct wire_hdr *h, const void *body);
/* Do others wait for the promise of @m? */
bool meet_is_owed(const struct comm *c, const struct comm_member *m);
/* Has @m promised, and nobody has answered? */
bool meet_waits(const struct comm *c, const struct comm_member *m);
/* A member is gone: nobody waits for an id that it has not sent. */
void meet_member_left(struct comm *c);
