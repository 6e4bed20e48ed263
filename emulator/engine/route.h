/* The paths of a planned op's messages. Connections whose links cost the same and are shared by as
 * many have one route. A route is looked for when somebody asks, and found again after that. In a
 * regular fabric the first domain's connections, or those of the first group of leaves, stand for
 * all but those of groups that somebody changed, or that are cut. */
#pragma once

#include "fabric/fabric.h"
#include "nbox-delaymodel.h"
#include "schedule/schedule.h"

struct route {
	struct nbox_link links[FABRIC_PATH_MAX];
	/* Lanes on each link while a tree fills: a domain's edges are not all busy then, a parent's
	 * children share its port. Elsewhere as links[].flows. */
	uint32_t filling[FABRIC_PATH_MAX];
	uint32_t n_links;
	uint32_t hop; /* enum nbox_hop: within a domain, between domains */
};

#define ROUTE_NONE UINT32_MAX

struct routes;
/* @s: the planned schedule; @n_rails: the plan's. @v is not kept, the others are borrowed. Return:
 * 0; -ENOMEM. */
int routes_new(const struct fabric *f, const struct membership *m, const struct sched *s,
	       const struct fabric_view *v, uint32_t n_rails, struct routes **ret);
struct routes *routes_free(struct routes *r); /* NULL; takes NULL */

/* The number of the route from comm rank @src to @dst on @lane of the schedule. ROUTE_NONE: there
 * is no path, or no memory. */
uint32_t routes_find(struct routes *r, uint32_t src, uint32_t dst, uint16_t lane);
/* The links of that connection by number, as fabric_path() has them. */
int routes_links(const struct routes *r, uint32_t src, uint32_t dst, uint16_t lane,
		 uint64_t ret_links[FABRIC_PATH_MAX]);
const struct route *routes_get(const struct routes *r, uint32_t number);
/* Which of comm rank @rank's ports messages of this route take: 0 the GPU's, 1 the NIC's; on PCIe
 * these are one, 0. */
uint32_t routes_port(const struct routes *r, uint32_t rank, uint32_t number);
/* The ranks r and r + period() do the same: a domain's, or n_ranks. */
uint32_t routes_period(const struct routes *r);
/* From @rank on the next one for which none before stands; n_ranks: there are no more. */
uint32_t routes_next(const struct routes *r, uint32_t rank);
