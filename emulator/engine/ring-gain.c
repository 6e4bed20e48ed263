/* See ring-gain.h. */
#include "engine/ring-gain.h"

#include <math.h>

/* What a large loop's chunks take, by kind of hop: all slices of a chunk out of one port, and one
 * slice to the next rank. */
struct chunks {
	double n, n_full;          /* all; as large as the first */
	double full[RING_CLASSES]; /* at a port: one of the first */
	double all[RING_CLASSES];  /* at a port */
	double hop[RING_CLASSES];  /* the first chunk's slice that takes longest */
	double reduction;
};

static uint64_t chunk_bytes(const struct ring *g, uint32_t chunk, uint64_t loop, uint32_t slice)
{
	return first_bytes(g, chunk + 1 == g->n ? 0 : chunk + 1, loop, slice);
}

/* Behind the chunks that are as large as chunk @first: chunks only get smaller. */
static uint32_t run_end(const struct ring *g, uint64_t loop, uint32_t first)
{
	uint32_t low = first, high = g->n;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2, j = 0;

		while (j < g->slices &&
		       chunk_bytes(g, mid, loop, j) == chunk_bytes(g, first, loop, j))
			j++;
		if (j == g->slices)
			low = mid;
		else
			high = mid;
	}
	return high;
}

static int load_sizes(struct ring *g, uint64_t loop, struct chunks *c)
{
	*c = (struct chunks){.n = g->n, .n_full = run_end(g, loop, 0)};
	for (uint32_t i = 0, end; i < g->n; i = end) {
		double port[RING_CLASSES] = {0};

		end = run_end(g, loop, i);
		for (uint32_t j = 0; j < g->slices; j++) {
			uint64_t bytes = chunk_bytes(g, i, loop, j);

			for (uint32_t hop = 0; hop < g->hops.n; hop++) {
				struct nbox_delay d;
				int r = cost_of(g, hop, bytes, &d);

				if (r)
					return r;
				port[hop] += d.occupancy_ns;
				if (i == 0)
					c->hop[hop] =
						fmax(c->hop[hop], d.occupancy_ns + d.latency_ns);
			}
			if (i == 0)
				c->reduction = fmax(c->reduction, reduction(g, bytes));
		}
		for (uint32_t hop = 0; hop < g->hops.n; hop++) {
			c->full[hop] = i == 0 ? port[hop] : c->full[hop];
			c->all[hop] += (end - i) * port[hop];
		}
	}
	return 0;
}

/* How much earlier a loop is over whose chunks are not all as large as the first, than one whose
 * are. Either lasts as long as its longest path: a chunk goes round, or a port sends one chunk
 * after the other, or the one and then the other. Equal chunks: a chunk goes round or a port sends
 * all. Here: a large chunk goes round; a port sends all; a chunk goes round until as many positions
 * are left as there are large chunks, which a port then sends; or as many as once more, with all
 * the small ones between. */
static double gain_of(const struct ring *g, const struct chunks *c, double hop)
{
	double k = (double)g->n_positions, reduced = (double)g->n_reduced * c->reduction, gain;
	double equal = k * hop + reduced, own = equal, rest;

	for (uint32_t i = 0; i < g->hops.n; i++) {
		equal = fmax(equal, k * c->full[i]);
		own = fmax(own, k / c->n * c->all[i]);
		rest = k - c->n_full;
		own = fmax(own,
			   rest * hop + fmin(rest / k * 2, 1) * reduced + c->n_full * c->full[i]);
		rest = k - c->n - c->n_full;
		if (rest > 0)
			own = fmax(own, rest * hop + fmin(rest / k * 2, 1) * reduced + c->all[i] +
						c->n_full * c->full[i]);
	}
	gain = equal - own;
	return gain > 0 ? gain : 0;
}

int ring_gain(struct ring *g, uint64_t loop, double *ret_ns)
{
	struct chunks c;
	double way = 0;
	int r = load_sizes(g, loop, &c);

	for (uint32_t i = 0; i < g->period; i++)
		way += c.hop[g->hops.of[i]];
	if (r == 0)
		*ret_ns = gain_of(g, &c, way / g->period);
	return r;
}
