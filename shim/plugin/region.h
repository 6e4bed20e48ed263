/* Memory that NCCL has registered: its buffers, some of which all connections share. Pages in which
 * something other than zeros may lie are marked, so that zeros are written where they are not. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bitmap.h"
#include "shim/progress/note.h"

struct link;
struct link_memory;

struct region {
	unsigned char *base;
	size_t bytes;
	/* private */
	struct region *next;
	uint32_t refs; /* under the lock */
	/* the progress thread's */
	struct note put;        /* posted by the last region_put() */
	struct bitmap dirty;    /* all set at first: what lies there is unknown */
	uint32_t n_requests;    /* under way */
	bool is_put;            /* goes with the last request */
	bool is_asked;          /* the link was asked to register it */
	bool is_refused;        /* ... and cannot */
	struct link_memory *of; /* the link's; NULL also where links need none */
};

/* A reference to the one of that memory. NULL: no memory. Any thread, as region_put(). */
struct region *region_get(void *base, size_t bytes);
/* NULL is allowed. Requests that were begun before keep it until they are done. */
void region_put(struct region *r);

/* --- the progress thread ----------------------------------------------------------------- */

/* A request for messages from there, or to there, begins; it is done. */
void region_begin(struct region *r);
void region_done(struct region *r);
/* Has it registered with the link, which is that of the session, at the first message. Return:
 * whether bodies can be lent from there; else they are to be copied. */
bool region_lend(struct region *r, struct link *l, struct link_memory **ret);

/* [@at, @at + @n) of @r: something was written there. */
void region_mark(struct region *r, const void *at, size_t n);
/* Makes all of it zero. */
void region_clear(struct region *r, void *at, size_t n);
