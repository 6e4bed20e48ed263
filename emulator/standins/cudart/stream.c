/* See stream.h. */
#include "stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device.h"
#include "node-set.h"
#include "pace.h"

#include "base/cleanup.h"
#include "base/clock.h"

static atomic_ullong next_id = 1;

static void stream_free(struct object *object)
{
	struct stream *stream = container_of(object, struct stream, object);
	struct command *command, *next;

	for (command = stream->head; command; command = next) {
		next = command->next;
		command_deinit(command);
		free(command);
	}
	if (stream->frontier)
		node_set_deinit(stream->frontier);
	free(stream->frontier);
	free(stream->info);
	pthread_cond_destroy(&stream->work);
	pthread_cond_destroy(&stream->done);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
}

static void device_lock(struct device *device)
{
	pthread_mutex_lock(&device->lock);
}

static void device_unlock(struct device *device)
{
	pthread_mutex_unlock(&device->lock);
}

/* Called with the device's lock held. */
static void stream_link(struct stream *stream)
{
	struct device *device = stream->device;

	stream->next = device->streams;
	if (stream->next)
		stream->next->pprev = &stream->next;
	stream->pprev = &device->streams;
	device->streams = stream;
}

static void stream_unlink(struct stream *stream)
{
	struct device *device = stream->device;

	device_lock(device);
	if (stream->pprev) {
		*stream->pprev = stream->next;
		if (stream->next)
			stream->next->pprev = stream->pprev;
		stream->pprev = NULL;
	}
	device_unlock(device);
}

static struct stream *stream_alloc(struct device *device, enum stream_role role, unsigned flags,
				   int priority)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	pthread_condattr_t attr;

	if (!stream)
		return NULL;
	stream->frontier = calloc(1, sizeof(*stream->frontier));
	if (!stream->frontier) {
		free(stream);
		return NULL;
	}
	object_init(&stream->object, OBJECT_STREAM, stream_free);
	stream->role = role;
	stream->device = device;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	stream->tail = &stream->head;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&stream->work, NULL);
	pthread_cond_init(&stream->done, &attr);
	pthread_condattr_destroy(&attr);
	return stream;
}

struct stream *stream_new(struct device *device, enum stream_role role, unsigned flags,
			  int priority)
{
	struct stream *stream = stream_alloc(device, role, flags, priority);

	if (stream) {
		device_lock(device);
		stream_link(stream);
		device_unlock(device);
	}
	return stream;
}

struct stream *stream_legacy(struct device *device)
{
	struct stream *stream;

	device_lock(device);
	if (!device->legacy) {
		device->legacy = stream_alloc(device, STREAM_LEGACY, 0, 0);
		if (device->legacy)
			stream_link(device->legacy);
	}
	stream = device->legacy;
	device_unlock(device);
	return stream;
}

void stream_unref(struct stream *stream)
{
	if (stream)
		object_unref(&stream->object);
}

void stream_putp(struct stream **stream)
{
	stream_unref(*stream);
}

/* --- the thread ---------------------------------------------------------------------------------
 */

/* Return: the next command, or NULL when the thread has to end. Called with the lock held. */
static struct command *stream_next(struct stream *stream)
{
	struct command *command;

	while (!stream->head && !stream->is_closing && !runtime_is_stopping()) {
		stream->is_idle = true;
		pthread_cond_wait(&stream->work, &stream->lock);
	}
	stream->is_idle = false;
	if (runtime_is_stopping())
		return NULL;
	command = stream->head;
	if (command) {
		stream->head = command->next;
		if (!stream->head)
			stream->tail = &stream->head;
	}
	return command;
}

static void *stream_main(void *arg)
{
	struct stream *stream = arg;
	struct command *command;

	pthread_mutex_lock(&stream->lock);
	while ((command = stream_next(stream))) {
		pthread_mutex_unlock(&stream->lock);
		pace_not_before(command->queued_ns);
		command_run(command);
		command_deinit(command);
		free(command);
		pthread_mutex_lock(&stream->lock);
		stream->n_done++;
		if (stream->n_waiting)
			pthread_cond_broadcast(&stream->done);
	}
	pthread_mutex_unlock(&stream->lock);
	stream_unlink(stream);
	stream_unref(stream);
	runtime_thread_end();
	return NULL;
}

void stream_close(struct stream *stream)
{
	bool has_thread;

	pthread_mutex_lock(&stream->lock);
	stream->is_closing = true;
	has_thread = stream->has_thread;
	pthread_cond_signal(&stream->work);
	pthread_mutex_unlock(&stream->lock);
	if (!has_thread)
		stream_unlink(stream);
}

static void streams_wake_all(void)
{
	struct device *device;

	for (int i = 0; (device = device_get(i)); i++) {
		device_lock(device);
		for (struct stream *s = device->streams; s; s = s->next) {
			pthread_mutex_lock(&s->lock);
			pthread_cond_broadcast(&s->work);
			pthread_cond_broadcast(&s->done);
			pthread_mutex_unlock(&s->lock);
		}
		device_unlock(device);
	}
}

/* --- the queue ----------------------------------------------------------------------------------
 */

/* Called with the stream's lock held; the thread's first act is to take it. */
static cudaError_t stream_start(struct stream *stream)
{
	char name[16];

	snprintf(name, sizeof(name), "cuda-stream%llu", stream->id % 10000);
	object_ref(&stream->object);
	stream->has_thread = runtime_thread_start(stream_main, stream, name, streams_wake_all);
	if (stream->has_thread)
		return cudaSuccess;
	object_unref(&stream->object);
	return cudaErrorOperatingSystem;
}

