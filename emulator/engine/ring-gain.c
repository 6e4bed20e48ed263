/* See ring-gain.h. */
#include "engine/ring-gain.h"

#include <math.h>

/* What a large loop's chunks take, by kind of hop: all slices of a chunk out of one port, and one
 * slice to the next rank. */
struct chunks {
	double n, n_full; /* all; as large as the first */
	double full[RING_CLASSES],
		last[RING_CLASSES]; /* at a port: one of the first, of the last */
	double all[RING_CLASSES];   /* at a port */
	double hop[RING_CLASSES];   /* the first chunk's slice that takes longest */
	double reduction;
};

static int load_sizes(struct ring *g, uint64_t loop, struct chunks *c)
{
	struct nbox_delay d[RING_CLASSES][MAX_SLICES] = {0};
	uint64_t known[MAX_SLICES], bytes;
	int r = 0;

	*c = (struct chunks){.n = g->n};
	for (uint32_t i = 0; i < g->n; i++) {
		double port[RING_CLASSES] = {0};
		bool is_full = true;

		for (uint32_t j = 0; j < g->slices; j++) {
			bytes = first_bytes(g, i + 1 == g->n ? 0 : i + 1, loop, j);
			for (uint32_t hop = 0; hop < g->hops.n && r == 0; hop++) {
				if (i == 0 || bytes != known[j])
					r = cost_of(g, hop, bytes, &d[hop][j]);
				port[hop] += d[hop][j].occupancy_ns;
				if (i == 0)
					c->hop[hop] =
						fmax(c->hop[hop],
						     d[hop][j].occupancy_ns + d[hop][j].latency_ns);
			}
			if (i == 0)
				c->reduction = fmax(c->reduction, reduction(g, bytes));
			is_full = is_full && (i == 0 || bytes == known[j]);
			known[j] = bytes;
		}
		if (r)
			return r;
		for (uint32_t hop = 0; hop < g->hops.n; hop++) {
			c->full[hop] = i == 0 ? port[hop] : c->full[hop];
			c->last[hop] = port[hop];
			c->all[hop] += port[hop];
		}
		c->n_full += is_full && c->n_full == i;
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
