/* Which connection gives way when connections are many. Links and clients of the store that have
 * said nothing yet hold a place and a descriptor for up to 10 s, and whoever can connect could hold
 * all of them. A new connection takes the place of the oldest of those. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct workers;

struct capacity {
	struct workers *workers; /* borrowed */
	/* Connections besides links (the store's); ctx NULL: there are none. Until when the oldest
	 * silent one but @but may stay so, UINT64_MAX: there is none; and cuts that one off. */
	void *ctx;
	uint64_t (*silent_until)(void *ctx, const void *but);
	void (*oust_silent)(void *ctx, const void *but);
};

/* As many descriptors as this process may have: each worker has some connections. */
void capacity_raise_limit(void);
/**
 * capacity_make - makes room beside a connection that has just been accepted
 * @is_full: it is one more than may be
 * @newcomer: the connection, which does not give way to itself
 *
 * On the loop, not inside link_progress(). Return: false: it is one too many, and nobody gave way.
 */
bool capacity_make(struct capacity *c, bool is_full, const void *newcomer);
