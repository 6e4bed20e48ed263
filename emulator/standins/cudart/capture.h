/* Stream capture: instead of running, commands become nodes of a graph.
 *
 * A capture begins on one stream and spreads to those that wait for an event recorded in it
 * (fork); each of its streams has a frontier, the nodes that the next command depends on. It ends
 * on the stream where it began, into which all others must have been joined.
 *
 * One lock guards captures, frontiers and graphs under construction: they are made once and
 * replayed often. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "command.h"
#include "runtime.h"

struct device;
struct event;
struct graph;
struct stream;

/* A set of nodes of one graph, by index. */
struct node_set {
	unsigned n, capacity;
	unsigned *ids;
};

void node_set_clear(struct node_set *set);
void node_set_deinit(struct node_set *set);
/* Return: 0, or -ENOMEM. */
int node_set_add(struct node_set *set, unsigned id);
int node_set_merge(struct node_set *set, const struct node_set *other);

extern pthread_mutex_t capture_lock;

/* Makes @command the next node on @stream. Return: cudaErrorStreamCaptureImplicit-style codes;
 * *ret_is_captured false means that the stream is not being captured (any more) and @command is
 * still the caller's. */
cudaError_t capture_add(struct stream *stream, const struct command *command,
			bool *ret_is_captured);

/* cudaEventRecord on a stream under capture: @event now stands for the stream's frontier. */
cudaError_t capture_record(struct stream *stream, struct event *event, bool *ret_is_captured);

/* cudaStreamWaitEvent. *ret_is_captured is true when the event or the stream belongs to a capture:
 * then all is done, and the result is the call's. */
cudaError_t capture_wait(struct stream *stream, struct event *event, bool *ret_is_captured);

/* A call that would wait for @stream (or ask after it): an error that also invalidates the
 * capture, when there is one. */
cudaError_t capture_check_wait(struct stream *stream);

/* A call that asks after @event on the host: an error when it was last recorded in a capture. */
cudaError_t capture_check_event(struct event *event);

/* A call that the documents call potentially unsafe during captures (allocation, freeing, waiting
 * for a device, asking after an event): an error, by the modes of the captures and of this thread,
 * that also invalidates them. */
cudaError_t capture_check_unsafe(void);

/* Use of @device's legacy stream: an error while a blocking stream of it is being captured. */
cudaError_t capture_check_legacy(struct device *device);

/* The stream is being destroyed: ends its part in a capture. */
void capture_forget(struct stream *stream);

/* What cudaStreamGetCaptureInfo and cudaStreamUpdateCaptureDependencies do; their arguments differ
 * between CUDA 12 and 13. */
cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
			 unsigned long long *id, cudaGraph_t *graph,
			 const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
			 size_t *n_dependencies);
cudaError_t capture_update(cudaStream_t stream, const cudaGraphNode_t *dependencies, size_t n,
			   unsigned flags);
