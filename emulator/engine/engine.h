/* The engine: runs the live ops of nboxd. For each op three bitmaps over its
 * border messages (arrived from real ranks; ready, sent towards them) and one heap
 * of release times for all ops. It has no clock, socket, thread or libevent: time
 * comes in as a number, effects go out through the sink. Ops of different
 * communicators overlap; ties are served round robin. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/timing.h"

struct engine;
struct engine_op; /* one live op; the owner keeps the pointer between start and end */

struct engine_sink {
	/* Release message @index of in-connection @in of the op. */
	void (*send)(void *owner, struct engine_op *op, uint32_t in, uint64_t index,
		     uint64_t due_ns);
	/* All messages out and in and the end time reached. The op is freed by the
	 * engine after this returns. */
	void (*end)(void *owner, struct engine_op *op, uint64_t end_ns);
};

int engine_new(const struct engine_sink *sink, void *owner, struct engine **ret);
struct engine *engine_free(struct engine *e);

/**
 * engine_start - @border: NULL for exchange none; borrowed until the end, as @timing
 * @start_ns: wall clock when the last member arrived. Message times are
 * start_ns + their relative times, rounded up: never early.
 */
int engine_start(struct engine *e, const struct border *border, const struct timing *timing,
		 uint64_t start_ns, uint64_t end_ns, void *tag, struct engine_op **ret);
void *engine_op_tag(const struct engine_op *op);
void engine_cancel(struct engine *e, struct engine_op *op); /* no callback */

/* A message from a real rank. Messages may arrive before engine_start() only if
 * the owner keeps them. Return: 0; ENGINE_UNEXPECTED with a sentence that names
 * connection, message and what was expected. */
enum { ENGINE_UNEXPECTED = 1 };
int engine_arrived(struct engine *e, struct engine_op *op, uint32_t out, uint64_t index,
		   struct err *err);

/* Releases everything due at @now_ns. Return: when to call again (UINT64_MAX: only
 * after an arrival). */
uint64_t engine_advance(struct engine *e, uint64_t now_ns);
uint32_t engine_n_live(const struct engine *e);
