/* See waiters.h. */
#include "shim/progress/waiters.h"

#include "base/clock.h"

struct waiters waiters = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

struct timespec waiters_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S)};
}

int waiters_wait(uint64_t until_ns)
{
	struct timespec ts = waiters_timespec(until_ns);

	return -pthread_cond_clockwait(&waiters.cond, &waiters.lock, CLOCK_MONOTONIC, &ts);
}

void waiters_signal(void)
{
	pthread_mutex_lock(&waiters.lock);
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
}

void waiters_in_child(void)
{
	pthread_mutex_init(&waiters.lock, NULL);
	pthread_cond_init(&waiters.cond, NULL);
}
