/* The virtual ranks of gloo's all-gather, which is a ring: rank r sends the parts of r, r - 1,
 * r - 2, ... to r + 1, n - 1 of them, each in two halves, the smaller one first. A virtual rank's
 * part is its template's (topology/template.h). So the halves that a real rank receives from the
 * virtual rank before it are halves that real ranks have sent to the virtual ranks behind them.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nboxd/store/buffer.h"
#include "topology/membership.h"

struct gloo_ring {
	struct gloo_half *halves; /* owned: of real ranks, as they have come */
	size_t n_halves;
	struct gloo_edge *edges; /* owned: real ranks beside virtual ones */
	size_t n_edges;
};

/* The group: @real sorted, at least one. */
struct gloo_ranks {
	struct membership members;
	uint32_t gpus_per_node;
	const uint32_t *classes; /* by world rank; NULL: there is one, or none is known */
	const uint32_t *real;
	uint32_t n_real;
};

void gloo_ring_deinit(struct gloo_ring *r); /* a zeroed struct is allowed */
/* The next message that real rank @from sends to the virtual one behind it. Return: 0; -EPROTO
 * there are no more, or @from is not real; -ENOMEM. */
int gloo_ring_put(struct gloo_ring *r, const struct gloo_ranks *g, uint32_t from, const void *bytes,
		  size_t n);
/**
 * gloo_ring_get - the next message that real rank @to receives from the virtual one before it
 * @n: its size
 * @ret: the ring's, until it is deinitialised
 *
 * Return: 1, and it counts as received; 0 not known yet; -EPROTO there are no more, or the
 * template's is of another size; -ENOMEM.
 */
int gloo_ring_get(struct gloo_ring *r, const struct gloo_ranks *g, uint32_t to, size_t n,
		  const uint8_t **ret);
/* Whether all have sent and received all. */
bool gloo_ring_is_over(const struct gloo_ring *r, const struct gloo_ranks *g);
