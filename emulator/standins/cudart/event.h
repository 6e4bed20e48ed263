/* Events. To record an event leaves a mark in a stream. To wait for an event means to wait for
 * the mark that is its latest one at the time of the call. */
#pragma once

#include <pthread.h>

#include "capture.h"
#include "object.h"
#include <cuda_runtime_api.h>

struct mark;

struct event {
	struct object object;
	pthread_mutex_t lock; /* of mark */
	unsigned flags;
	struct mark *mark; /* owned; NULL before the first record */
	struct capture_point point;
};

struct event *event_get(cudaEvent_t handle);
/* For CLEANUP(). */
void event_putp(struct event **event);

/* Return: the latest mark with a new reference, or NULL when it was never recorded. */
struct mark *event_mark(struct event *event);
/* Makes a new mark the latest one. Return: it, with a new reference; NULL without memory. */
struct mark *event_rearm(struct event *event);

/* In graphs only: they record an event and wait for one. */
extern const struct command_type event_record_command, event_follow_command;
