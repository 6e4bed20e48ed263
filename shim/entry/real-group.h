/* Makes the real communicators of a group of inits together, on a thread of its own. The real
 * library's init waits for the other members as long as it takes, and only they can end it. All of
 * them go in (meet.h), but one may be killed there. So the caller does not wait for ever: when a
 * member is known to be gone or has aborted, it goes on after a moment with an error. Once the real
 * library lets the thread go, that gives back what was made. The thread selects the devices'
 * primary contexts, as NCCL's own threads do. */
#pragma once

#include "shim/progress/comm.h"

struct real_group; /* what was asked for */

/* Return: NULL: no memory for @n communicators. */
struct real_group *real_group_new(uint32_t n);
/* Another one; takes over @config (the job's, blocking, or NULL). */
void real_group_add(struct real_group *g, struct comm *c, void *config);
/* Makes them, and sets ->real of each; marks one that fails (comm_fail()). Takes over @g. Blocks
 * for NBOX_INIT_TIMEOUT at most, and for at most a second once one of them has failed. */
void real_group_make(struct real_group *g);
