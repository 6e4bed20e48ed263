/* The gate on CUDA over a driver whose streams move step by step (emulated-driver.h). */
#include <stdbool.h>
#include <stdint.h>

#include "cmocka-all.h"
#include "rng.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "schedule/coll.h"
#include "shim/gate/cuda-gate.h"
#include "shim/gate/device-cuda.h"
#include "tests/driver/emulated-driver.h"
#include "tests/unit/shim/counted-gate.h"

static const struct device *dev = &device_cuda;

static void what_is_wrong(const char *how)
{
	setenv("NBOX_TEST_DRIVER", how, 1);
}

static void enqueue(unsigned int stream, struct gate *g)
{
	assert_int_equal(dev->arrive(emulated_stream(stream), g), 0);
	assert_int_equal(dev->wait(emulated_stream(stream), g), 0);
}

static void a_gate_is_closed_until_it_is_released(void **state)
{
	struct gate g;

	(void)state;
	gate_reset(&g);
	assert_int_equal(dev->arrive(emulated_stream(0), &g), 0);
	assert_false(dev->poll());
	assert_true(emulated_step(0));
	assert_int_equal(n_arrived, 0);
	assert_true(dev->poll());
	assert_int_equal(n_arrived, 1);
	assert_int_equal(g.times[0].local_done_ns, 0);
	assert_int_equal(dev->wait(emulated_stream(0), &g), 0);
	assert_int_equal(emulated_run(), 1); /* "done", then it waits */
	assert_true(dev->poll());
	assert_true(g.times[0].local_done_ns >= g.times[0].arrive_ns);
	assert_int_equal(emulated_run(), 0);
	assert_false(dev->poll());
	assert_int_equal(n_passed, 0);
	dev->release(&g, 0);
	assert_false(dev->poll()); /* released is not passed */
	assert_int_equal(emulated_run(), 3);
	assert_true(dev->poll());
	assert_int_equal(n_arrived, 1);
	assert_int_equal(n_passed, 1);
	assert_true(g.times[0].opened_ns >= g.times[0].local_done_ns);
	assert_true(emulated_is_empty(0));
	dev->gate_deinit(&g);
}

/* The answer is there before the real work is done: the stream does not stop. */
static void a_release_before_the_work_is_done_does_not_stop_the_stream(void **state)
{
	struct gate g;

	(void)state;
	gate_reset(&g);
	enqueue(0, &g);
	assert_true(emulated_step(0));
	assert_true(dev->poll());
	dev->release(&g, 0);
	assert_false(dev->poll());
	emulated_run();
	assert_true(emulated_is_empty(0));
	assert_true(dev->poll());
	assert_int_equal(n_passed, 1);
	assert_true(g.times[0].opened_ns >= g.times[0].local_done_ns &&
		    g.times[0].local_done_ns >= g.times[0].arrive_ns);
	dev->gate_deinit(&g);
}

/* There are two pages of them, and all go on at once. */
static void words_of_gates_given_back_are_used_again(void **state)
{
	enum { N = 1000 };
	static struct gate gates[N];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++)
			gate_reset(&gates[i]);
		for (unsigned int i = 0; i < N; i++)
			enqueue(i % EMULATED_STREAMS, &gates[i]);
		while (n_passed < N) {
			unsigned int before = n_arrived;

			emulated_run();
			dev->poll();
			assert_true(n_arrived - before <= EMULATED_STREAMS); /* one each */
			assert_true(n_arrived - n_passed <= EMULATED_STREAMS);
			for (int i = 0; i < N; i++)
				if (gates[i].times[0].arrive_ns && !gates[i].due_ns) {
					atomic_store(&gates[i].due_ns, 1); /* told */
					dev->release(&gates[i], 0);
				}
		}
		for (int i = 0; i < N; i++)
			dev->gate_deinit(&gates[i]);
	}
}

