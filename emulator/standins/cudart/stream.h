/* Streams: ordered queues of commands. A stream gets a thread of its own with its first command.
 *
 * A device has one legacy default stream (handle 0). A command on it waits for all that was
 * queued before on the blocking streams of the device, and they wait for it;
 * cudaStreamNonBlocking streams do neither. Both directions are JOIN commands, which are queued
 * under the lock of the device, so that two threads can never make two streams wait for each
 * other.
 *
 * Locks: device before stream. Neither is held while a command runs. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "command.h"
#include "object.h"
#include "runtime.h"

struct capture;
struct device;

enum stream_role {
	STREAM_USER,
	STREAM_LEGACY,
	STREAM_PER_THREAD,
	STREAM_INTERNAL, /* a graph's lane: no handle, and never ordered by the legacy stream */
};

struct stream {
	struct object object;
	enum stream_role role;
	struct device *device;
	unsigned flags;
	int priority;
	unsigned long long id;

	pthread_mutex_t lock;
	pthread_cond_t work; /* to the thread: queue or is_closing changed */
	pthread_cond_t done; /* to those who wait: n_done grew */
	struct command *head, **tail;
	uint64_t n_queued, n_done;
	unsigned n_waiting;
	bool has_thread, is_idle, is_closing;

	uint64_t legacy_seen;         /* under the device's lock: joined up to there */
	struct stream *next, **pprev; /* under the device's lock: the device's list */

	/* Written under graph_lock, read without it for the quick answer "none". */
	struct capture *_Atomic capture;
	struct node_set *frontier; /* capture.c's */
	cudaGraphNode_t *info;     /* what cudaStreamGetCaptureInfo last gave out */
};

static inline bool stream_is_blocking(const struct stream *stream)
{
	return !(stream->flags & cudaStreamNonBlocking);
}

/* Return: the stream with one reference, or NULL without memory. */
struct stream *stream_new(struct device *device, enum stream_role role, unsigned flags,
			  int priority);

/* No more commands will come: the thread ends after the last one. Keeps the caller's reference. */
void stream_close(struct stream *stream);

/* The device's legacy stream, made at its first use; no new reference. NULL without memory. */
struct stream *stream_legacy(struct device *device);
void stream_unref(struct stream *stream);
/* For CLEANUP(). */
void stream_putp(struct stream **stream);

/* Queues @command, whose references it takes over, on failure too. It is never captured. */
cudaError_t stream_enqueue(struct stream *stream, const struct command *command);

/* How many commands were queued so far; stream_wait() for that many is "all of them". */
uint64_t stream_n_queued(struct stream *stream);
bool stream_is_done(struct stream *stream);
/* Blocks until @n commands are done. Return: false when the process exits first. */
bool stream_wait(struct stream *stream, uint64_t n);

/* Waits until all that is queued on @device's streams now is done; with @blocking_only on the
 * legacy stream and the streams that synchronise with it. */
bool streams_drain(struct device *device, bool blocking_only);
