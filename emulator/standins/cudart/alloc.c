/* Allocation, registration, and what a program may ask about a pointer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture.h"
#include "device.h"
#include "memory.h"
#include "runtime.h"
#include "submit.h"

#include "base/cleanup.h"

#define ALIGNMENT 512 /* what programs may rely on is 256 */

/* From here on a page of its own: fresh and zero, and given back when it is freed. */
#define MAP_BYTES (1u << 20)

/* Pages that nobody touches are not there (MAP_NORESERVE), so that a device may have more memory
 * than this machine. Device memory is zero at first, although a GPU's need not be: kernels that
 * would fill it do nothing here, and what programs then read should not differ from run to run. */
static void *device_memory_new(size_t size)
{
	void *ptr;

	if (size >= MAP_BYTES) {
		ptr = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		return ptr == MAP_FAILED ? NULL : ptr;
	}
	if (posix_memalign(&ptr, ALIGNMENT, size) != 0)
		return NULL;
	return memset(ptr, 0, size);
}

static void memory_delete(void *ptr, size_t size, bool is_device)
{
	if (is_device && size >= MAP_BYTES)
		munmap(ptr, size);
	else
		free(ptr);
}

/* Return: whether the device has as much left, which is then taken. */
static bool take(struct device *device, size_t size)
{
	size_t now = atomic_load_explicit(&device->allocated, memory_order_relaxed);
	size_t high;

	do {
		if (size > device_memory() - now)
			return false;
	} while (!atomic_compare_exchange_weak(&device->allocated, &now, now + size));
	high = atomic_load_explicit(&device->allocated_high, memory_order_relaxed);
	while (now + size > high &&
	       !atomic_compare_exchange_weak(&device->allocated_high, &high, now + size))
		;
	return true;
}

static void give_back(struct device *device, size_t size)
{
	atomic_fetch_sub_explicit(&device->allocated, size, memory_order_relaxed);
}

cudaError_t memory_allocate(void **ret, size_t size, enum memory_origin origin, unsigned flags)
{
	struct device *device = device_current();
	struct memory_range range = {.size = size, .origin = origin, .flags = flags};
	bool is_device = origin == MEMORY_DEVICE || origin == MEMORY_MANAGED;
	void *ptr;

	if (!ret)
		return cudaErrorInvalidValue;
	if (!device)
		return cudaErrorNoDevice;
	*ret = NULL;
	if (size == 0)
		return cudaSuccess;
	if (is_device && !take(device, size))
		return cudaErrorMemoryAllocation;
	if (is_device)
		ptr = device_memory_new(size);
	else if (posix_memalign(&ptr, ALIGNMENT, size) != 0)
		ptr = NULL;
	if (!ptr) {
		if (is_device)
			give_back(device, size);
		return cudaErrorMemoryAllocation;
	}
	range.start = (uintptr_t)ptr;
	range.device = device->ordinal;
	device_use(device);
	if (memory_map_add(&range) != 0) {
		memory_delete(ptr, size, is_device);
		if (is_device)
			give_back(device, size);
		return cudaErrorMemoryAllocation;
	}
	*ret = ptr;
	return cudaSuccess;
}

static cudaError_t enter_unsafe(void)
{
	cudaError_t error = runtime_enter();

	return error == cudaSuccess ? capture_check_unsafe() : error;
}

void memory_release(void *ptr)
{
	struct memory_range range;
	bool is_device;

	if (!memory_map_remove(ptr, &range))
		return;
	is_device = range.origin == MEMORY_DEVICE || range.origin == MEMORY_MANAGED;
	if (is_device)
		give_back(device_get(range.device), range.size);
	memory_delete(ptr, range.size, is_device);
}

cudaError_t cudaMalloc(void **ptr, size_t size)
{
	cudaError_t error = enter_unsafe();

	if (error == cudaSuccess)
		error = memory_allocate(ptr, size, MEMORY_DEVICE, 0);
	return runtime_return(error);
}

cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	size_t size;

	if (!pitch || width > SIZE_MAX - ALIGNMENT)
		return runtime_return(cudaErrorInvalidValue);
	*pitch = (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (__builtin_mul_overflow(*pitch, height, &size))
		return runtime_return(cudaErrorMemoryAllocation);
	return cudaMalloc(ptr, size);
}

cudaError_t cudaMallocManaged(void **ptr, size_t size, unsigned int flags)
{
	cudaError_t error = enter_unsafe();

	if (error == cudaSuccess &&
	    (size == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		error = memory_allocate(ptr, size, MEMORY_MANAGED, flags);
	return runtime_return(error);
}

/* A device's own memory is no business of another device's streams: a rank may stand there in an op
 * that waits for the rank that calls this. Managed memory may be in use on any device. */
cudaError_t cudaFree(void *ptr)
{
	cudaError_t error = enter_unsafe();
	struct memory_range range;

	if (error != cudaSuccess || !ptr)
		return runtime_return(error);
	/* From here on nobody else can free it. */
	if (!memory_map_leave(ptr) || !memory_map_find(ptr, &range))
		return runtime_return(cudaErrorInvalidValue);
	for (int i = 0; i < device_count(); i++)
		if ((range.origin == MEMORY_MANAGED || range.device == i) &&
		    !streams_drain(device_get(i), false))
			return runtime_return(cudaErrorCudartUnloading);
	memory_release(ptr);
	return cudaSuccess;
}

/* The address is there at once; a stream that uses it before @stream gets here is as wrong as on a
 * GPU, and as unpunished as it mostly is there. */
cudaError_t cudaMallocAsync(void **ptr, size_t size, cudaStream_t handle)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess)
		error = capture_check_wait(stream);
	if (error == cudaSuccess)
		error = memory_allocate(ptr, size, MEMORY_DEVICE, 0);
	return runtime_return(error);
}