/* 10,000 replays of a graph with two gates. Streams and progress thread move in a random order. */
static void no_replay_is_missed_or_doubled_or_early(void **state)
{
	struct rng rng;
	struct emulated_graph *graph;
	struct gate g[2];
	unsigned int n_released[2] = {0}, n = 10000, launched = 0;
	bool is_due[2] = {false};

	(void)state;
	rng_seed(&rng, 7, 0);
	gate_reset(&g[0]);
	gate_reset(&g[1]);
	g[0].is_captured = g[1].is_captured = true;
	emulated_capture(0);
	assert_true(dev->capture_id(emulated_stream(0)) != 0);
	enqueue(0, &g[0]);
	enqueue(0, &g[1]);
	graph = emulated_end_capture(0);
	assert_non_null(graph);
	assert_int_equal(emulated_run(), 0); /* captured is not run */
	assert_false(dev->poll());
	while (n_passed < 2 * n) {
		switch (rng_u64(&rng) % 4) {
		case 0: /* replays queue up behind each other */
			if (launched < n) {
				emulated_launch(0, graph);
				launched++;
			}
			break;
		case 1:
			for (uint64_t k = rng_u64(&rng) % 12; k > 0; k--)
				emulated_step(0);
			break;
		case 2:
			dev->poll();
			assert_true(n_arrived - n_passed <= 1);
			for (int i = 0; i < 2; i++)
				is_due[i] = is_due[i] || g[i].times[g[i].passed & 1].arrive_ns;
			break;
		case 3:
			for (int i = 0; i < 2; i++) {
				if (!is_due[i])
					continue;
				is_due[i] = false;
				g[i].times[g[i].passed & 1].arrive_ns = 0;
				dev->release(&g[i], 0);
				n_released[i]++;
			}
			break;
		}
		assert_true(n_passed <= n_released[0] + n_released[1]);
		assert_true(n_released[1] <= n_released[0]);
	}
	assert_int_equal(n_arrived, 2 * n);
	assert_int_equal(n_released[0], n);
	assert_true(emulated_is_empty(0));
	assert_false(dev->poll());
	assert_true(dev->nap_ns(UINT64_MAX / 2) == 1 * NS_PER_MS); /* the graph may come again */
	emulated_graph_free(graph);
	/* its gates are kept for good, as those of a captured op are */
}

/* Without gates the progress thread does not look at all. */
static void naps_grow_with_the_time_that_nothing_moves(void **state)
{
	struct gate g;

	(void)state;
	assert_true(dev->nap_ns(0) == UINT64_MAX);
	gate_reset(&g);
	enqueue(0, &g);
	assert_true(dev->nap_ns(0) == 0);
	assert_true(dev->nap_ns(100 * NS_PER_US) == 0);
	assert_true(dev->nap_ns(3200 * NS_PER_US) == 50 * NS_PER_US);
	assert_true(dev->nap_ns(NS_PER_S) == 100 * NS_PER_US);
	emulated_run();
	dev->poll();
	dev->release(&g, 0);
	emulated_run();
	dev->poll();
	assert_true(dev->nap_ns(0) == UINT64_MAX);
	dev->gate_deinit(&g);
}

/* What was enqueued before the call that fails can be opened. */
static void each_failed_call_of_the_driver_is_named(void **state)
{
	unsigned int failed = 0;

	(void)state;
	for (int at = 0; at < 8; at++) {
		struct gate g;
		void *ptr = NULL;
		device_event ev = NULL;

		gate_reset(&g);
		as_driver_fail_in = at;
		if (dev->arrive(emulated_stream(0), &g)) {
			assert_non_null(strstr(dev->why(), "cudaErrorUnknown"));
			failed++;
			as_driver_fail_in = -1;
			dev->gate_deinit(&g);
			assert_true(emulated_is_empty(0));
			continue;
		}
		if (dev->wait(emulated_stream(0), &g)) {
			failed++;
			as_driver_fail_in = -1;
			assert_non_null(strstr(dev->why(), "cuStreamBatchMemOp"));
			assert_int_equal(dev->wait(emulated_stream(0), &g), 0);
		}
		failed += dev->alloc(&ptr, 8) != 0;
		failed += dev->event_new(&ev) != 0;
		failed += dev->copy(emulated_stream(0), &g, &g, 0) != 0;
		failed += dev->call(emulated_stream(0), free, NULL) != 0;
		as_driver_fail_in = -1;
		emulated_run();
		dev->poll();
		dev->release(&g, 0);
		emulated_run();
		dev->poll();
		assert_int_equal(n_passed, 1);
		assert_true(emulated_is_empty(0));
		dev->free_shared(&(struct device_shared){.memory = ptr});
		dev->event_free(ev);
		dev->gate_deinit(&g);
	}
	assert_true(failed >= 6);
	assert_true(dev->nap_ns(0) == UINT64_MAX); /* all accounted for */
}

