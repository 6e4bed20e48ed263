/* The hops of a lane of a ring. */
#pragma once

#include <stdbool.h>

#include "engine/ring-windows.h"
#include "engine/symmetry-cost.h"
#include "schedule/rails.h"

/* The rank at a place of a lane, and the next one on its ring. */
static inline uint32_t ring_rank(const struct sched *s, uint16_t lane, uint32_t place)
{
	return sched_rank_at(s, lane, place);
}

static inline uint32_t ring_behind(const struct sched *s, uint16_t lane, uint32_t place)
{
	return sched_rank_at(s, lane, place + 1 == s->n_ranks ? 0 : place + 1);
}

/* Looks at the lane's hops; @h is zeroed or was loaded before. Return: 0; SYMMETRY_NONE: there are
 * too many classes; -ENOMEM. */
int ring_hops_load(struct ring_hops *h, struct symmetry *y, uint16_t lane);
void ring_hops_deinit(struct ring_hops *h);
/* After how many places the hops are the same again. */
uint32_t ring_hops_period(const struct ring_hops *h, const struct symmetry *y);

/* Lanes whose ends are known. */
struct ring_known {
	struct {
		struct ring_hops hops;
		uint16_t lane;
	} * items; /* owned */
	uint32_t n;
};

int ring_known_add(struct ring_known *k, const struct ring_hops *h, uint16_t lane,
		   uint32_t n_ranks); /* -ENOMEM */
void ring_known_deinit(struct ring_known *k);
/* The first one from @from on that has these hops; k->n: none. */
uint32_t ring_known_find(const struct ring_known *k, uint32_t from, const struct ring_hops *h,
			 uint32_t n_ranks);

/* What messages of @bytes cost. Return: 0; the cost function's error. */
int ring_hops_price(const struct ring_hops *h, struct symmetry *y, uint16_t lane, uint64_t bytes,
		    struct ring_costs *ret);
