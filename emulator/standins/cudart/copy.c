/* Copies and fills, synchronous and in a stream. A synchronous one waits for what the legacy
 * stream would wait for, then works in the caller's thread.
 *
 * Of a copy in a stream the program may use its pageable memory again when the call returns, as
 * with CUDA: up to 64 KiB that a device shall get are read in the call; what is larger, or goes to
 * pageable memory or from host to host, is done then. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "device.h"
#include "kernel-time.h"
#include "memory.h"
#include "pace.h"
#include "runtime.h"
#include "submit.h"

#include "base/cleanup.h"

#define STAGED_MAX_BYTES 65536 /* CUDA's programming guide: such copies are asynchronous */

static void copy_rows(const struct command *command)
{
	const char *src = command->copy.src;
	char *dst = command->copy.dst;

	/* Nothing to copy may come with NULL. */
	for (size_t y = 0; command->copy.width && y < command->copy.height; y++) {
		memmove(dst, src, command->copy.width);
		dst += command->copy.dpitch;
		src += command->copy.spitch;
	}
}

static void copy_run(const struct command *command)
{
	copy_rows(command);
	command_take_time(command);
}

static void fill_run(const struct command *command)
{
	char *dst = command->fill.dst;

	for (size_t y = 0; command->fill.width && y < command->fill.height; y++) {
		memset(dst, command->fill.value, command->fill.width);
		dst += command->fill.pitch;
	}
	command_take_time(command);
}

static void staged_drop(struct command *command)
{
	free((void *)(uintptr_t)command->copy.src);
}

static void small_run(const struct command *command)
{
	memcpy(command->small.dst, command->small.bytes, command->small.n);
	command_take_time(command);
}

static const struct command_type staged_type = {.run = copy_run, .drop = staged_drop};
static const struct command_type small_type = {.run = small_run};

static const struct command_type copy_type = {
	.run = copy_run,
	.is_capturable = true,
	.node = cudaGraphNodeTypeMemcpy,
};

static const struct command_type fill_type = {
	.run = fill_run,
	.is_capturable = true,
	.node = cudaGraphNodeTypeMemset,
};

/* Bytes from the first to the last of @height rows; false when that overflows or rows overlap. */
static bool extent(size_t pitch, size_t width, size_t height, size_t *ret_bytes)
{
	size_t bytes;

	if (height > 1 && pitch < width)
		return false;
	if (width == 0 || height == 0) {
		*ret_bytes = 0;
		return true;
	}
	if (__builtin_mul_overflow(pitch, height - 1, &bytes) ||
	    __builtin_add_overflow(bytes, width, &bytes))
		return false;
	*ret_bytes = bytes;
	return true;
}

static cudaError_t price(struct command *command, enum kernel_copy kind, uint64_t bytes)
{
	return kernel_time_of_copy(kind, bytes, &command->takes_ns) ? cudaSuccess
								    : cudaErrorInvalidValue;
}