/* A gate's page is made while another device is current. */
static void each_device_has_gates_of_its_own(void **state)
{
	struct gate g[2];
	char pci[16];
	int now;

	(void)state;
	assert_int_equal(dev->get(&now), 0);
	assert_int_equal(now, DEVICE_NONE);
	/* asks for no device to be current, and makes none so */
	assert_int_equal(dev->pci_id(1, pci, sizeof(pci)), 0);
	assert_string_equal(pci, "0000:11:00.0");
	assert_int_equal(dev->pci_id(1, pci, 5), -EIO);
	assert_int_equal(dev->get(&now), 0);
	assert_int_equal(now, DEVICE_NONE);
	for (int i = 0; i < 2; i++) {
		gate_reset(&g[i]);
		assert_int_equal(dev->set(i), 0);
		assert_int_equal(dev->get(&now), 0);
		assert_int_equal(now, i);
		enqueue((unsigned int)i, &g[i]);
	}
	assert_int_equal(dev->set(EMULATED_DEVICES), -EIO);
	assert_non_null(strstr(dev->why(), "no device 2"));
	assert_int_equal(dev->set(0), 0);
	emulated_run();
	dev->poll();
	assert_int_equal(n_arrived, 2);
	dev->release(&g[1], 0);
	emulated_run();
	dev->poll();
	assert_int_equal(n_passed, 1);
	assert_true(emulated_is_empty(1) && !emulated_is_empty(0));
	dev->release(&g[0], 0);
	emulated_run();
	dev->poll();
	assert_int_equal(n_passed, 2);
	dev->gate_deinit(&g[0]);
	dev->gate_deinit(&g[1]);
}

/* Nothing is left of a failure. */
static void memory_for_nics_is_aligned_zero_and_of_its_device(void **state)
{
	struct device_shared m;
	unsigned char zeros[4096] = {0};
	unsigned int n;
	int now;

	(void)state;
	assert_int_equal(dev->set(0), 0);
	assert_int_equal(dev->alloc_shared(1, 1 << 20, 1 << 16, &m), 0);
	assert_int_equal(dev->get(&now), 0);
	assert_int_equal(now, 1);
	assert_int_equal((uintptr_t)m.base % (1 << 16), 0);
	assert_memory_equal(m.base, zeros, sizeof(zeros));
	assert_true(m.dmabuf_fd >= 0);
	close(m.dmabuf_fd);
	dev->free_shared(&m);
	what_is_wrong("no-dmabuf");
	n = as_driver_n_calls;
	assert_int_equal(dev->alloc_shared(1, 1 << 20, 1 << 16, &m), 0);
	n = as_driver_n_calls - n;
	assert_int_equal(m.dmabuf_fd, -1);
	dev->free_shared(&m);
	for (unsigned int i = 0; i < n; i++) {
		as_driver_fail_in = (int)i;
		assert_true(dev->alloc_shared(1, 1 << 20, 1 << 16, &m) < 0);
		assert_non_null(strstr(dev->why(), "cudaErrorUnknown"));
	}
	what_is_wrong("no-rdma");
	assert_int_equal(dev->alloc_shared(1, 1 << 20, 1 << 16, &m), -ENOTSUP);
	assert_non_null(strstr(dev->why(), "no GPUDirect RDMA"));
	assert_int_equal(dev->set(0), 0);
}

static void assert_last_kernel(const char *start)
{
	assert_memory_equal(as_driver_kernel, start, strlen(start));
}

