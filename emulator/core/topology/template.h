/* Templates: which real member of a communicator a virtual rank copies, in its times, its data, its
 * votes in a split and its part of gloo's all-gather. The rule:
 *
 *   - Of the real members only those of the virtual rank's class count, such as its stage of a
 *     pipeline; where there are none, those of the class whose number is nearest, of two the lower.
 *   - Those with the virtual rank's local index (world rank mod GPUs a node) take its node's turn:
 *     of m such members, in the order of their ranks, number (node mod m).
 *   - Where none has that local index, all of them take turns: number (rank mod k) of k.
 *
 * The template of a real member is the member itself. Nothing else in nbox may choose a template.
 */
#pragma once

#include <stdint.h>

#include "topology/membership.h"

struct templates {
	const struct membership *members; /* borrowed */
	const uint32_t *classes;          /* borrowed; by world rank; NULL: there is one */
	uint32_t gpus_per_node, n_real;
	uint32_t *real;     /* owned; ranks, in order */
	uint32_t *by_place; /* owned; indexes into real, by class, then local index, then rank */
	uint32_t *by_class; /* owned; the same by class, then rank */
};

/* @classes: as above. @real: the real members' ranks in @members, in order; at least one. Return:
 * 0; -ENOMEM. */
int templates_init(struct templates *t, const struct membership *members, uint32_t gpus_per_node,
		   const uint32_t *classes, const uint32_t *real, uint32_t n_real);
void templates_deinit(struct templates *t); /* a zeroed one is allowed */
/* The template of @rank, as its index among the real members. O(log n_real). */
uint32_t template_of(const struct templates *t, uint32_t rank);
/* How many ranks have real member i as their template, itself among them: n[i]. Adds to @n. */
void templates_count(const struct templates *t, uint32_t *n);