static void free_run(const struct command *command)
{
	memory_release(command->ptr);
}

static const struct command_type free_command = {.run = free_run};

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t handle)
{
	struct command command = {.type = &free_command, .ptr = ptr};
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess)
		error = capture_check_wait(stream);
	if (error == cudaSuccess && !memory_map_leave(ptr))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		error = stream_enqueue(stream, &command);
	return runtime_return(error);
}

cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	cudaError_t error = enter_unsafe();

	if (error == cudaSuccess &&
	    flags & ~(unsigned)(cudaHostAllocPortable | cudaHostAllocMapped |
				cudaHostAllocWriteCombined))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		error = memory_allocate(ptr, size, MEMORY_HOST, flags);
	return runtime_return(error);
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *ptr)
{
	cudaError_t error = enter_unsafe();
	struct memory_range range;

	if (error != cudaSuccess || !ptr)
		return runtime_return(error);
	if (!memory_map_find(ptr, &range) || range.origin != MEMORY_HOST ||
	    !memory_map_remove(ptr, &range))
		return runtime_return(cudaErrorInvalidValue);
	free(ptr);
	return cudaSuccess;
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	struct memory_range range = {
		.start = (uintptr_t)ptr,
		.size = size,
		.origin = MEMORY_REGISTERED,
		.flags = flags,
	};
	struct device *device = device_current();
	cudaError_t error = enter_unsafe();

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!device)
		return runtime_return(cudaErrorNoDevice);
	if (!ptr || !size || size > SIZE_MAX - (uintptr_t)ptr || flags & ~15u)
		return runtime_return(cudaErrorInvalidValue);
	range.device = device->ordinal;
	switch (memory_map_add(&range)) {
	case 0:
		return cudaSuccess;
	case -EEXIST:
		return runtime_return(cudaErrorHostMemoryAlreadyRegistered);
	default:
		return runtime_return(cudaErrorMemoryAllocation);
	}
}

cudaError_t cudaHostUnregister(void *ptr)
{
	cudaError_t error = enter_unsafe();
	struct memory_range range;

	if (error == cudaSuccess &&
	    (!memory_map_find(ptr, &range) || range.origin != MEMORY_REGISTERED ||
	     !memory_map_remove(ptr, &range)))
		error = cudaErrorHostMemoryNotRegistered;
	return runtime_return(error);
}

static bool find_host(const void *ptr, struct memory_range *range)
{
	return memory_map_find(ptr, range) &&
	       (range->origin == MEMORY_HOST || range->origin == MEMORY_REGISTERED);
}

cudaError_t cudaHostGetDevicePointer(void **device_ptr, void *host_ptr, unsigned int flags)
{
	cudaError_t error = runtime_enter();
	struct memory_range range;

	if (error == cudaSuccess && (!device_ptr || flags || !find_host(host_ptr, &range)))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		*device_ptr = host_ptr;
	return runtime_return(error);
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *ptr)
{
	cudaError_t error = runtime_enter();
	struct memory_range range;

	if (error == cudaSuccess && (!flags || !find_host(ptr, &range)))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		*flags = range.flags | cudaHostAllocMapped; /* all host memory is mapped here */
	return runtime_return(error);
}

/* CUDA 12's programs have no room for what CUDA 13 appended. */
#if NBOX_CUDART_MAJOR >= 13
#define POINTER_ATTRIBUTES_BYTES sizeof(struct cudaPointerAttributes)
#else
#define POINTER_ATTRIBUTES_BYTES offsetof(struct cudaPointerAttributes, reserved)
#endif

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *ret, const void *ptr)
{
	static const enum cudaMemoryType types[] = {
		[MEMORY_DEVICE] = cudaMemoryTypeDevice,
		[MEMORY_MANAGED] = cudaMemoryTypeManaged,
		[MEMORY_HOST] = cudaMemoryTypeHost,
		[MEMORY_REGISTERED] = cudaMemoryTypeHost,
	};
	struct cudaPointerAttributes attributes = {0};
	struct memory_range range;
	/* Drops const: the ABI's fields are plain pointers. */
	void *plain = (void *)(uintptr_t)ptr;

	if (!ret || !ptr)
		return runtime_return(cudaErrorInvalidValue);
	if (!memory_map_find(ptr, &range)) {
		attributes.type = cudaMemoryTypeUnregistered;
		attributes.device = cudaInvalidDeviceId;
		attributes.hostPointer = plain;
	} else {
		attributes.type = types[range.origin];
		attributes.device = range.device;
		attributes.devicePointer = plain;
		attributes.hostPointer = range.origin == MEMORY_DEVICE ? NULL : plain;
	}
	memcpy(ret, &attributes, POINTER_ATTRIBUTES_BYTES);
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	struct device *device = device_current();
	cudaError_t error = runtime_enter();
	size_t allocated;

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!device)
		return runtime_return(cudaErrorNoDevice);
	if (!free_bytes || !total)
		return runtime_return(cudaErrorInvalidValue);
	allocated = atomic_load_explicit(&device->allocated, memory_order_relaxed);
	*total = device_memory();
	*free_bytes = allocated < *total ? *total - allocated : 0;
	return cudaSuccess;
}
