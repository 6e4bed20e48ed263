/* What the whole runtime shares: whether a call may be made at all, the thread's last error, and
 * the orderly end of all stream threads. */
#pragma once

#include <stdbool.h>

#include <cuda_runtime_api.h>

/* The version of the API that this library offers: 13 or 12. */
#ifndef NBOX_CUDART_MAJOR
#define NBOX_CUDART_MAJOR 13
#endif

/* The first thing in every call that touches streams, events, graphs or memory. Return:
 * cudaSuccess, cudaErrorNotPermitted inside a host function, cudaErrorInitializationError in
 * the child of a fork that came after the first stream thread, cudaErrorCudartUnloading while
 * the process exits. */
cudaError_t runtime_enter(void);

/* Notes @error as this thread's last error, unless it is cudaSuccess. Return: @error. */
cudaError_t runtime_return(cudaError_t error);

/* Around a program's function that runs on a stream's thread. */
void runtime_callback_begin(void);
void runtime_callback_end(void);

/* Starts a detached thread with all signals blocked, named after @name. The first one registers
 * the exit handler, which calls @wake_all so that all threads see the end. Return: false when the
 * system gives no thread. */
bool runtime_thread_start(void *(*fn)(void *), void *arg, const char *name, void (*wake_all)(void));
/* The last thing that such a thread does. */
void runtime_thread_end(void);

/* True from the moment when the process exits: everybody who waits on a stream's thread gives
 * up. Waits look at it at least every RUNTIME_STOP_POLL_NS. */
bool runtime_is_stopping(void);
#define RUNTIME_STOP_POLL_NS 10000000u
