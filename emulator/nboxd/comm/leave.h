/* How members leave a communicator: they free it, abort it, or their worker goes. A member that
 * leaves in good order harms nobody, unless others wait for it: then the communicator is aborted.
 * It is freed with its last member that has a process, or when the others
 * are through with it. */
#pragma once

#include "nboxd/comm/comm.h"

struct gathers;

int leave_on_free(struct gathers *gs, struct worker *w, const struct wire_hdr *h);
int leave_on_abort(struct gathers *gs, struct worker *w, const struct wire_hdr *h,
		   const void *body);
/* The worker has gone without a word, and @why is what its link said; NULL: it has said BYE. */
void leave_worker(struct comms *comms, struct worker *w, const char *why);
/* An op has ended for a member without a process: frees @c if that was the last. */
void leave_if_over(struct comm *c);
/* Whether its members that have a process have left it; there were some. */
bool leave_is_left(const struct comm *c);
