/* Helpers of the tests of the host CUDA runtime. No test measures time: a test shows order and
 * overlap by events that can only happen when they hold. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka-all.h"
#include "cuda.h"
#include "cuda_runtime_api.h"

#define assert_cuda(call) assert_cuda_is(call, cudaSuccess)
#define assert_cuda_is(call, expected) \
	_assert_int_equal((uintmax_t)(call), (uintmax_t)(expected), __FILE__, __LINE__)

/* A door: a host function that waits until somebody opens it. */
struct door {
	_Atomic int is_open, n_waiting;
};

static inline void door_wait(void *arg)
{
	struct door *door = arg;

	atomic_fetch_add(&door->n_waiting, 1);
	while (!atomic_load(&door->is_open))
		usleep(100);
}

static inline void door_open(void *arg)
{
	atomic_store(&((struct door *)arg)->is_open, 1);
}

/* Waits until somebody stands before the door. */
static inline void door_await_visitor(struct door *door)
{
	while (!atomic_load(&door->n_waiting))
		usleep(100);
}

/* A host function that notes its place in an order. */
struct order {
	_Atomic int n;
	int seen[4096];
};
struct entry {
	struct order *order;
	int id;
};

static inline void order_note(void *arg)
{
	struct entry *entry = arg;
	int at = atomic_fetch_add(&entry->order->n, 1);

	entry->order->seen[at] = entry->id;
}

static inline void count_up(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
}
