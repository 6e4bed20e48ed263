/* Where the ranks of a communicator stand in a plan. NCCL's rings and trees take them domain by
 * domain, whatever the job's order: domains as they first appear, a domain's GPUs as they are
 * numbered. */
#pragma once

#include "fabric/fabric.h"
#include "topology/membership.h"

struct places {
	uint32_t *of;              /* owned; the place of each comm rank; NULL: that is its rank */
	uint32_t *world;           /* owned; the world rank at each place */
	struct membership members; /* by place, if of is there */
};

/* Return: 0; -ENOMEM. O(ranks + nodes). */
int places_init(struct places *p, const struct fabric *f, const struct membership *m);
void places_deinit(struct places *p);

static inline uint32_t places_of(const struct places *p, uint32_t rank)
{
	return p->of ? p->of[rank] : rank;
}
