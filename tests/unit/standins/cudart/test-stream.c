/* Order within a stream, overlap of streams, events, the legacy stream, per-thread streams. */
#include "helpers.h"

#include <pthread.h>

static void a_stream_keeps_its_order(void **state)
{
	static struct order order;
	static struct entry entries[1000];
	cudaStream_t stream;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	for (int i = 0; i < 1000; i++) {
		entries[i] = (struct entry){&order, i};
		assert_cuda(cudaLaunchHostFunc(stream, order_note, &entries[i]));
	}
	assert_cuda(cudaStreamSynchronize(stream));
	assert_int_equal(order.n, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(order.seen[i], i);
	assert_cuda(cudaStreamQuery(stream));
	assert_cuda(cudaStreamDestroy(stream));
}

/* Two streams each wait for the other's function to have begun: only possible side by side. */
static void two_streams_overlap(void **state)
{
	struct door a = {0}, b = {0};
	cudaStream_t one, two;

	(void)state;
	assert_cuda(cudaStreamCreate(&one));
	assert_cuda(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
	assert_cuda(cudaLaunchHostFunc(one, door_wait, &a));
	assert_cuda(cudaLaunchHostFunc(one, door_open, &b));
	door_await_visitor(&a);
	assert_cuda_is(cudaStreamQuery(one), cudaErrorNotReady);
	assert_cuda_is(cudaGetLastError(), cudaErrorNotReady);
	assert_cuda(cudaLaunchHostFunc(two, door_open, &a));
	assert_cuda(cudaLaunchHostFunc(two, door_wait, &b));
	assert_cuda(cudaStreamSynchronize(one));
	assert_cuda(cudaStreamSynchronize(two));
	assert_cuda(cudaStreamDestroy(one));
	assert_cuda(cudaStreamDestroy(two));
}

static void an_event_orders_two_streams(void **state)
{
	static struct order order;
	struct entry entries[2] = {{&order, 0}, {&order, 1}};
	struct door door = {0};
	cudaStream_t one, two;
	cudaEvent_t event;

	(void)state;
	assert_cuda(cudaStreamCreate(&one));
	assert_cuda(cudaStreamCreate(&two));
	assert_cuda(cudaEventCreate(&event));
	assert_cuda(cudaLaunchHostFunc(one, door_wait, &door));
	assert_cuda(cudaLaunchHostFunc(one, order_note, &entries[0]));
	assert_cuda(cudaEventRecord(event, one));
	assert_cuda(cudaStreamWaitEvent(two, event, 0));
	assert_cuda(cudaLaunchHostFunc(two, order_note, &entries[1]));
	door_await_visitor(&door);
	assert_cuda_is(cudaEventQuery(event), cudaErrorNotReady);
	assert_cuda_is(cudaStreamQuery(two), cudaErrorNotReady);
	assert_int_equal(order.n, 0);
	door_open(&door);
	assert_cuda(cudaStreamSynchronize(two));
	assert_cuda(cudaEventQuery(event));
	assert_cuda(cudaEventSynchronize(event));
	assert_int_equal(order.seen[0], 0);
	assert_int_equal(order.seen[1], 1);
	assert_cuda(cudaEventDestroy(event));
	assert_cuda(cudaStreamDestroy(one));
	assert_cuda(cudaStreamDestroy(two));
}

/* A wait means the record before it, not a later one; destroying either takes nothing away. */
static void a_wait_means_the_latest_record(void **state)
{
	struct door first = {0}, second = {0};
	cudaStream_t one, two;
	cudaEvent_t event;

	(void)state;
	assert_cuda(cudaStreamCreate(&one));
	assert_cuda(cudaStreamCreate(&two));
	assert_cuda(cudaEventCreate(&event));
	assert_cuda(cudaLaunchHostFunc(one, door_wait, &first));
	assert_cuda(cudaEventRecord(event, one));
	assert_cuda(cudaStreamWaitEvent(two, event, 0));
	assert_cuda(cudaLaunchHostFunc(one, door_wait, &second));
	assert_cuda(cudaEventRecord(event, one));
	assert_cuda(cudaEventDestroy(event));
	door_open(&first);
	assert_cuda(cudaStreamSynchronize(two)); /* while the second is still shut */
	assert_cuda_is(cudaStreamQuery(one), cudaErrorNotReady);
	assert_cuda(cudaStreamDestroy(one)); /* its work still runs */
	door_await_visitor(&second);
	door_open(&second);
	assert_cuda(cudaStreamDestroy(two));
	assert_cuda(cudaDeviceSynchronize());
}

static void events_measure_elapsed_time(void **state)
{
	cudaEvent_t start, end, untimed;
	cudaStream_t stream;
	float ms = -1;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaEventCreate(&start));
	assert_cuda(cudaEventCreate(&end));
	assert_cuda(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	assert_cuda_is(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);
	assert_cuda(cudaEventRecord(start, stream));
	assert_cuda(cudaLaunchHostFunc(stream, (cudaHostFn_t)(void (*)(void))usleep, (void *)3000));
	assert_cuda(cudaEventRecord(end, stream));
	assert_cuda(cudaEventRecord(untimed, stream));
	assert_cuda(cudaEventSynchronize(end));
	assert_cuda(cudaEventElapsedTime(&ms, start, end));
	assert_true(ms >= 3.0f);
	assert_cuda(cudaEventElapsedTime(&ms, end, start));
	assert_true(ms <= -3.0f);
	assert_cuda_is(cudaEventElapsedTime(&ms, start, untimed), cudaErrorInvalidResourceHandle);
	assert_cuda_is(cudaEventElapsedTime(NULL, start, end), cudaErrorInvalidValue);
	assert_cuda(cudaEventDestroy(start));
	assert_cuda(cudaEventDestroy(end));
	assert_cuda(cudaEventDestroy(untimed));
	assert_cuda(cudaStreamDestroy(stream));
}

static void an_event_that_was_never_recorded_is_done(void **state)
{
	cudaStream_t stream;
	cudaEvent_t event;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaEventCreate(&event));
	assert_cuda(cudaEventQuery(event));
	assert_cuda(cudaEventSynchronize(event));
	assert_cuda(cudaStreamWaitEvent(stream, event, 0));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaEventDestroy(event));
	assert_cuda(cudaStreamDestroy(stream));
}

