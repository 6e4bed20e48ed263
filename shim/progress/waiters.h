/* The threads that wait for the progress thread: for the session, for a check-in or an id, for a
 * communicator's last op, for the end. One lock and one condition serve all of them. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <time.h>

struct waiters {
	pthread_mutex_t lock; /* of what they wait for */
	pthread_cond_t cond;
};
extern struct waiters waiters;

/* Under the lock: sleeps until somebody signals. Return: 0; -ETIMEDOUT: it is @until_ns. */
int waiters_wait(uint64_t until_ns);
/* Wakes all of them: what they look at may have changed without the lock. */
void waiters_signal(void);
/* In the child of a fork. */
void waiters_in_child(void);
struct timespec waiters_timespec(uint64_t ns);
