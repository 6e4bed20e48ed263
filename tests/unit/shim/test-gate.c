/* The gate of device-host.c over a runtime of this file: one stream, one thread. */
#include <stdbool.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "shim/gate/device-choose.h"

/* --- a CUDA runtime ------------------------------------------------------------- */

struct item {
	void (*fn)(void *);
	void *arg;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct item items[256];
	unsigned int head, tail;
	bool is_busy, is_ending;
	pthread_t thread;
} stream = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void *stream_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&stream.lock);
	while (!stream.is_ending) {
		struct item item;

		if (stream.head == stream.tail) {
			pthread_cond_wait(&stream.cond, &stream.lock);
			continue;
		}
		item = stream.items[stream.head++ % 256];
		stream.is_busy = true;
		pthread_mutex_unlock(&stream.lock);
		item.fn(item.arg);
		pthread_mutex_lock(&stream.lock);
		stream.is_busy = false;
		pthread_cond_broadcast(&stream.cond);
	}
	pthread_mutex_unlock(&stream.lock);
	return NULL;
}

static void stream_sync(void)
{
	pthread_mutex_lock(&stream.lock);
	while (stream.head != stream.tail || stream.is_busy)
		pthread_cond_wait(&stream.cond, &stream.lock);
	pthread_mutex_unlock(&stream.lock);
}

#define EXPORT __attribute__((visibility("default")))
int cudaLaunchHostFunc(device_stream s, void (*fn)(void *), void *arg);
EXPORT int cudaLaunchHostFunc(device_stream s, void (*fn)(void *), void *arg)
{
	(void)s;
	pthread_mutex_lock(&stream.lock);
	stream.items[stream.tail++ % 256] = (struct item){fn, arg};
	pthread_cond_broadcast(&stream.cond);
	pthread_mutex_unlock(&stream.lock);
	return 0;
}

#define UNUSED_FUNCTION(name) \
	int name(void);       \
	EXPORT int name(void) \
	{                     \
		return 1;     \
	}
UNUSED_FUNCTION(cudaGetDevice)
UNUSED_FUNCTION(cudaSetDevice)
UNUSED_FUNCTION(cudaMemcpyAsync)
UNUSED_FUNCTION(cudaMemsetAsync)
UNUSED_FUNCTION(cudaMalloc)
UNUSED_FUNCTION(cudaFree)
UNUSED_FUNCTION(cudaHostAlloc)
UNUSED_FUNCTION(cudaFreeHost)
UNUSED_FUNCTION(cudaEventCreateWithFlags)
UNUSED_FUNCTION(cudaEventDestroy)
UNUSED_FUNCTION(cudaEventRecord)
UNUSED_FUNCTION(cudaStreamWaitEvent)
UNUSED_FUNCTION(cudaStreamIsCapturing)

/* --- tests --------------------------------------------------------------------------- */

static const struct device *dev;
static _Atomic unsigned int n_arrived, n_passed;

static void on_arrive(struct gate *g)
{
	(void)g;
	atomic_fetch_add(&n_arrived, 1);
}

static void on_passed(struct gate *g)
{
	(void)g;
	atomic_fetch_add(&n_passed, 1);
}

static void gate_reset(struct gate *g)
{
	memset(g, 0, sizeof(*g));
	g->on_arrive = on_arrive;
	g->on_passed = on_passed;
	atomic_store(&n_arrived, 0);
	atomic_store(&n_passed, 0);
}

static void wait_for(_Atomic unsigned int *n, unsigned int value)
{
	while (atomic_load(n) != value)
		clock_sleep_until_ns(clock_now_ns() + 100 * NS_PER_US);
}

static void a_gate_is_closed_until_it_is_released(void **state)
{
	struct gate g;

	(void)state;
	gate_reset(&g);
	assert_int_equal(dev->arrive(NULL, &g), 0);
	assert_int_equal(dev->wait(NULL, &g), 0);
	wait_for(&n_arrived, 1);
	clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
	assert_int_equal(atomic_load(&n_passed), 0);
	dev->release(&g, 0);
	stream_sync();
	assert_int_equal(atomic_load(&n_passed), 1);
	assert_true(g.times[0].arrive_ns <= g.times[0].local_done_ns);
	assert_true(g.times[0].local_done_ns <= g.times[0].opened_ns);
}

/* Each use arms it again, as each replay of a graph does. */
static void a_gate_used_again_is_never_early(void **state)
{
	struct gate g;

	(void)state;
	gate_reset(&g);
	for (unsigned int i = 0; i < 100; i++) {
		uint64_t due = clock_now_ns() + (i % 5) * 200 * NS_PER_US;

		dev->arrive(NULL, &g);
		dev->wait(NULL, &g);
		if (i % 2)
			wait_for(&n_arrived, i + 1);
		dev->release(&g, due); /* before or after the waiter is there */
		stream_sync();
		assert_int_equal(atomic_load(&n_passed), i + 1);
		assert_true(g.times[i & 1].opened_ns >= due);
	}
}

static void hurry_opens_a_gate_before_it_is_due(void **state)
{
	uint64_t due = clock_now_ns() + 3600 * NS_PER_S;
	struct gate g;

	(void)state;
	gate_reset(&g);
	dev->arrive(NULL, &g);
	dev->wait(NULL, &g);
	dev->release(&g, due);
	clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
	assert_int_equal(atomic_load(&n_passed), 0);
	dev->hurry(&g);
	stream_sync();
	assert_int_equal(atomic_load(&n_passed), 1);
	assert_true(g.times[0].opened_ns < due);
}

static int setup(void **state)
{
	struct err err;

	(void)state;
	dev = device_get(&err);
	return dev && !pthread_create(&stream.thread, NULL, stream_main, NULL) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	pthread_mutex_lock(&stream.lock);
	stream.is_ending = true;
	pthread_cond_broadcast(&stream.cond);
	pthread_mutex_unlock(&stream.lock);
	pthread_join(stream.thread, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gate_is_closed_until_it_is_released),
		cmocka_unit_test(a_gate_used_again_is_never_early),
		cmocka_unit_test(hurry_opens_a_gate_before_it_is_due),
	};

	setenv("NBOX_DEVICE", "host", 1);
	return cmocka_run_group_tests(tests, setup, teardown);
}
