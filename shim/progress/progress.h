/* The progress thread: one a process, started by the first virtual communicator. It owns the
 * session with nboxd (session.h), check-ins (checkin.h) and an op between its arrival and its gate
 * (play.h). Other threads talk to it by notes (note.h). It sleeps in poll() on the links and an
 * eventfd. All signals are blocked in it, and nowhere else.
 *
 * When the link dies, every gate opens, every communicator fails and one line goes to stderr; the
 * thread lives on to open the gates of ops that are still in streams. A forked child has no
 * progress thread: there it is as after a lost link. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct comm;

/* Connects, says HELLO, waits for WELCOME, at the first call; later ones return
 * what came of it. Return: 0; negative errno with the sentence. */
int progress_start(struct err *err);

/* Waits until no op of @c is in a stream or between arrive and passed, at most @timeout_ns.
 * PROGRESS_UNLESS_FAILED: stops waiting when @c has failed, since its ops may stand behind work
 * that never ends. Return: whether there is none. */
enum progress_idle { PROGRESS_IDLE, PROGRESS_UNLESS_FAILED };
bool progress_wait_idle(struct comm *c, enum progress_idle until, uint64_t timeout_ns);