/* Blocking work, then legacy work, then blocking work: one after another. A non-blocking stream
 * passes by. */
static void the_legacy_stream_orders_blocking_ones(void **state)
{
	static struct order order;
	struct entry entries[4] = {{&order, 0}, {&order, 1}, {&order, 2}, {&order, 3}};
	struct door door = {0};
	cudaStream_t one, two, free_one;

	(void)state;
	assert_cuda(cudaStreamCreate(&one));
	assert_cuda(cudaStreamCreate(&two));
	assert_cuda(cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking));
	assert_cuda(cudaLaunchHostFunc(one, door_wait, &door));
	assert_cuda(cudaLaunchHostFunc(one, order_note, &entries[1]));
	assert_cuda(cudaLaunchHostFunc(NULL, order_note, &entries[2]));
	assert_cuda(cudaLaunchHostFunc(two, order_note, &entries[3]));
	assert_cuda(cudaLaunchHostFunc(free_one, order_note, &entries[0]));
	assert_cuda(cudaStreamSynchronize(free_one));
	assert_cuda_is(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
	assert_cuda_is(cudaStreamQuery(two), cudaErrorNotReady);
	door_open(&door);
	assert_cuda(cudaStreamSynchronize(NULL));
	assert_cuda(cudaStreamSynchronize(two));
	assert_int_equal(order.n, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(order.seen[i], i);
	assert_cuda(cudaStreamDestroy(one));
	assert_cuda(cudaStreamDestroy(two));
	assert_cuda(cudaStreamDestroy(free_one));
}

/* Threads that use the legacy and blocking streams at random must not end in a deadlock. */
static void *mix(void *arg)
{
	cudaStream_t *streams = arg;
	static _Atomic int n;
	unsigned seed = (unsigned)(uintptr_t)&streams;

	for (int i = 0; i < 2000; i++) {
		unsigned which = (unsigned)rand_r(&seed) % 4;

		if (cudaLaunchHostFunc(which == 3 ? NULL : streams[which], count_up, &n))
			return (void *)1;
	}
	return NULL;
}

static void the_legacy_stream_never_deadlocks(void **state)
{
	cudaStream_t streams[3];
	pthread_t threads[3];
	void *failed;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_cuda(cudaStreamCreate(&streams[i]));
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, mix, streams), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_cuda(cudaDeviceSynchronize());
	for (int i = 0; i < 3; i++)
		assert_cuda(cudaStreamDestroy(streams[i]));
}

