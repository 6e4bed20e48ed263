/* Threads of ours in somebody else's process: signals are for the job's threads. */
#pragma once

#include <pthread.h>
#include <signal.h>

/* pthread_create() with all signals blocked; the caller's mask is as before. Return: as
 * pthread_create(), a positive errno. */
static inline int quiet_thread(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
			       void *arg)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}
