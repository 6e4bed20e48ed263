/* See event.h. */
#include "event.h"

#include <stdlib.h>

#include "graph.h"
#include "mark.h"
#include "pace.h"
#include "submit.h"

#include "base/cleanup.h"

static void event_free(struct object *object)
{
	struct event *event = container_of(object, struct event, object);

	mark_unref(event->mark);
	node_set_deinit(&event->point.captured);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

struct event *event_get(cudaEvent_t handle)
{
	return object_get(OBJECT_EVENT, (uintptr_t)handle);
}

void event_putp(struct event **event)
{
	if (*event)
		object_unref(&(*event)->object);
}

struct mark *event_mark(struct event *event)
{
	struct mark *mark;

	pthread_mutex_lock(&event->lock);
	mark = mark_ref(event->mark);
	pthread_mutex_unlock(&event->lock);
	return mark;
}

struct mark *event_rearm(struct event *event)
{
	struct mark *mark = mark_new(), *old;

	if (!mark)
		return NULL;
	pthread_mutex_lock(&event->lock);
	old = event->mark;
	event->mark = mark_ref(mark);
	pthread_mutex_unlock(&event->lock);
	mark_unref(old);
	return mark;
}

static void pass_run(const struct command *command)
{
	mark_pass(command->mark, pace_ns());
}

static void wait_run(const struct command *command)
{
	if (mark_wait(command->mark))
		pace_not_before(command->mark->time_ns);
}

static void mark_drop(struct command *command)
{
	mark_unref(command->mark);
}

static const struct command_type pass_command = {.run = pass_run, .drop = mark_drop};
static const struct command_type wait_command = {.run = wait_run, .drop = mark_drop};

static void event_drop(struct command *command)
{
	object_unref(&command->event->object);
}

static void event_copied(const struct command *command)
{
	object_ref(&command->event->object);
}

/* A launch of the graph runs these two itself: with the marks of that launch. */
const struct command_type event_record_command = {
	.drop = event_drop,
	.copied = event_copied,
	.is_capturable = true,
	.node = cudaGraphNodeTypeEventRecord,
};

const struct command_type event_follow_command = {
	.drop = event_drop,
	.copied = event_copied,
	.is_capturable = true,
	.node = cudaGraphNodeTypeWaitEvent,
};

static void mark_putp(struct mark **mark)
{
	mark_unref(*mark);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned int flags)
{
	cudaError_t error = runtime_enter();
	struct event *event;

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!ret_event || flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
		/* Interprocess events need a driver that spans processes. */
		return runtime_return(ret_event && flags & cudaEventInterprocess
					      ? cudaErrorNotSupported
					      : cudaErrorInvalidValue);
	event = calloc(1, sizeof(*event));
	if (!event)
		return runtime_return(cudaErrorMemoryAllocation);
	object_init(&event->object, OBJECT_EVENT, event_free);
	pthread_mutex_init(&event->lock, NULL);
	event->flags = flags;
	if (object_publish(&event->object) == 0)
		*ret_event = (cudaEvent_t)event->object.handle;
	else
		error = cudaErrorMemoryAllocation;
	object_unref(&event->object);
	return runtime_return(error);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
	CLEANUP(event_putp) struct event *event = NULL;
	cudaError_t error = runtime_enter();

	if (error == cudaSuccess) {
		event = object_retire(OBJECT_EVENT, (uintptr_t)handle);
		if (!event)
			error = cudaErrorInvalidResourceHandle;
	}
	return runtime_return(error);
}

static cudaError_t event_record(struct event *event, struct stream *stream, unsigned flags)
{
	struct command pass = {.type = &pass_command};
	struct command node = {.type = &event_record_command, .event = event};
	CLEANUP(mark_putp) struct mark *mark = NULL;
	bool is_captured = false;
	cudaError_t error;

	if (flags & cudaEventRecordExternal) {
		if (!atomic_load_explicit(&stream->capture, memory_order_acquire))
			return cudaErrorIllegalState;
		object_ref(&event->object);
		return stream_submit(stream, &node);
	}
	error = capture_record(stream, &event->point, &is_captured);
	if (is_captured || error != cudaSuccess)
		return error;
	if (stream->role == STREAM_LEGACY) {
		error = capture_check_legacy(stream->device);
		if (error != cudaSuccess)
			return error;
	}
	mark = event_rearm(event);
	if (!mark)
		return cudaErrorMemoryAllocation;
	pass.mark = mark_ref(mark);
	error = stream_enqueue(stream, &pass);
	if (error != cudaSuccess)
		mark_pass(mark, mark_now_ns()); /* nobody else will */
	return error;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle,
				     unsigned int flags)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	CLEANUP(event_putp) struct event *event = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	if (flags & ~(unsigned)cudaEventRecordExternal)
		return runtime_return(cudaErrorInvalidValue);
	event = event_get(handle);
	stream = stream_get(stream_handle);
	if (!event || !stream)
		return runtime_return(cudaErrorInvalidResourceHandle);
	return runtime_return(event_record(event, stream, flags));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

static cudaError_t event_follow(struct stream *stream, struct event *event, unsigned flags)
{
	struct command wait = {.type = &wait_command};
	struct command node = {.type = &event_follow_command, .event = event};
	bool is_captured = false;
	cudaError_t error;

	if (flags & cudaEventWaitExternal) {
		if (!atomic_load_explicit(&stream->capture, memory_order_acquire))
			return cudaErrorIllegalState;
		object_ref(&event->object);
		return stream_submit(stream, &node);
	}
	error = capture_wait(stream, &event->point, &is_captured);
	if (is_captured || error != cudaSuccess)
		return error;
	wait.mark = event_mark(event);
	if (!wait.mark)
		return cudaSuccess; /* never recorded: nothing to wait for */
	return stream_submit(stream, &wait);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned int flags)
{
	CLEANUP(stream_putp) struct stream *stream = NULL;
	CLEANUP(event_putp) struct event *event = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	if (flags & ~(unsigned)cudaEventWaitExternal)
		return runtime_return(cudaErrorInvalidValue);
	event = event_get(handle);
	stream = stream_get(stream_handle);
	if (!event || !stream)
		return runtime_return(cudaErrorInvalidResourceHandle);
	return runtime_return(event_follow(stream, event, flags));
}

/* The part that query and synchronize share: *ret_mark is the mark to look at, or NULL. */
static cudaError_t event_look(cudaEvent_t handle, struct mark **ret_mark)
{
	CLEANUP(event_putp) struct event *event = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return error;
	event = event_get(handle);
	if (!event)
		return cudaErrorInvalidResourceHandle;
	error = capture_check_point(&event->point);
	if (error == cudaSuccess)
		error = capture_check_unsafe();
	if (error == cudaSuccess)
		*ret_mark = event_mark(event);
	return error;
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
	CLEANUP(mark_putp) struct mark *mark = NULL;
	cudaError_t error = event_look(handle, &mark);

	if (error == cudaSuccess && mark && !mark_is_passed(mark))
		error = cudaErrorNotReady;
	return runtime_return(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
	CLEANUP(mark_putp) struct mark *mark = NULL;
	cudaError_t error = event_look(handle, &mark);

	if (error == cudaSuccess && mark && !mark_wait(mark))
		error = cudaErrorCudartUnloading;
	return runtime_return(error);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start_handle, cudaEvent_t end_handle)
{
	CLEANUP(event_putp) struct event *start = event_get(start_handle);
	CLEANUP(event_putp) struct event *end = event_get(end_handle);
	CLEANUP(mark_putp) struct mark *from = NULL;
	CLEANUP(mark_putp) struct mark *to = NULL;
	cudaError_t error = runtime_enter();

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!ms)
		return runtime_return(cudaErrorInvalidValue);
	if (!start || !end || (start->flags | end->flags) & cudaEventDisableTiming)
		return runtime_return(cudaErrorInvalidResourceHandle);
	from = event_mark(start);
	to = event_mark(end);
	if (!from || !to)
		return runtime_return(cudaErrorInvalidResourceHandle);
	if (!mark_is_passed(from) || !mark_is_passed(to))
		return runtime_return(cudaErrorNotReady);
	*ms = (float)((double)((int64_t)(to->time_ns - from->time_ns)) / 1e6);
	return cudaSuccess;
}

static cudaError_t add_node(cudaGraphNode_t *node, cudaGraph_t graph,
			    const cudaGraphNode_t *dependencies, size_t n, cudaEvent_t handle,
			    const struct command_type *type)
{
	struct event *event = event_get(handle);
	struct command command = {.type = type, .event = event};
	cudaError_t error = cudaErrorInvalidValue;

	if (event)
		error = graph_add_node(node, graph, dependencies, n, &command);
	if (error != cudaSuccess)
		event_putp(&event);
	return runtime_return(error);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
					const cudaGraphNode_t *dependencies, size_t n_dependencies,
					cudaEvent_t event)
{
	return add_node(node, graph, dependencies, n_dependencies, event, &event_record_command);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
				      const cudaGraphNode_t *dependencies, size_t n_dependencies,
				      cudaEvent_t event)
{
	return add_node(node, graph, dependencies, n_dependencies, event, &event_follow_command);
}