static void *own_stream_id(void *arg)
{
	unsigned long long *id = arg;
	_Atomic int n = 0;

	if (cudaStreamGetId(cudaStreamPerThread, id) ||
	    cudaLaunchHostFunc(cudaStreamPerThread, count_up, &n) ||
	    cudaStreamSynchronize(cudaStreamPerThread) || n != 1)
		*id = 0;
	return NULL;
}

static void each_thread_has_its_own_stream(void **state)
{
	unsigned long long mine, theirs = 0, legacy;
	pthread_t thread;

	(void)state;
	own_stream_id(&mine);
	assert_int_equal(pthread_create(&thread, NULL, own_stream_id, &theirs), 0);
	pthread_join(thread, NULL);
	assert_cuda(cudaStreamGetId(NULL, &legacy));
	assert_true(mine && theirs && mine != theirs && legacy != mine);
}

static void note_status(cudaStream_t stream, cudaError_t status, void *arg)
{
	*(void **)arg = status == cudaSuccess ? (void *)stream : NULL;
}

static void refuse_inside(void *arg)
{
	cudaError_t *errors = arg;

	errors[0] = cudaStreamSynchronize(NULL);
	errors[1] = cudaLaunchHostFunc(NULL, refuse_inside, arg);
	errors[2] = cudaGetLastError();
}

static void a_callback_runs_in_its_turn_and_may_not_call_back(void **state)
{
	cudaError_t errors[3] = {0};
	cudaStream_t stream;
	void *seen = NULL;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaStreamAddCallback(stream, note_status, &seen, 0));
	assert_cuda(cudaLaunchHostFunc(stream, refuse_inside, errors));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_ptr_equal(seen, stream);
	for (int i = 0; i < 3; i++)
		assert_cuda_is(errors[i], cudaErrorNotPermitted);
	assert_cuda_is(cudaStreamAddCallback(stream, NULL, NULL, 0), cudaErrorInvalidValue);
	assert_cuda_is(cudaStreamAddCallback(stream, note_status, NULL, 1), cudaErrorInvalidValue);
	assert_cuda(cudaStreamDestroy(stream));
}

static void a_stream_says_its_flags_priority_and_device(void **state)
{
	int least, greatest, priority, device;
	cudaStream_t stream;
	unsigned flags;

	(void)state;
	assert_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	assert_true(greatest < least);
	assert_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100));
	assert_cuda(cudaStreamGetPriority(stream, &priority));
	assert_int_equal(priority, greatest);
	assert_cuda(cudaStreamGetFlags(stream, &flags));
	assert_int_equal(flags, cudaStreamNonBlocking);
	assert_cuda(cudaStreamGetDevice(stream, &device));
	assert_int_equal(device, 0);
	assert_cuda_is(cudaStreamCreateWithFlags(&stream, 7), cudaErrorInvalidValue);
	assert_cuda_is(cudaStreamCreate(NULL), cudaErrorInvalidValue);
	assert_cuda(cudaStreamDestroy(stream));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_keeps_its_order),
		cmocka_unit_test(two_streams_overlap),
		cmocka_unit_test(an_event_orders_two_streams),
		cmocka_unit_test(a_wait_means_the_latest_record),
		cmocka_unit_test(events_measure_elapsed_time),
		cmocka_unit_test(an_event_that_was_never_recorded_is_done),
		cmocka_unit_test(the_legacy_stream_orders_blocking_ones),
		cmocka_unit_test(the_legacy_stream_never_deadlocks),
		cmocka_unit_test(each_thread_has_its_own_stream),
		cmocka_unit_test(a_callback_runs_in_its_turn_and_may_not_call_back),
		cmocka_unit_test(a_stream_says_its_flags_priority_and_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
