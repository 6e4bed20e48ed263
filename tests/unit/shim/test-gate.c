/* The gate of device-host.c over the host CUDA runtime: one stream, one thread; and the wait for an
 * event. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "base/clock.h"
#include "shim/gate/device-choose.h"
#include "tests/unit/shim/counted-gate.h"

static const struct device *dev;

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
	assert_int_equal(cudaStreamSynchronize(NULL), 0);
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
		assert_int_equal(cudaStreamSynchronize(NULL), 0);
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
	assert_int_equal(cudaStreamSynchronize(NULL), 0);
	assert_int_equal(atomic_load(&n_passed), 1);
	assert_true(g.times[0].opened_ns < due);
}

/* Another thread of the job may end its event while the shim looks at it. */
static void a_wait_for_an_event_that_has_ended_leaves_no_error(void **state)
{
	cudaEvent_t ev;

	(void)state;
	assert_int_equal(cudaEventCreateWithFlags(&ev, cudaEventDisableTiming), cudaSuccess);
	assert_int_equal(cudaEventDestroy(ev), cudaSuccess);
	assert_int_equal(dev->stream_wait(NULL, ev), -EIO);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static int setup(void **state)
{
	struct err err;

	(void)state;
	dev = device_get(&err);
	return dev ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gate_is_closed_until_it_is_released),
		cmocka_unit_test(a_gate_used_again_is_never_early),
		cmocka_unit_test(hurry_opens_a_gate_before_it_is_due),
		cmocka_unit_test(a_wait_for_an_event_that_has_ended_leaves_no_error),
	};

	setenv("NBOX_DEVICE", "host", 1);
	return cmocka_run_group_tests(tests, setup, NULL);
}
