/* Inside player/: the state of an op that is played. */
#pragma once

#include "player/io.h"
#include "schedule/schedule.h"

#define WINDOW 4  /* steps whose receives are posted ahead, per thread */
#define FLIGHTS 8 /* sends that are not player_sent(), per thread; >= SCHED_FAN */
#define NO_SLOT UINT32_MAX

/* A step from where its receives are posted until it has run. */
struct entry {
	struct sched_step step;
	uint32_t slot[SCHED_FAN]; /* staging of receive j; [0] also of the result */
	uint32_t missing;         /* bit j: receive j is not here */
};

struct flight {
	uint64_t index;
	uint32_t peer, slot;
	uint16_t lane;
};

/* Its steps run in order: [current, posted) are in its window. */
struct thread {
	uint64_t n_steps, current, posted;
	struct entry *entries;  /* circular, [step % window] */
	struct flight *flights; /* oldest first */
	uint32_t window, n_flights, max_flights;
	uint32_t n_slots, max_slots;
	bool has_next; /* the entry of step `posted` is filled, but lacks slots */
};

struct player {
	const struct sched *sched;      /* borrowed */
	const struct player_data *data; /* borrowed; NULL: only messages count */
	const struct player_io *io;     /* borrowed */
	void *owner;
	uint32_t rank, n_threads;
	uint32_t n_running; /* threads that have steps left */
	uint64_t n_flights; /* of all threads */
	uint64_t n_sent, n_received;

	/* Staging: slots of equal size, handed out last in, first out so that warm
	 * memory is used again. */
	unsigned char *staging; /* owned, of the pool; NULL when the op needs none */
	size_t staging_bytes;
	uint64_t slot_bytes;
	uint32_t *free_slots, n_free;
	uint8_t *slot_refs; /* sends that read the slot */
	uint32_t scratch;   /* slot for `pre`; NO_SLOT: not needed */

	struct thread *threads; /* in this allocation, as the arrays above */
};
