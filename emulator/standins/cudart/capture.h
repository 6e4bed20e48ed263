/* Stream capture: commands do not run, they become nodes of a graph.
 *
 * A capture begins on one stream and spreads to each stream that waits for an event recorded in
 * it. Each of its streams has a frontier: the nodes that its next command depends on. The capture
 * ends on the stream where it began, after all other streams have been joined into that one.
 *
 * graph_lock guards captures and frontiers. */
#pragma once

#include <stdbool.h>

#include "command.h"
#include "node-set.h"

struct device;
struct graph;
struct stream;

/* Where an event stands in a capture; under graph_lock. */
struct capture_point {
	unsigned long long capture_id; /* 0: it was last recorded outside of captures, or never */
	struct node_set captured;
};

/* Makes @command the next node on @stream. Return: cudaErrorStreamCaptureImplicit-style codes;
 * *ret_is_captured false means that the stream is not being captured (any more) and @command is
 * still the caller's. */
cudaError_t capture_add(struct stream *stream, const struct command *command,
			bool *ret_is_captured);

/* cudaEventRecord on a stream under capture: @point now stands for the stream's frontier. */
cudaError_t capture_record(struct stream *stream, struct capture_point *point,
			   bool *ret_is_captured);

/* cudaStreamWaitEvent. *ret_is_captured is true when the event or the stream belongs to a capture:
 * then all is done, and the result is the call's. */
cudaError_t capture_wait(struct stream *stream, struct capture_point *point, bool *ret_is_captured);

/* A call that would wait for @stream (or ask after it): an error that also invalidates the
 * capture, when there is one. */
cudaError_t capture_check_wait(struct stream *stream);

/* A call that asks after the event of @point on the host: an error when it was last recorded in a
 * capture. */
cudaError_t capture_check_point(struct capture_point *point);

/* A call that the documents call potentially unsafe during captures (allocation, freeing, waiting
 * for a device, asking after an event): an error, by the modes of the captures and of this thread,
 * that also invalidates them. */
cudaError_t capture_check_unsafe(void);

/* Use of @device's legacy stream: an error while a blocking stream of it is being captured. */
cudaError_t capture_check_legacy(struct device *device);

/* The stream is being destroyed: ends its part in a capture. */
void capture_forget(struct stream *stream);

/* Called with graph_lock held: what cudaStreamBeginCapture (not during a capture),
 * cudaStreamEndCapture, cudaStreamGetCaptureInfo and cudaStreamUpdateCaptureDependencies do.
 * *ret_graph is what was captured, also when the capture failed: to be given away or abandoned. */
cudaError_t capture_begin(struct stream *stream, enum cudaStreamCaptureMode mode);
cudaError_t capture_finish(struct stream *stream, struct graph **ret_graph);
cudaError_t capture_look(struct stream *stream, enum cudaStreamCaptureStatus *status,
			 unsigned long long *id, cudaGraph_t *graph,
			 const cudaGraphNode_t **dependencies, size_t *n_dependencies);
cudaError_t capture_set_frontier(struct stream *stream, const cudaGraphNode_t *dependencies,
				 size_t n, unsigned flags);
