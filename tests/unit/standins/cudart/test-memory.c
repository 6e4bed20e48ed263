/* Allocation, registration, copies, fills, and what the runtime says about a pointer. The
 * interval map is compared with a slow obvious model through the public functions. */
#include <pthread.h>
#include <stdio.h>

#include "helpers.h"

static void a_pointer_says_its_kind_of_memory(void **state)
{
	struct cudaPointerAttributes a;
	char own[64], *device, *host, *managed;
	void *alias;
	unsigned flags;

	(void)state;
	assert_cuda(cudaSetDevice(3));
	assert_cuda(cudaMalloc((void **)&device, 100));
	assert_cuda(cudaSetDevice(0));
	assert_cuda(cudaMallocHost((void **)&host, 100));
	assert_cuda(cudaMallocManaged((void **)&managed, 100, cudaMemAttachGlobal));

	assert_cuda(cudaPointerGetAttributes(&a, device + 99));
	assert_int_equal(a.type, cudaMemoryTypeDevice);
	assert_int_equal(a.device, 3);
	assert_ptr_equal(a.devicePointer, device + 99);
	assert_null(a.hostPointer);
	assert_cuda(cudaPointerGetAttributes(&a, host));
	assert_int_equal(a.type, cudaMemoryTypeHost);
	assert_ptr_equal(a.hostPointer, host);
	assert_cuda(cudaPointerGetAttributes(&a, managed));
	assert_int_equal(a.type, cudaMemoryTypeManaged);
	assert_cuda(cudaPointerGetAttributes(&a, own));
	assert_int_equal(a.type, cudaMemoryTypeUnregistered);
	assert_null(a.devicePointer);

	assert_cuda(cudaHostRegister(own, sizeof(own), cudaHostRegisterPortable));
	assert_cuda(cudaPointerGetAttributes(&a, own + 10));
	assert_int_equal(a.type, cudaMemoryTypeHost);
	assert_cuda(cudaHostGetDevicePointer(&alias, own, 0));
	assert_ptr_equal(alias, own);
	assert_cuda(cudaHostGetFlags(&flags, own));
	assert_true(flags & cudaHostAllocPortable);
	assert_cuda_is(cudaHostRegister(own + 60, 8, 0), cudaErrorHostMemoryAlreadyRegistered);
	assert_cuda_is(cudaHostUnregister(own + 1), cudaErrorHostMemoryNotRegistered);
	assert_cuda(cudaHostUnregister(own));
	assert_cuda_is(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
	assert_cuda_is(cudaHostGetDevicePointer(&alias, own, 0), cudaErrorInvalidValue);

	assert_cuda_is(cudaFree(device + 1), cudaErrorInvalidValue);
	assert_cuda_is(cudaFree(host), cudaErrorInvalidValue);
	assert_cuda_is(cudaFreeHost(device), cudaErrorInvalidValue);
	assert_cuda(cudaFree(device));
	assert_cuda_is(cudaFree(device), cudaErrorInvalidValue);
	assert_cuda(cudaFree(managed));
	assert_cuda(cudaFreeHost(host));
	assert_cuda(cudaFree(NULL));
	assert_cuda(cudaFreeHost(NULL));
}

static void sizes_are_counted_and_given_back(void **state)
{
	size_t before, after, total, pitch;
	void *ptr = &pitch;

	(void)state;
	assert_cuda(cudaMalloc(&ptr, 0));
	assert_null(ptr);
	assert_cuda(cudaMemGetInfo(&before, &total));
	assert_true(before <= total && total > 0);
	assert_cuda(cudaMalloc(&ptr, 1 << 20));
	assert_int_equal((uintptr_t)ptr % 256, 0);
	assert_cuda(cudaMemGetInfo(&after, &total));
	assert_int_equal(before - after, 1 << 20);
	assert_cuda(cudaFree(ptr));
	assert_cuda(cudaMemGetInfo(&after, &total));
	assert_int_equal(before, after);
	assert_cuda_is(cudaMalloc(&ptr, (size_t)1 << 60), cudaErrorMemoryAllocation);
	assert_cuda_is(cudaMallocHost(&ptr, (size_t)1 << 60), cudaErrorMemoryAllocation);
	assert_cuda_is(cudaMalloc(NULL, 8), cudaErrorInvalidValue);
	assert_cuda(cudaMallocPitch(&ptr, &pitch, 100, 7));
	assert_true(pitch >= 100 && pitch % 256 == 0);
	assert_cuda(cudaMemset2D(ptr, pitch, 1, 100, 7));
	assert_cuda(cudaFree(ptr));
}

static long resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* main() says that a device has 300 GiB. What nobody touches costs nothing, on any machine. */
static void a_device_may_have_more_memory_than_the_machine(void **state)
{
	const size_t gib = (size_t)1 << 30;
	struct cudaDeviceProp prop;
	size_t left, total, before;
	char *most, *rest, *more, last = 1;
	long resident = resident_bytes();

	(void)state;
	assert_cuda(cudaMemGetInfo(&before, &total));
	assert_cuda(cudaGetDeviceProperties(&prop, 0));
	assert_int_equal(total, 300 * gib);
	assert_int_equal(prop.totalGlobalMem, 300 * gib);
	assert_cuda(cudaMalloc((void **)&most, 299 * gib));
	assert_cuda(cudaMemset(most + 299 * gib - 1, 7, 1));
	assert_cuda(cudaMemcpy(&last, most + 299 * gib - 1, 1, cudaMemcpyDeviceToHost));
	assert_int_equal(last, 7);
	assert_cuda(cudaMemcpy(&last, most + 150 * gib, 1, cudaMemcpyDeviceToHost));
	assert_int_equal(last, 0);
	if (getenv("MESON_EXE_WRAPPER"))
		print_message(
			"# resident memory is not judged: qemu-user keeps tables of its own for each page\n");
	else
		assert_true(resident_bytes() - resident < 256l << 20);
	assert_cuda(cudaMemGetInfo(&left, &total));
	assert_int_equal(before - left, 299 * gib);
	assert_cuda_is(cudaMalloc((void **)&more, gib + 1), cudaErrorMemoryAllocation);
	assert_cuda(cudaMalloc((void **)&rest, left));
	assert_cuda_is(cudaMalloc((void **)&more, 1), cudaErrorMemoryAllocation);
	assert_cuda(cudaSetDevice(1)); /* another device's is its own */
	assert_cuda(cudaMalloc((void **)&more, 2 * gib));
	assert_cuda(cudaFree(more));
	assert_cuda(cudaSetDevice(0));
	assert_cuda(cudaFree(rest));
	assert_cuda(cudaFree(most));
	assert_cuda(cudaMemGetInfo(&left, &total));
	assert_int_equal(left, before);
}

static void a_copy_must_name_its_direction_rightly(void **state)
{
	char from[256], to[256], *device, *other;

	(void)state;
	for (int i = 0; i < 256; i++)
		from[i] = (char)i;
	assert_cuda(cudaMalloc((void **)&device, 256));
	assert_cuda(cudaMalloc((void **)&other, 256));
	assert_cuda(cudaMemcpy(device, from, 256, cudaMemcpyHostToDevice));
	assert_cuda(cudaMemcpy(other, device, 256, cudaMemcpyDeviceToDevice));
	assert_cuda(cudaMemcpyPeer(device, 1, other, 0, 256));
	assert_cuda(cudaMemcpy(to, device, 256, cudaMemcpyDefault));
	assert_memory_equal(from, to, 256);
	assert_cuda(cudaMemset(device, 7, 256));
	assert_cuda(cudaMemcpy(to, device, 256, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++)
		assert_int_equal(to[i], 7);

	assert_cuda_is(cudaMemcpy(to, from, 256, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	assert_cuda_is(cudaMemcpy(to, from, 256, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	assert_cuda_is(cudaMemcpy(to, device, 256, cudaMemcpyHostToHost), cudaErrorInvalidValue);
	assert_cuda_is(cudaMemcpy(device, from, 257, cudaMemcpyHostToDevice),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaMemcpy(device + 1, from, 256, cudaMemcpyHostToDevice),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaMemcpy(to, device, 256, (enum cudaMemcpyKind)9),
		       cudaErrorInvalidMemcpyDirection);
	assert_cuda_is(cudaMemcpy(NULL, device, 256, cudaMemcpyDeviceToHost),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaMemset(to, 0, 1), cudaErrorInvalidValue);
	assert_cuda_is(cudaMemset(device, 0, 257), cudaErrorInvalidValue);
	assert_cuda_is(cudaMemcpyPeer(device, 99, other, 0, 1), cudaErrorInvalidDevice);
	assert_cuda(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
	assert_cuda(cudaFree(device));
	assert_cuda(cudaFree(other));
}

static void rows_are_copied_by_their_pitch(void **state)
{
	unsigned char from[4][8], to[4][16], *device;

	(void)state;
	memset(from, 1, sizeof(from));
	memset(to, 9, sizeof(to));
	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 5; x++)
			from[y][x] = (unsigned char)(10 * y + x);
	assert_cuda(cudaMalloc((void **)&device, 4 * 32));
	assert_cuda(cudaMemcpy2D(device, 32, from, 8, 5, 4, cudaMemcpyHostToDevice));
	assert_cuda(cudaMemset2D(device + 32, 64, 77, 2, 2)); /* the first two of rows 1 and 3 */
	assert_cuda(cudaMemcpy2D(to, 16, device, 32, 5, 4, cudaMemcpyDeviceToHost));
	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 16; x++)
			assert_int_equal(to[y][x], x >= 5                ? 9
						   : y % 2 == 1 && x < 2 ? 77
									 : 10 * y + x);
	assert_cuda_is(cudaMemcpy2D(device, 4, from, 8, 5, 4, cudaMemcpyHostToDevice),
		       cudaErrorInvalidPitchValue);
	assert_cuda_is(cudaMemcpy2D(device, SIZE_MAX / 2, from, 8, 5, 4, cudaMemcpyHostToDevice),
		       cudaErrorInvalidPitchValue);
	assert_cuda_is(cudaMemset2D(device, 32, 0, 5, 5), cudaErrorInvalidValue);
	assert_cuda(cudaMemset2D(device, 32, 0, 0, 1000));
	assert_cuda(cudaFree(device));
}

static void asynchronous_copies_wait_their_turn(void **state)
{
	struct door door = {0};
	int *value, *device, *async;
	cudaStream_t stream;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaMallocHost((void **)&value, sizeof(int)));
	*value = 0;
	assert_cuda(cudaMalloc((void **)&device, sizeof(int)));
	assert_cuda(cudaMemset(device, 0, sizeof(int)));
	assert_cuda(cudaLaunchHostFunc(stream, door_wait, &door));
	assert_cuda(cudaMallocAsync((void **)&async, sizeof(int), stream));
	assert_cuda(cudaMemsetAsync(async, 1, sizeof(int), stream));
	assert_cuda(cudaMemcpyAsync(device, async, sizeof(int), cudaMemcpyDeviceToDevice, stream));
	assert_cuda(cudaMemcpyAsync(value, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
	assert_cuda(cudaFreeAsync(async, stream));
	assert_cuda_is(cudaFreeAsync(async, stream), cudaErrorInvalidValue);
	assert_cuda_is(cudaFree(async), cudaErrorInvalidValue);
	door_await_visitor(&door);
	assert_int_equal(*value, 0);
	door_open(&door);
	assert_cuda(cudaStreamSynchronize(stream));
	assert_int_equal(*value, 0x01010101);
	assert_cuda_is(cudaMemcpy(value, async, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	assert_cuda(cudaFreeHost(value));
	assert_cuda(cudaFree(device));
	assert_cuda(cudaStreamDestroy(stream));
}

/* A synchronous copy waits for blocking streams; freeing waits for all. */
static void synchronous_copies_wait_for_the_legacy_stream(void **state)
{
	_Atomic int n = 0;
	cudaStream_t blocking, free_one;
	int *device, value;

	(void)state;
	assert_cuda(cudaStreamCreate(&blocking));
	assert_cuda(cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking));
	assert_cuda(cudaMalloc((void **)&device, sizeof(int)));
	assert_cuda(cudaMemset(device, 0, sizeof(int)));
	for (int i = 0; i < 100; i++)
		assert_cuda(cudaMemsetAsync(device, i, sizeof(int), blocking));
	assert_cuda(cudaMemcpy(&value, device, sizeof(int), cudaMemcpyDeviceToHost));
	assert_int_equal(value, 99 * 0x01010101);
	for (int i = 0; i < 100; i++)
		assert_cuda(cudaLaunchHostFunc(free_one, count_up, &n));
	assert_cuda(cudaMemsetAsync(device, 0, sizeof(int), free_one));
	assert_cuda(cudaFree(device));
	assert_int_equal(n, 100);
	assert_cuda(cudaStreamDestroy(blocking));
	assert_cuda(cudaStreamDestroy(free_one));
}

/* 20,000 registrations and look-ups in a page of memory against an array of owners. */
static void the_map_of_memory_agrees_with_a_slow_list(void **state)
{
	enum { SIZE = 512 };
	static char memory[SIZE];
	int owner[SIZE] = {0}, length[SIZE] = {0}; /* owner: 1 + start of the range, or 0 */
	struct cudaPointerAttributes a;
	unsigned seed = 7;

	(void)state;
	for (int step = 0; step < 20000; step++) {
		int at = rand_r(&seed) % SIZE, n = 1 + rand_r(&seed) % 24, is_free = 1;

		if (rand_r(&seed) % 2) {
			if (at + n > SIZE)
				continue;
			for (int i = at; i < at + n; i++)
				is_free &= owner[i] == 0;
			assert_cuda_is(cudaHostRegister(memory + at, (size_t)n, 0),
				       is_free ? cudaSuccess
					       : cudaErrorHostMemoryAlreadyRegistered);
			for (int i = at; i < at + n && is_free; i++)
				owner[i] = at + 1;
			if (is_free)
				length[at] = n;
		} else {
			assert_cuda_is(cudaHostUnregister(memory + at),
				       owner[at] == at + 1 ? cudaSuccess
							   : cudaErrorHostMemoryNotRegistered);
			for (int i = 0; owner[at] == at + 1 && i < length[at]; i++)
				if (i)
					owner[at + i] = 0;
			if (owner[at] == at + 1)
				owner[at] = 0;
		}
		at = rand_r(&seed) % SIZE;
		assert_cuda(cudaPointerGetAttributes(&a, memory + at));
		assert_int_equal(a.type,
				 owner[at] ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered);
	}
	for (int at = 0; at < SIZE; at++)
		if (owner[at] == at + 1)
			assert_cuda(cudaHostUnregister(memory + at));
}

static void *open_later(void *door)
{
	usleep(20000);
	door_open(door);
	return NULL;
}

/* Blocks @stream until another thread opens the door, some time later. */
static pthread_t block(cudaStream_t stream, struct door *door)
{
	pthread_t thread;

	*door = (struct door){0};
	assert_cuda(cudaLaunchHostFunc(stream, door_wait, door));
	assert_int_equal(pthread_create(&thread, NULL, open_later, door), 0);
	return thread;
}

/* What a program copies from its stack is on the device, whatever becomes of the stack; pinned
 * memory has to stay. */
static void pageable_sources_are_read_in_the_call(void **state)
{
	enum { SMALL = 32, LARGE = 65536 };
	char *device, *pinned, own[LARGE], got[3 * LARGE];
	struct door door = {0};
	cudaStream_t stream;

	(void)state;
	memset(own, 7, sizeof(own));
	assert_cuda(cudaMalloc((void **)&device, sizeof(got)));
	assert_cuda(cudaMallocHost((void **)&pinned, 8));
	memset(pinned, 7, 8);
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaLaunchHostFunc(stream, door_wait, &door));
	assert_cuda(cudaMemcpyAsync(device, own, SMALL, cudaMemcpyHostToDevice, stream));
	assert_cuda(cudaMemcpyAsync(device + LARGE, own, LARGE, cudaMemcpyDefault, stream));
	assert_cuda(cudaMemcpy2DAsync(device + 2 * LARGE, 20, own, 10, 6, 3, cudaMemcpyHostToDevice,
				      stream));
	assert_cuda(cudaMemcpyAsync(device + SMALL, pinned, 8, cudaMemcpyHostToDevice, stream));
	memset(own, 9, sizeof(own));
	memset(pinned, 9, 8);
	door_open(&door);
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < SMALL; i++)
		assert_int_equal(got[i], 7);
	for (int i = 0; i < LARGE; i++)
		assert_int_equal(got[LARGE + i], 7);
	for (int i = 0; i < 60; i++)
		assert_int_equal(got[2 * LARGE + i], i % 20 < 6 ? 7 : 0);
	assert_int_equal(got[SMALL], 9);
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda(cudaFreeHost(pinned));
	assert_cuda(cudaFree(device));
}

static void copies_to_pageable_memory_are_done_when_the_call_returns(void **state)
{
	enum { MANY = 65537 };
	char *device, *pinned, own[MANY];
	cudaStream_t stream;
	struct door door;
	pthread_t thread;

	(void)state;
	assert_cuda(cudaMalloc((void **)&device, MANY));
	assert_cuda(cudaMallocHost((void **)&pinned, 16));
	memset(pinned, 5, 16);
	assert_cuda(cudaMemset(device, 7, MANY));
	assert_cuda(cudaStreamCreate(&stream));
	thread = block(stream, &door);
	own[0] = 0;
	assert_cuda(cudaMemcpyAsync(own, device, 1, cudaMemcpyDeviceToHost, stream));
	assert_int_equal(own[0], 7);
	pthread_join(thread, NULL);
	thread = block(stream, &door);
	assert_cuda(cudaMemcpyAsync(pinned + 8, pinned, 8, cudaMemcpyHostToHost, stream));
	assert_int_equal(door.is_open, 1);
	pthread_join(thread, NULL);
	thread = block(stream, &door); /* too much to be read before */
	assert_cuda(cudaMemcpyAsync(device, own, MANY, cudaMemcpyHostToDevice, stream));
	assert_int_equal(door.is_open, 1);
	pthread_join(thread, NULL);
	door = (struct door){0}; /* to pinned memory the program does not wait */
	assert_cuda(cudaLaunchHostFunc(stream, door_wait, &door));
	assert_cuda(cudaMemcpyAsync(pinned, device, 1, cudaMemcpyDeviceToHost, stream));
	assert_int_equal(pinned[0], 5);
	door_open(&door);
	assert_cuda(cudaStreamSynchronize(stream));
	assert_int_equal(pinned[0], 7);
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda(cudaFreeHost(pinned));
	assert_cuda(cudaFree(device));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pointer_says_its_kind_of_memory),
		cmocka_unit_test(sizes_are_counted_and_given_back),
		cmocka_unit_test(a_device_may_have_more_memory_than_the_machine),
		cmocka_unit_test(a_copy_must_name_its_direction_rightly),
		cmocka_unit_test(rows_are_copied_by_their_pitch),
		cmocka_unit_test(asynchronous_copies_wait_their_turn),
		cmocka_unit_test(synchronous_copies_wait_for_the_legacy_stream),
		cmocka_unit_test(pageable_sources_are_read_in_the_call),
		cmocka_unit_test(copies_to_pageable_memory_are_done_when_the_call_returns),
		cmocka_unit_test(the_map_of_memory_agrees_with_a_slow_list),
	};

	setenv("NBOX_HOST_GPU_MEMORY", "300GiB", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
