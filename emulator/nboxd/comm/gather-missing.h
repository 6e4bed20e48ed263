/* Members that have not come to a communicator to be: some vanished, left, took their check-in
 * back, or their process has ended; the rest is waited for, for a time. */
#pragma once

#include "nboxd/comm/gather.h"

/* A check-in that has not been answered is taken back: the others need not wait. */
void gathers_on_abort(struct gathers *gs, struct worker *w, uint32_t cookie, const char *why);
/* As leave_worker(). */
void gathers_worker_gone(struct gathers *gs, struct worker *w, const char *why);
/* A member freed @parent: splits and shrinks that wait for it fail. */
void gathers_member_left(struct gathers *gs, const struct comm *parent, uint32_t rank);
/* comms->on_dead; @gathers: struct gathers. */
void gathers_on_dead(void *gathers, const struct comm *parent, const char *why);
/* Completes what settled, warns, gives up. */
void gathers_tick(struct gathers *gs, uint64_t now_ns);
/* For the status: calls @each with a sentence a gather. */
void gathers_describe(const struct gathers *gs, void (*each)(void *ctx, const char *sentence),
		      void *ctx);
