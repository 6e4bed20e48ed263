/* The functions that create, query, wait for and use streams and devices. */
#include "capture.h"
#include "device.h"
#include "pace.h"
#include "submit.h"

#include "base/cleanup.h"

#define PRIORITY_GREATEST (-5)
#define PRIORITY_LEAST 0

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret_stream, unsigned int flags, int priority)
{
	struct device *device = device_current();
	cudaError_t error = runtime_enter();
	struct stream *stream;

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!device)
		return runtime_return(cudaErrorNoDevice);
	if (!ret_stream || flags & ~(unsigned)cudaStreamNonBlocking)
		return runtime_return(cudaErrorInvalidValue);
	if (priority > PRIORITY_LEAST)
		priority = PRIORITY_LEAST;
	if (priority < PRIORITY_GREATEST)
		priority = PRIORITY_GREATEST;
	stream = stream_new(device, STREAM_USER, flags, priority);
	if (!stream)
		return runtime_return(cudaErrorMemoryAllocation);
	if (object_publish(&stream->object) == 0) {
		*ret_stream = (cudaStream_t)stream->object.handle;
	} else {
		stream_close(stream);
		error = cudaErrorMemoryAllocation;
	}
	stream_unref(stream);
	return runtime_return(error);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	stream = object_retire(OBJECT_STREAM, (uintptr_t)handle);
	if (!stream)
		return runtime_return(cudaErrorInvalidResourceHandle);
	capture_forget(stream);
	stream_close(stream);
	return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess)
		error = capture_check_wait(stream);
	if (error == cudaSuccess && !stream_is_done(stream))
		error = cudaErrorNotReady;
	return runtime_return(error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);
	bool is_done;

	if (error == cudaSuccess)
		error = capture_check_wait(stream);
	if (error != cudaSuccess)
		return runtime_return(error);
	/* The legacy stream's own work, and that of all who synchronise with it. */
	is_done = stream->role == STREAM_LEGACY ? streams_drain(stream->device, true)
						: stream_wait(stream, stream_n_queued(stream));
	return runtime_return(is_done ? cudaSuccess : cudaErrorCudartUnloading);
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess && !flags)
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		*flags = stream->flags;
	return runtime_return(error);
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess && !priority)
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		*priority = stream->priority;
	return runtime_return(error);
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *id)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess && !id)
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		*id = stream->id;
	return runtime_return(error);
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess && !device)
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		*device = stream->device->ordinal;
	return runtime_return(error);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t fn, void *user_data)
{
	struct command command = {.type = &command_host};
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess && !fn)
		error = cudaErrorInvalidValue;
	command.host.fn = fn;
	command.host.arg = user_data;
	if (error == cudaSuccess)
		error = stream_submit(stream, &command);
	return runtime_return(error);
}

static void callback_run(const struct command *command)
{
	runtime_callback_begin();
	command->callback.fn(command->callback.stream, cudaSuccess, command->callback.arg);
	runtime_callback_end();
	pace_not_before_now();
}

static const struct command_type callback_command = {.run = callback_run};

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback,
				  void *user_data, unsigned int flags)
{
	struct command command = {.type = &callback_command};
	CLEANUP(stream_putp) struct stream *stream = NULL;
	cudaError_t error = stream_look(handle, &stream);

	if (error == cudaSuccess && (!callback || flags))
		error = cudaErrorInvalidValue;
	command.callback.fn = callback;
	command.callback.stream = handle;
	command.callback.arg = user_data;
	if (error == cudaSuccess)
		error = stream_submit(stream, &command);
	return runtime_return(error);
}

cudaError_t cudaDeviceSynchronize(void)
{
	struct device *device = device_current();
	cudaError_t error = runtime_enter();

	if (error == cudaSuccess && !device)
		error = cudaErrorNoDevice;
	if (error == cudaSuccess)
		error = capture_check_unsafe();
	if (error == cudaSuccess && !streams_drain(device, false))
		error = cudaErrorCudartUnloading;
	return runtime_return(error);
}

cudaError_t cudaDeviceReset(void)
{
	return cudaDeviceSynchronize();
}