/* Says in @command, too, how long it takes. */
static cudaError_t check_copy(struct command *command, enum cudaMemcpyKind kind)
{
	bool is_src_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
	bool is_dst_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	const void *dst = command->copy.dst, *src = command->copy.src;
	size_t n_dst, n_src;

	if ((unsigned)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (!extent(command->copy.dpitch, command->copy.width, command->copy.height, &n_dst) ||
	    !extent(command->copy.spitch, command->copy.width, command->copy.height, &n_src))
		return cudaErrorInvalidPitchValue;
	if (n_dst == 0)
		return cudaSuccess;
	if (kind == cudaMemcpyDefault) {
		is_src_device = memory_is_device_usable(src, n_src);
		is_dst_device = memory_is_device_usable(dst, n_dst);
	}
	if (!(is_src_device ? memory_is_device_usable : memory_is_host_usable)(src, n_src) ||
	    !(is_dst_device ? memory_is_device_usable : memory_is_host_usable)(dst, n_dst))
		return cudaErrorInvalidValue;
	return price(command,
		     is_src_device   ? (is_dst_device ? COPY_DEVICE : COPY_TO_HOST)
		     : is_dst_device ? COPY_TO_DEVICE
				     : COPY_HOST,
		     command->copy.width * command->copy.height);
}

static cudaError_t check_fill(struct command *command)
{
	size_t n;

	if (!extent(command->fill.pitch, command->fill.width, command->fill.height, &n))
		return cudaErrorInvalidPitchValue;
	if (n && !memory_is_device_usable(command->fill.dst, n))
		return cudaErrorInvalidValue;
	return price(command, COPY_FILL, command->fill.width * command->fill.height);
}

static cudaError_t do_now(const struct command *command)
{
	struct device *device = device_current();
	cudaError_t error;

	if (!device)
		return cudaErrorNoDevice;
	error = capture_check_legacy(device);
	if (error == cudaSuccess)
		error = capture_check_unsafe();
	if (error != cudaSuccess)
		return error;
	if (!streams_drain(device, true))
		return cudaErrorCudartUnloading;
	pace_not_before_now();
	command_run(command);
	return cudaSuccess;
}

static cudaError_t do_in_stream(const struct command *command, cudaStream_t handle)
{
	CLEANUP(stream_putp) struct stream *stream = stream_get(handle);

	return stream ? stream_submit(stream, command) : cudaErrorInvalidResourceHandle;
}

/* --- pageable memory -----------------------------------------------------------------------------
 */

enum place { PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE };

static enum place place_of(const void *ptr)
{
	struct memory_range range;

	if (!memory_map_find(ptr, &range))
		return PLACE_PAGEABLE;
	return range.origin == MEMORY_HOST || range.origin == MEMORY_REGISTERED ? PLACE_PINNED
										: PLACE_DEVICE;
}

/* Lets @command, a copy of @n bytes, bring its source along. */
static cudaError_t stage(struct command *command, size_t n)
{
	struct command now = *command;
	char *own;

	if (n <= sizeof(command->small.bytes) && command->copy.height == 1) {
		command->type = &small_type;
		command->small.dst = now.copy.dst;
		command->small.n = n;
		memcpy(command->small.bytes, now.copy.src, n);
		return cudaSuccess;
	}
	own = malloc(n);
	if (!own)
		return cudaErrorMemoryAllocation;
	command->type = &staged_type;
	command->copy.src = now.copy.dst = own;
	command->copy.spitch = now.copy.dpitch = now.copy.width;
	copy_rows(&now);
	return cudaSuccess;
}

static cudaError_t copy_in_stream(struct command *command, cudaStream_t handle)
{
	CLEANUP(stream_putp) struct stream *stream = stream_get(handle);
	size_t n = command->copy.width * command->copy.height;
	bool is_waited = false;
	enum place dst, src;
	cudaError_t error = cudaSuccess;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	/* A graph's copy has its memory at the launch. Acquire pairs with the release in capture.c.
	 */
	if (n && !atomic_load_explicit(&stream->capture, memory_order_acquire)) {
		dst = place_of(command->copy.dst);
		src = place_of(command->copy.src);
		is_waited = dst == PLACE_PAGEABLE || (dst == PLACE_PINNED && src != PLACE_DEVICE) ||
			    (src == PLACE_PAGEABLE && n > STAGED_MAX_BYTES);
		if (src == PLACE_PAGEABLE && !is_waited)
			error = stage(command, n);
	}
	if (error == cudaSuccess)
		error = stream_submit(stream, command);
	if (error == cudaSuccess && is_waited && !stream_wait(stream, stream_n_queued(stream)))
		error = cudaErrorCudartUnloading;
	return error;
}

static struct command copy_command(void *dst, size_t dpitch, const void *src, size_t spitch,
				   size_t width, size_t height)
{
	struct command command = {.type = &copy_type};

	command.copy.dst = dst;
	command.copy.src = src;
	command.copy.dpitch = dpitch;
	command.copy.spitch = spitch;
	command.copy.width = width;
	command.copy.height = height;
	return command;
}

static cudaError_t copy(struct command *command, enum cudaMemcpyKind kind,
			const cudaStream_t *stream)
{
	cudaError_t error = runtime_enter();

	if (error == cudaSuccess)
		error = check_copy(command, kind);
	if (error == cudaSuccess)
		error = stream ? copy_in_stream(command, *stream) : do_now(command);
	return runtime_return(error);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	struct command command = copy_command(dst, count, src, count, count, 1);

	return copy(&command, kind, NULL);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	struct command command = copy_command(dst, count, src, count, count, 1);

	return copy(&command, kind, &stream);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			 size_t height, enum cudaMemcpyKind kind)
{
	struct command command = copy_command(dst, dpitch, src, spitch, width, height);

	return copy(&command, kind, NULL);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	struct command command = copy_command(dst, dpitch, src, spitch, width, height);

	return copy(&command, kind, &stream);
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t count)
{
	if (!device_get(dst_device) || !device_get(src_device))
		return runtime_return(cudaErrorInvalidDevice);
	return cudaMemcpy(dst, src, count, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
				size_t count, cudaStream_t stream)
{
	if (!device_get(dst_device) || !device_get(src_device))
		return runtime_return(cudaErrorInvalidDevice);
	return cudaMemcpyAsync(dst, src, count, cudaMemcpyDeviceToDevice, stream);
}

static cudaError_t fill(void *dst, size_t pitch, int value, size_t width, size_t height,
			const cudaStream_t *stream)
{
	struct command command = {.type = &fill_type};
	cudaError_t error = runtime_enter();

	command.fill.dst = dst;
	command.fill.pitch = pitch;
	command.fill.value = value;
	command.fill.width = width;
	command.fill.height = height;
	if (error == cudaSuccess)
		error = check_fill(&command);
	if (error == cudaSuccess)
		error = stream ? do_in_stream(&command, *stream) : do_now(&command);
	return runtime_return(error);
}

cudaError_t cudaMemset(void *ptr, int value, size_t count)
{
	return fill(ptr, count, value, count, 1, NULL);
}

cudaError_t cudaMemsetAsync(void *ptr, int value, size_t count, cudaStream_t stream)
{
	return fill(ptr, count, value, count, 1, &stream);
}

cudaError_t cudaMemset2D(void *ptr, size_t pitch, int value, size_t width, size_t height)
{
	return fill(ptr, pitch, value, width, height, NULL);
}
