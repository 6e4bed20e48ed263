/* The shim's own threads in the job's process: signals are for the job's threads. */
#pragma once

#include <pthread.h>
#include <signal.h>

/* pthread_create() with all signals blocked; the caller's mask stays. @ret: NULL: the thread is
 * detached. Return: 0 or a positive errno. */
static inline int quiet_thread(pthread_t *ret, void *(*fn)(void *), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t detached;
	int r;

	pthread_attr_init(&attr);
	if (!ret)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret ? ret : &detached, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r;
}
