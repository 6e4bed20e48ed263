/* Between the files that run on the progress thread. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Those who wait for the progress thread: for the session, for a check-in or a local
 * id, for a communicator's last op, for its end. */
struct progress_waiters {
	pthread_mutex_t lock; /* of what they wait for */
	pthread_cond_t cond;
};
extern struct progress_waiters progress_waiters;

/* Wakes them: something may have changed that is not under the lock. */
void progress_signal_idle(void);
bool progress_is_stopping(void); /* on the progress thread */
struct timespec progress_timespec(uint64_t ns);
