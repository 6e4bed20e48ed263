/* The usage of a collective: what its messages put on the links, by the plan of the scheduler or by
 * the schedule. */
#pragma once

#include "contention/usage.h"
#include "engine/delay.h"
#include "schedule/schedule.h"
#include "topology/membership.h"

/* Other communicators that play the same op at the same time, one after the other; each is there
 * until the next is asked for. 0; 1: there are no more; -ENOMEM. */
struct usage_images {
	int (*next)(void *ctx, struct membership *ret);
	void *ctx;
};

/**
 * usage_of_op - arguments as solve()
 * @images: NULL: none
 *
 * Return: 0; -EINVAL with the sentence; -ENOMEM. O(connections * links of a path), of an all-to-all
 * of more than USAGE_PAIRS_MAX ranks by its first domain's ranks alone.
 */
int usage_of_op(const struct sched *s, const struct topology *t, const struct membership *m,
		struct delay_chain *d, uint64_t op_number, const struct usage_images *images,
		struct usage **ret, struct err *err);
#define USAGE_PAIRS_MAX 1024
