/* The way of a call to a stream: which stream a handle means, and how a command gets into its
 * queue or into the graph that is being captured. */
#pragma once

#include "stream.h"

/* Return: the stream that @handle means on this thread (0 and cudaStreamLegacy: the legacy stream
 * of the current device; cudaStreamPerThread: this thread's) with a new reference; NULL when it
 * means none. */
struct stream *stream_get(cudaStream_t handle);

/* Queues @command, or makes it a node of the graph when the stream is being captured. Takes over
 * the references in @command, on failure too. */
cudaError_t stream_submit(struct stream *stream, const struct command *command);
/* What most calls that name a stream begin with: runtime_enter(), then stream_get(). */
cudaError_t stream_look(cudaStream_t handle, struct stream **ret_stream);
