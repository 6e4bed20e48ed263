/* See ring-path.h, and ring-windows.c for the longest path. */
#include "engine/ring-path.h"

#include <math.h>
#include <string.h>

int ring_by_path(struct ring *g, double *ret_end_ns)
{
	uint64_t last = g->n_loops - 1, each = g->n_positions * g->slices;
	struct ring_costs costs[2];
	struct ring_windows *w;
	double end = 0;
	int r = ring_windows_new(g->period, &w);

	if (r)
		return r;
	for (uint32_t i = 0; i < 2 && !r; i++)
		r = ring_hops_price(&g->hops, g->y, g->lane, first_bytes(g, 1, i ? last : 0, 0),
				    &costs[i]);
	memset(g->free_ns, 0, g->period * sizeof(*g->free_ns));
	if (!r && ring_has_bytes_of_first(g, last)) {
		ring_windows_pass(w, &g->hops, &costs[0], g->slices, g->n_messages - 1, g->free_ns);
	} else if (!r) {
		ring_windows_pass(w, &g->hops, &costs[0], g->slices, last * each, g->free_ns);
		ring_windows_pass(w, &g->hops, &costs[1], g->slices, each - 1, g->free_ns);
	}
	for (uint32_t i = 0; i < g->period && !r; i++)
		end = fmax(end, g->free_ns[i] + costs[1].occupancy[g->hops.of[i]] +
					costs[1].latency[g->hops.of[i]]);
	*ret_end_ns = end;
	ring_windows_free(w);
	return r;
}

bool ring_has_one_size(const struct ring *g)
{
	for (uint32_t j = 0; j < g->slices; j++)
		if (first_bytes(g, 1, 0, j) != first_bytes(g, 1, 0, 0))
			return false;
	return is_even(g, g->n_loops - 1) && ring_has_bytes_of_first(g, g->n_loops - 1);
}