/* Appends a copy of @command, which it takes over. */
static cudaError_t stream_append(struct stream *stream, const struct command *command)
{
	struct command *copy = malloc(sizeof(*copy));
	cudaError_t error = cudaSuccess;

	if (!copy)
		return cudaErrorMemoryAllocation;
	*copy = *command;
	copy->next = NULL;
	if (!copy->queued_ns)
		copy->queued_ns = clock_now_ns();
	pthread_mutex_lock(&stream->lock);
	if (stream->is_closing)
		error = cudaErrorInvalidResourceHandle;
	else if (!stream->has_thread)
		error = stream_start(stream);
	if (error == cudaSuccess) {
		*stream->tail = copy;
		stream->tail = &copy->next;
		stream->n_queued++;
		if (stream->is_idle)
			pthread_cond_signal(&stream->work);
	}
	pthread_mutex_unlock(&stream->lock);
	if (error != cudaSuccess)
		free(copy);
	return error;
}

static void join_run(const struct command *command)
{
	stream_wait(command->join.stream, command->join.n_done);
	pace_not_before_now();
}

static void join_drop(struct command *command)
{
	stream_unref(command->join.stream);
}

/* Waits until another stream has run its first n commands. */
static const struct command_type join_command = {.run = join_run, .drop = join_drop};

/* Makes @stream wait for what is queued on @other now. The device's lock is held. */
static cudaError_t stream_join(struct stream *stream, struct stream *other)
{
	struct command join = {.type = &join_command, .join.stream = other};
	cudaError_t error;
	bool is_done;

	pthread_mutex_lock(&other->lock);
	join.join.n_done = other->n_queued;
	is_done = other->n_done == other->n_queued;
	pthread_mutex_unlock(&other->lock);
	if (is_done)
		return cudaSuccess;
	object_ref(&other->object);
	error = stream_append(stream, &join);
	if (error != cudaSuccess)
		stream_unref(other);
	return error;
}

/* The order between the legacy stream and the blocking ones. The device's lock is held. */
static cudaError_t stream_order(struct stream *stream)
{
	struct device *device = stream->device;
	cudaError_t error = cudaSuccess;
	uint64_t n;

	if (stream->role == STREAM_LEGACY) {
		for (struct stream *s = device->streams; s && error == cudaSuccess; s = s->next)
			if (s != stream && stream_is_blocking(s))
				error = stream_join(stream, s);
	} else if (device->legacy) {
		n = stream_n_queued(device->legacy);
		if (n > stream->legacy_seen) {
			stream->legacy_seen = n;
			error = stream_join(stream, device->legacy);
		}
	}
	return error;
}

cudaError_t stream_enqueue(struct stream *stream, const struct command *command)
{
	bool is_ordered = stream->role != STREAM_INTERNAL && stream_is_blocking(stream);
	struct command rest = *command;
	cudaError_t error = cudaSuccess;

	if (is_ordered) {
		device_lock(stream->device);
		error = stream_order(stream);
	}
	if (error == cudaSuccess)
		error = stream_append(stream, command);
	if (is_ordered)
		device_unlock(stream->device);
	if (error != cudaSuccess)
		command_deinit(&rest);
	return error;
}

/* --- waiting ------------------------------------------------------------------------------------
 */

uint64_t stream_n_queued(struct stream *stream)
{
	uint64_t n;

	pthread_mutex_lock(&stream->lock);
	n = stream->n_queued;
	pthread_mutex_unlock(&stream->lock);
	return n;
}

bool stream_is_done(struct stream *stream)
{
	bool is_done;

	pthread_mutex_lock(&stream->lock);
	is_done = stream->n_done == stream->n_queued;
	pthread_mutex_unlock(&stream->lock);
	return is_done;
}

bool stream_wait(struct stream *stream, uint64_t n)
{
	struct timespec until;
	bool is_done;

	pthread_mutex_lock(&stream->lock);
	stream->n_waiting++;
	while (stream->n_done < n && !runtime_is_stopping()) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += RUNTIME_STOP_POLL_NS;
		if (until.tv_nsec >= 1000000000L) {
			until.tv_nsec -= 1000000000L;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&stream->done, &stream->lock, &until);
	}
	stream->n_waiting--;
	is_done = stream->n_done >= n;
	pthread_mutex_unlock(&stream->lock);
	return is_done;
}

struct stop_point {
	struct stream *stream;
	uint64_t n;
};

bool streams_drain(struct device *device, bool blocking_only)
{
	CLEANUP(freep) struct stop_point *points = NULL;
	struct stream *s;
	unsigned n = 0;
	bool is_done = true;

	device_lock(device);
	for (s = device->streams; s; s = s->next)
		n++;
	points = calloc(n + 1, sizeof(*points));
	n = 0;
	for (s = device->streams; s && points; s = s->next) {
		if (blocking_only && !stream_is_blocking(s))
			continue;
		object_ref(&s->object);
		points[n++] = (struct stop_point){s, stream_n_queued(s)};
	}
	device_unlock(device);
	for (unsigned i = 0; i < n; i++) {
		is_done = stream_wait(points[i].stream, points[i].n) && is_done;
		stream_unref(points[i].stream);
	}
	return points && is_done;
}
