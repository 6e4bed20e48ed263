/* What play.c needs of progress.c. On the progress thread only. */
#pragma once

#include "links/link.h"
#include "shim/comm.h"

/* NULL: lost. */
struct link *progress_link(void);
/* nboxd's clock and ours. */
uint64_t progress_to_daemon(uint64_t own_ns);
uint64_t progress_from_daemon(uint64_t daemon_ns);
/* Something is wrong with @c alone: marks it, opens its gates, tells nboxd, prints
 * one line. */
void progress_fail_comm(struct comm *c, ncclResult_t result, const char *text);
/* Wakes those in progress_wait_idle(). */
void progress_signal_idle(void);
