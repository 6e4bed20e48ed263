/* When messages of equal bytes are ready around a ring, by the longest path; see ring-windows.c. */
#pragma once

#include <stdint.h>

#define RING_CLASSES 32

/* The classes of hops from place 0 on, numbered as they come first. */
struct ring_hops {
	uint8_t *of;                   /* owned by whom it is made by: n */
	uint32_t n;                    /* classes */
	uint32_t number[RING_CLASSES]; /* the caller's */
	uint32_t place[RING_CLASSES];  /* one that has it */
};

/* What a message costs, by class. */
struct ring_costs {
	double occupancy[RING_CLASSES], latency[RING_CLASSES];
};

struct ring_windows;
int ring_windows_new(uint32_t n, struct ring_windows **ret); /* -ENOMEM */
struct ring_windows *ring_windows_free(struct ring_windows *w);

/* From when a message is ready at each of the n places to when the @k-th after it is, in @ready. A
 * message waits for the one @slices before it at the place before. */
void ring_windows_pass(struct ring_windows *w, const struct ring_hops *h,
		       const struct ring_costs *costs, uint32_t slices, uint64_t k, double *ready);
