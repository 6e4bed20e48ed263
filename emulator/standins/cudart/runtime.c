/* See runtime.h. */
#include "runtime.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* How long the end of the process waits for host functions that are still running. */
#define EXIT_PATIENCE_NS 500000000L

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	unsigned n_threads;
	void (*wake_all)(void);
	bool is_arranged;
	atomic_bool is_stopping; /* written by the exit handler, read by every waiter */
	atomic_bool is_forked;   /* written in a fork's child only */
} runtime = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static _Thread_local cudaError_t last_error;
static _Thread_local unsigned callback_depth;

cudaError_t runtime_enter(void)
{
	if (callback_depth)
		return cudaErrorNotPermitted;
	if (atomic_load_explicit(&runtime.is_forked, memory_order_relaxed))
		return cudaErrorInitializationError;
	if (runtime_is_stopping())
		return cudaErrorCudartUnloading;
	return cudaSuccess;
}

cudaError_t runtime_return(cudaError_t error)
{
	if (error != cudaSuccess)
		last_error = error;
	return error;
}

void runtime_callback_begin(void)
{
	callback_depth++;
}

void runtime_callback_end(void)
{
	callback_depth--;
}

bool runtime_is_stopping(void)
{
	return atomic_load_explicit(&runtime.is_stopping, memory_order_acquire);
}

/* Threads do not exist in the child, and locks may be held for ever: it gets errors only. */
static void forked(void)
{
	atomic_store_explicit(&runtime.is_forked, true, memory_order_relaxed);
}

/* Stream threads finish the command that they run and end; what is still queued is dropped, as
 * the work of a process that exits is dropped by a GPU. */
static void stop(void)
{
	struct timespec until;

	if (atomic_load_explicit(&runtime.is_forked, memory_order_relaxed))
		return;
	atomic_store_explicit(&runtime.is_stopping, true, memory_order_release);
	runtime.wake_all();
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += EXIT_PATIENCE_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_mutex_lock(&runtime.lock);
	/* A thread that calls exit() from a host function must not wait for itself. */
	while (runtime.n_threads > (callback_depth ? 1 : 0))
		if (pthread_cond_timedwait(&runtime.ended, &runtime.lock, &until) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&runtime.lock);
}

bool runtime_thread_start(void *(*fn)(void *), void *arg, const char *name, void (*wake_all)(void))
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	bool is_started;

	pthread_mutex_lock(&runtime.lock);
	if (!runtime.is_arranged) {
		pthread_atfork(NULL, NULL, forked);
		runtime.wake_all = wake_all;
		atexit(stop);
		runtime.is_arranged = true;
	}
	runtime.n_threads++;
	pthread_mutex_unlock(&runtime.lock);

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	is_started = pthread_create(&thread, &attr, fn, arg) == 0;
	if (is_started)
		pthread_setname_np(thread, name);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (!is_started)
		runtime_thread_end();
	return is_started;
}

void runtime_thread_end(void)
{
	pthread_mutex_lock(&runtime.lock);
	runtime.n_threads--;
	pthread_cond_broadcast(&runtime.ended);
	pthread_mutex_unlock(&runtime.lock);
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return runtime_return(cudaErrorInvalidValue);
	*version = NBOX_CUDART_MAJOR == 13 ? 13000 : 12090;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	return cudaRuntimeGetVersion(version);
}
