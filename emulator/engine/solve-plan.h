/* Ops whose messages a scheduler plans. */
#pragma once

#include "engine/places.h"
#include "engine/price.h"
#include "engine/timing.h"
#include "fabric/link-number.h"

/* What a scheduler makes of an op. */
struct planned {
	struct nbox_plan plan;
	struct sched s;        /* the messages, between places; of a plan that says the whole time
				* the call */
	struct places places;  /* of the ranks; sends and receives go between ranks */
	struct routes *routes; /* owned, or NULL */
};

/* The messages that a plan says of @s's call; @per_domain: ranks of each but the last, which may
 * have fewer; 0: they differ. Return: as sched_init(). */
int planned_schedule(const struct nbox_plan *plan, const struct sched *s, uint32_t per_domain,
		     struct sched *ret, struct err *err);

/* Asks the scheduler. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int planned_ask(struct price *p, struct nbox_plan *ret, struct err *err);
/* The same, and has @p price the plan's messages from here on, whose ranks are places; @p
 * and @ret must stay where they are. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int planned_init(struct planned *ret, struct price *p, const struct sched *s, struct err *err);
void planned_deinit(struct planned *pl);

/* The bytes that a plan without messages puts on a link of its fabric: an even share of a domain's
 * NICs, where the domain is inner in one tree and leaf in the other; what a GPU has. */
double planned_whole_bytes(const struct price *p, const struct fabric_view *v, enum link_kind kind);

/* The physical bound of the op over the chain's fabric, and what says so, for @t. */
void planned_bound(const struct price *p, const struct sched *s, struct timing *t);