/* The gate is as tight as without the kernel. */
static void the_footprint_kernel_is_named_after_the_collective(void **state)
{
	struct emulated_graph *graph;
	struct err err = {""};
	struct gate g;

	(void)state;
	setenv("NBOX_FOOTPRINT", "16", 1);
	assert_int_equal(device_cuda_use(&emulated_driver, &err), 0);
	gate_reset(&g);
	g.kind = COLL_REDUCESCATTER;
	g.is_captured = true;
	emulated_capture(0);
	enqueue(0, &g);
	graph = emulated_end_capture(0);
	assert_non_null(graph);
	emulated_graph_free(graph);
	assert_last_kernel("ncclDevKernel_ReduceScatter_nbox(");
	dev->gate_deinit(&g);

	gate_reset(&g);
	g.kind = COLL_ALLTOALL;
	enqueue(0, &g);
	assert_last_kernel("ncclDevKernel_SendRecv_nbox(");
	assert_int_equal(as_driver_n_kernels, 2);
	emulated_run(); /* the kernel's time is over */
	dev->poll();
	assert_int_equal(n_arrived, 1);
	assert_int_equal(n_passed, 0);
	assert_false(emulated_is_empty(0));
	dev->release(&g, 0);
	emulated_run();
	dev->poll();
	assert_int_equal(n_passed, 1);
	dev->gate_deinit(&g);

	setenv("NBOX_FOOTPRINT", "5000", 1);
	assert_int_equal(device_cuda_use(&emulated_driver, &err), -EINVAL);
	assert_non_null(strstr(err.text, "at most 1024"));
	setenv("NBOX_FOOTPRINT", "many", 1);
	assert_int_equal(device_cuda_use(&emulated_driver, &err), -EINVAL);
	unsetenv("NBOX_FOOTPRINT");
	assert_int_equal(device_cuda_use(&emulated_driver, &err), 0);
}

static void a_driver_that_cannot_serve_is_refused(void **state)
{
	struct err err = {""};

	(void)state;
	what_is_wrong("no-device");
	assert_int_equal(device_cuda_use(&emulated_driver, &err), -ENODEV);
	assert_non_null(strstr(err.text, "sees no device"));
	what_is_wrong("old");
	assert_int_equal(device_cuda_use(&emulated_driver, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "CUDA 11.4"));
	what_is_wrong("no-unified");
	assert_int_equal(device_cuda_use(&emulated_driver, &err), -ENOTSUP);
	what_is_wrong("");
	for (int i = 0; i < 5; i++) {
		as_driver_fail_in = i;
		assert_int_equal(device_cuda_use(&emulated_driver, &err), -ENODEV);
		assert_non_null(strstr(err.text, "cudaErrorUnknown"));
	}
	as_driver_fail_in = -1;
	assert_int_equal(device_cuda_use(&emulated_driver, &err), 0);
}

/* The process ends: what is in streams goes through. */
static void the_end_of_the_process_opens_all_gates(void **state)
{
	struct gate g;

	(void)state;
	gate_reset(&g);
	enqueue(0, &g);
	dev->stop();
	emulated_run();
	assert_true(emulated_is_empty(0));
}

static int setup(void **state)
{
	struct err err;

	(void)state;
	return emulated_open(&err) || device_cuda_use(&emulated_driver, &err);
}

static int before(void **state)
{
	(void)state;
	as_driver_fail_in = -1;
	what_is_wrong("");
	return dev->set(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: no device has been used */
		cmocka_unit_test(each_device_has_gates_of_its_own),
		cmocka_unit_test_setup(naps_grow_with_the_time_that_nothing_moves,
				       before), /* no graph yet */
		cmocka_unit_test_setup(each_failed_call_of_the_driver_is_named, before),
		cmocka_unit_test_setup(a_gate_is_closed_until_it_is_released, before),
		cmocka_unit_test_setup(a_release_before_the_work_is_done_does_not_stop_the_stream,
				       before),
		cmocka_unit_test_setup(words_of_gates_given_back_are_used_again, before),
		cmocka_unit_test_setup(memory_for_nics_is_aligned_zero_and_of_its_device, before),
		cmocka_unit_test_setup(the_footprint_kernel_is_named_after_the_collective, before),
		cmocka_unit_test_setup(a_driver_that_cannot_serve_is_refused, before),
		cmocka_unit_test_setup(no_replay_is_missed_or_doubled_or_early, before),
		cmocka_unit_test_setup(the_end_of_the_process_opens_all_gates,
				       before), /* last: nobody looks any more */
	};

	unsetenv("NBOX_FOOTPRINT");
	setenv("NBOX_HOST_DEVICES", "2", 1);
	return cmocka_run_group_tests(tests, setup, NULL);
}
