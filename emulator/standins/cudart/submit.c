/* See submit.h. */
#include "submit.h"

#include <stdlib.h>

#include "capture.h"
#include "device.h"

cudaError_t stream_submit(struct stream *stream, const struct command *command)
{
	struct command rest = *command;
	bool is_captured = false;
	cudaError_t error = cudaSuccess;

	/* Acquire pairs with the release in capture.c; NULL is the answer in all but captures. */
	if (atomic_load_explicit(&stream->capture, memory_order_acquire))
		error = capture_add(stream, command, &is_captured);
	else if (stream->role == STREAM_LEGACY)
		error = capture_check_legacy(stream->device);
	if (error != cudaSuccess) {
		command_deinit(&rest);
		return error;
	}
	return is_captured ? cudaSuccess : stream_enqueue(stream, command);
}

/* --- which stream a handle means ------------------------------------------------------------- */

static _Thread_local struct stream **thread_streams; /* by device ordinal; owned */
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static void thread_streams_end(void *arg)
{
	struct stream **streams = arg;

	for (int i = 0; i < MAX_DEVICES; i++) {
		if (!streams[i])
			continue;
		capture_forget(streams[i]);
		stream_close(streams[i]);
		stream_unref(streams[i]);
	}
	free(streams);
}

static void thread_key_make(void)
{
	pthread_key_create(&thread_key, thread_streams_end);
}

static struct stream *stream_get_per_thread(struct device *device)
{
	struct stream **slot;

	pthread_once(&thread_once, thread_key_make);
	if (!thread_streams) {
		thread_streams = calloc(MAX_DEVICES, sizeof(struct stream *));
		if (!thread_streams)
			return NULL;
		pthread_setspecific(thread_key, thread_streams);
	}
	slot = &thread_streams[device->ordinal];
	if (!*slot)
		*slot = stream_new(device, STREAM_PER_THREAD, 0, 0);
	return *slot;
}

struct stream *stream_get(cudaStream_t handle)
{
	struct device *device = device_current();
	struct stream *stream = NULL;

	if (handle != NULL && handle != cudaStreamLegacy && handle != cudaStreamPerThread)
		return object_get(OBJECT_STREAM, (uintptr_t)handle);
	if (device)
		stream = handle == cudaStreamPerThread ? stream_get_per_thread(device)
						       : stream_legacy(device);
	if (stream)
		object_ref(&stream->object);
	return stream;
}

cudaError_t stream_look(cudaStream_t handle, struct stream **ret_stream)
{
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return error;
	*ret_stream = stream_get(handle);
	return *ret_stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
}
