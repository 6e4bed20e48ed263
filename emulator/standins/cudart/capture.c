/* See capture.h. */
#include "capture.h"

#include <errno.h>
#include <stdlib.h>

#include "device.h"
#include "graph.h"
#include "stream.h"

#include "base/cleanup.h"

struct capture {
	struct capture *next;
	unsigned long long id;
	enum cudaStreamCaptureMode mode;
	const void *thread; /* who began it: the address of its thread_mode */
	bool is_valid;
	struct graph *graph;     /* owned */
	struct stream *origin;   /* one of the streams */
	struct stream **streams; /* owned */
	unsigned n, capacity;
};

static struct capture *captures; /* under graph_lock */
static unsigned long long last_id;
/* Read without the lock for the quick answers: how many captures there are, and whether there ever
 * was one. A thread that is concerned by a capture has synchronised with it anyhow. */
static atomic_uint n_captures;
static atomic_bool was_used;

static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/* All static functions here are called with the lock held. */

static struct capture *capture_of(struct stream *stream)
{
	return atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

static struct capture *capture_find(unsigned long long id)
{
	struct capture *c = captures;

	while (c && c->id != id)
		c = c->next;
	return id ? c : NULL;
}

static void capture_enter(struct capture *capture, struct stream *stream)
{
	object_ref(&stream->object);
	capture->streams[capture->n++] = stream;
	node_set_clear(stream->frontier);
	if (stream_is_blocking(stream))
		atomic_fetch_add_explicit(&stream->device->n_capturing, 1, memory_order_relaxed);
	/* Release pairs with the acquire in stream_submit(). */
	atomic_store_explicit(&stream->capture, capture, memory_order_release);
}

static int capture_grow(struct capture *capture)
{
	unsigned capacity = capture->capacity ? capture->capacity * 2 : 4;
	struct stream **streams;

	if (capture->n < capture->capacity)
		return 0;
	streams = realloc(capture->streams, capacity * sizeof(struct stream *));
	if (!streams)
		return -ENOMEM;
	capture->streams = streams;
	capture->capacity = capacity;
	return 0;
}

/* Ends @capture and frees it, all but the graph, which becomes the caller's. */
static struct graph *capture_end(struct capture *capture)
{
	struct graph *graph = capture->graph;
	struct capture **link = &captures;
	struct stream *stream;

	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	for (unsigned i = 0; i < capture->n; i++) {
		stream = capture->streams[i];
		atomic_store_explicit(&stream->capture, NULL, memory_order_release);
		node_set_clear(stream->frontier);
		if (stream_is_blocking(stream))
			atomic_fetch_sub_explicit(&stream->device->n_capturing, 1,
						  memory_order_relaxed);
		stream_unref(stream);
	}
	free(capture->streams);
	free(capture);
	atomic_fetch_sub_explicit(&n_captures, 1, memory_order_relaxed);
	return graph;
}

static bool capture_is_joined(const struct capture *capture)
{
	CLEANUP(freep) bool *is_before = calloc(capture->graph->n + 1, sizeof(bool));
	const struct node_set *frontier;

	if (!is_before)
		return false;
	graph_mark_before(capture->graph, capture->origin->frontier, is_before);
	for (unsigned i = 0; i < capture->n; i++) {
		frontier = capture->streams[i]->frontier;
		for (unsigned k = 0; k < frontier->n; k++)
			if (!is_before[frontier->ids[k]] &&
			    !capture->graph->nodes[frontier->ids[k]]->is_direct)
				return false;
	}
	return true;
}

static cudaError_t add_locked(struct capture *capture, struct stream *stream,
			      const struct command *command)
{
	struct node *node;
	cudaError_t error;

	if (!capture->is_valid)
		return cudaErrorStreamCaptureInvalidated;
	if (!command->type->is_capturable) {
		capture->is_valid = false;
		return cudaErrorStreamCaptureUnsupported;
	}
	error = graph_add(capture->graph, command, stream->frontier, &node);
	if (error != cudaSuccess)
		return error;
	node_set_clear(stream->frontier);
	/* Room for one is there unless the stream has only just entered with nothing. */
	return node_set_add(stream->frontier, node->id) ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t capture_add(struct stream *stream, const struct command *command, bool *ret_is_captured)
{
	struct capture *capture;
	cudaError_t error = cudaSuccess;

	pthread_mutex_lock(&graph_lock);
	capture = capture_of(stream);
	*ret_is_captured = capture != NULL;
	if (capture)
		error = add_locked(capture, stream, command);
	pthread_mutex_unlock(&graph_lock);
	return error;
}

cudaError_t capture_record(struct stream *stream, struct capture_point *point,
			   bool *ret_is_captured)
{
	struct capture *capture;
	cudaError_t error = cudaSuccess;

	*ret_is_captured = false;
	if (!atomic_load_explicit(&was_used, memory_order_relaxed))
		return cudaSuccess;
	pthread_mutex_lock(&graph_lock);
	capture = capture_of(stream);
	*ret_is_captured = capture != NULL;
	point->capture_id = 0;
	node_set_clear(&point->captured);
	if (capture && !capture->is_valid) {
		error = cudaErrorStreamCaptureInvalidated;
	} else if (capture) {
		point->capture_id = capture->id;
		if (node_set_merge(&point->captured, stream->frontier) != 0)
			error = cudaErrorMemoryAllocation;
	}
	pthread_mutex_unlock(&graph_lock);
	return error;
}

static cudaError_t wait_locked(struct capture *capture, struct stream *stream,
			       struct capture_point *point)
{
	struct capture *theirs = capture_find(point->capture_id);

	if (capture && !capture->is_valid)
		return cudaErrorStreamCaptureInvalidated;
	if (point->capture_id == 0) {
		/* The stream is under capture, and the event is real work outside. */
		capture->is_valid = false;
		return cudaErrorStreamCaptureIsolation;
	}
	if (!theirs) {
		if (capture)
			capture->is_valid = false;
		return cudaErrorCapturedEvent;
	}
	if (!theirs->is_valid)
		return cudaErrorStreamCaptureInvalidated;
	if (capture && capture != theirs) {
		capture->is_valid = theirs->is_valid = false;
		return cudaErrorStreamCaptureMerge;
	}
	if (!capture) {
		if (stream->role == STREAM_LEGACY) {
			theirs->is_valid = false;
			return cudaErrorStreamCaptureImplicit;
		}
		if (capture_grow(theirs) != 0)
			return cudaErrorMemoryAllocation;
		capture_enter(theirs, stream);
	}
	return node_set_merge(stream->frontier, &point->captured) ? cudaErrorMemoryAllocation
								  : cudaSuccess;
}

cudaError_t capture_wait(struct stream *stream, struct capture_point *point, bool *ret_is_captured)
{
	struct capture *capture;
	cudaError_t error = cudaSuccess;

	*ret_is_captured = false;
	if (!atomic_load_explicit(&was_used, memory_order_relaxed))
		return cudaSuccess;
	pthread_mutex_lock(&graph_lock);
	capture = capture_of(stream);
	if (capture || point->capture_id) {
		*ret_is_captured = true;
		error = wait_locked(capture, stream, point);
	}
	pthread_mutex_unlock(&graph_lock);
	return error;
}

cudaError_t capture_check_wait(struct stream *stream)
{
	struct capture *capture;

	if (!atomic_load_explicit(&stream->capture, memory_order_acquire))
		return stream->role == STREAM_LEGACY ? capture_check_legacy(stream->device)
						     : cudaSuccess;
	pthread_mutex_lock(&graph_lock);
	capture = capture_of(stream);
	if (capture)
		capture->is_valid = false;
	pthread_mutex_unlock(&graph_lock);
	return capture ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t capture_check_point(struct capture_point *point)
{
	cudaError_t error = cudaSuccess;
	struct capture *capture;

	if (!atomic_load_explicit(&was_used, memory_order_relaxed))
		return cudaSuccess;
	pthread_mutex_lock(&graph_lock);
	if (point->capture_id) {
		capture = capture_find(point->capture_id);
		if (capture)
			capture->is_valid = false;
		error = cudaErrorCapturedEvent;
	}
	pthread_mutex_unlock(&graph_lock);
	return error;
}

cudaError_t capture_check_unsafe(void)
{
	cudaError_t error = cudaSuccess;
	bool is_mine;

	if (atomic_load_explicit(&n_captures, memory_order_relaxed) == 0 ||
	    thread_mode == cudaStreamCaptureModeRelaxed)
		return cudaSuccess;
	pthread_mutex_lock(&graph_lock);
	for (struct capture *c = captures; c; c = c->next) {
		is_mine = c->thread == &thread_mode;
		if (c->mode == cudaStreamCaptureModeRelaxed)
			continue;
		if (!is_mine && (c->mode != cudaStreamCaptureModeGlobal ||
				 thread_mode != cudaStreamCaptureModeGlobal))
			continue;
		c->is_valid = false;
		error = cudaErrorStreamCaptureUnsupported;
	}
	pthread_mutex_unlock(&graph_lock);
	return error;
}

cudaError_t capture_check_legacy(struct device *device)
{
	cudaError_t error = cudaSuccess;

	if (atomic_load_explicit(&device->n_capturing, memory_order_relaxed) == 0)
		return cudaSuccess;
	pthread_mutex_lock(&graph_lock);
	for (struct capture *c = captures; c; c = c->next) {
		for (unsigned i = 0; i < c->n; i++) {
			if (c->streams[i]->device != device || !stream_is_blocking(c->streams[i]))
				continue;
			c->is_valid = false;
			error = cudaErrorStreamCaptureImplicit;
		}
	}
	pthread_mutex_unlock(&graph_lock);
	return error;
}

void capture_forget(struct stream *stream)
{
	struct graph *graph = NULL;
	struct capture *capture;

	if (!atomic_load_explicit(&stream->capture, memory_order_acquire))
		return;
	pthread_mutex_lock(&graph_lock);
	capture = capture_of(stream);
	/* Any other stays among the capture's streams until that ends: what it did must have been
	 * joined. NCCL destroys a stream that only asked for an event's nodes. */
	if (capture && capture->origin == stream)
		graph = capture_end(capture);
	pthread_mutex_unlock(&graph_lock);
	if (graph)
		graph_abandon(graph);
}

/* --- what the calls do --------------------------------------------------------------------------
 */

cudaError_t capture_begin(struct stream *stream, enum cudaStreamCaptureMode mode)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	struct graph *graph = graph_new();

	if (!capture || !graph || capture_grow(capture) != 0 ||
	    object_publish(&graph->object) != 0) {
		if (graph)
			graph_abandon(graph);
		if (capture)
			free(capture->streams);
		free(capture);
		return cudaErrorMemoryAllocation;
	}
	capture->graph = graph;
	capture->mode = mode;
	capture->thread = &thread_mode;
	capture->is_valid = true;
	capture->origin = stream;
	capture->id = ++last_id;
	capture->next = captures;
	captures = capture;
	atomic_fetch_add_explicit(&n_captures, 1, memory_order_relaxed);
	atomic_store_explicit(&was_used, true, memory_order_relaxed);
	capture_enter(capture, stream);
	return cudaSuccess;
}

cudaError_t capture_finish(struct stream *stream, struct graph **ret_graph)
{
	struct capture *capture = capture_of(stream);
	cudaError_t error = cudaSuccess;

	if (!capture)
		return cudaErrorIllegalState;
	if (capture->origin != stream)
		return cudaErrorStreamCaptureUnmatched;
	if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != &thread_mode)
		return cudaErrorStreamCaptureWrongThread;
	if (!capture->is_valid)
		error = cudaErrorStreamCaptureInvalidated;
	else if (!capture_is_joined(capture))
		error = cudaErrorStreamCaptureUnjoined;
	*ret_graph = capture_end(capture);
	return error;
}

/* Fills stream->info with the handles of the frontier. */
static cudaError_t info_fill(struct stream *stream, struct capture *capture)
{
	const struct node_set *frontier = stream->frontier;
	cudaGraphNode_t *info;

	info = realloc(stream->info, (frontier->n + 1) * sizeof(*info));
	if (!info)
		return cudaErrorMemoryAllocation;
	stream->info = info;
	for (unsigned i = 0; i < frontier->n; i++)
		info[i] = (cudaGraphNode_t)capture->graph->nodes[frontier->ids[i]]->object.handle;
	return cudaSuccess;
}

cudaError_t capture_look(struct stream *stream, enum cudaStreamCaptureStatus *status,
			 unsigned long long *id, cudaGraph_t *graph,
			 const cudaGraphNode_t **dependencies, size_t *n_dependencies)
{
	struct capture *capture = capture_of(stream);

	*status = !capture             ? cudaStreamCaptureStatusNone
		  : !capture->is_valid ? cudaStreamCaptureStatusInvalidated
				       : cudaStreamCaptureStatusActive;
	if (*status != cudaStreamCaptureStatusActive)
		return cudaSuccess;
	if (dependencies && info_fill(stream, capture) != cudaSuccess)
		return cudaErrorMemoryAllocation;
	if (id)
		*id = capture->id;
	if (graph)
		*graph = (cudaGraph_t)capture->graph->object.handle;
	if (dependencies)
		*dependencies = stream->info;
	if (n_dependencies)
		*n_dependencies = stream->frontier->n;
	return cudaSuccess;
}

cudaError_t capture_set_frontier(struct stream *stream, const cudaGraphNode_t *dependencies,
				 size_t n, unsigned flags)
{
	struct capture *capture = capture_of(stream);
	struct node_set set = {0};
	cudaError_t error;

	if (!capture)
		return cudaErrorIllegalState;
	if (!capture->is_valid)
		return cudaErrorStreamCaptureInvalidated;
	error = graph_find_nodes(capture->graph, dependencies, n, &set);
	if (error == cudaSuccess && flags == cudaStreamSetCaptureDependencies)
		node_set_clear(stream->frontier);
	if (error == cudaSuccess && node_set_merge(stream->frontier, &set) != 0)
		error = cudaErrorMemoryAllocation;
	node_set_deinit(&set);
	return error;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	enum cudaStreamCaptureMode old = thread_mode;

	if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
		return runtime_return(cudaErrorInvalidValue);
	thread_mode = *mode;
	*mode = old;
	return cudaSuccess;
}
