/* The engine runs the live ops of nboxd. Each op has three bitmaps over its border messages
 * (arrived from real ranks; ready and sent towards them); one heap holds the release times of all
 * ops. The engine has no clock, socket or thread: time comes in as a number, effects go out through
 * the sink. Ops overlap; at equal times they take turns. */
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
	/* All messages are out and in, and the end time is reached. The engine frees the op after
	 * this returns. */
	void (*end)(void *owner, struct engine_op *op, uint64_t end_ns);
};

int engine_new(const struct engine_sink *sink, void *owner, struct engine **ret);
struct engine *engine_free(struct engine *e);

/**
 * engine_start - @border: NULL for exchange none; borrowed until the end, as @timing
 * @start_ns: wall clock, as early as the first of its posts needs. Message times are
 * start_ns + their relative times, rounded up: never early.
 */
int engine_start(struct engine *e, const struct border *border, const struct timing *timing,
		 uint64_t start_ns, uint64_t end_ns, void *tag, struct engine_op **ret);
void *engine_op_tag(const struct engine_op *op);
/* What is due after @now_ns comes later, or earlier, in proportion, so that the op ends at @end_ns.
 * O(entries of all ops). */
void engine_stretch(struct engine *e, struct engine_op *op, uint64_t now_ns, uint64_t end_ns);
void engine_cancel(struct engine *e, struct engine_op *op); /* no callback */

/* A message from a real rank has arrived. The owner keeps messages that come before engine_start().
 * Return: 0; ENGINE_UNEXPECTED with a sentence that names
 * connection, message and what was expected. */
enum { ENGINE_UNEXPECTED = 1 };
int engine_arrived(struct engine *e, struct engine_op *op, uint32_t out, uint64_t index,
		   struct err *err);

/* Releases everything due at @now_ns. Return: when to call again (UINT64_MAX: only
 * after an arrival). */
uint64_t engine_advance(struct engine *e, uint64_t now_ns);
uint32_t engine_n_live(const struct engine *e);
