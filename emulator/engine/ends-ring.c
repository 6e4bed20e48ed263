/* See ends-ring.h. Where all messages of a loop have the same bytes, the longest path says when
 * they are ready (ring-windows.c), from when each rank arrives. Messages of the last loop may have
 * other bytes: what is ready then is where the next part starts.
 *
 * Chunks of a loop that are not all equal, and reductions, are worked out message by message
 * (symmetry-ring.c) in small worlds. In large ones unequal chunks count as the largest; what that
 * makes longer when all arrive together is taken off again. */
#include "engine/ends-ring.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/ring-hops.h"
#include "engine/symmetry-ring.h"

/* Message by message: about a millisecond. */
#define MAX_CELLS (UINT64_C(1) << 20)

enum { N_PARTS = 2 }; /* loops before the last, the last */

struct part {
	uint64_t n_messages;
	struct ring_costs costs;
};

struct channel {
	struct part part[N_PARTS];
	uint64_t n_messages;
	bool is_even;
};

struct ends_ring {
	uint32_t n, n_channels;
	bool by_message;
	double error_ns;
	struct ring_hops hops;
	struct channel *channels;     /* owned: those that differ */
	double *ready;                /* owned: n */
	struct ring_windows *windows; /* owned */
};

struct ends_ring *ends_ring_free(struct ends_ring *g)
{
	if (g) {
		ring_hops_deinit(&g->hops);
		free(g->channels);
		free(g->ready);
		ring_windows_free(g->windows);
		free(g);
	}
	return NULL;
}

/* From message @from of the channel to message @to. */
static void go_on(struct ends_ring *g, const struct channel *c, uint64_t from, uint64_t to)
{
	uint64_t first = 0, last, begin, end;
	int i;

	for (i = 0; i < N_PARTS; i++, first = last) {
		last = first + c->part[i].n_messages;
		begin = from > first ? from : first;
		end = to < last ? to : last;
		if (begin < end)
			ring_windows_pass(g->windows, &g->hops, &c->part[i].costs, 1, end - begin,
					  g->ready);
	}
}

static const struct part *part_of(const struct channel *c, uint64_t message)
{
	return &c->part[message >= c->part[0].n_messages];
}

static void solve_channel(struct ends_ring *g, const struct channel *c,
			  const struct sim_ranks *ranks)
{
	uint64_t last = c->n_messages - 1, handed = 0;
	const struct part *p = part_of(c, last);
	double *end = ranks->end_ns;
	uint32_t n = g->n, r;

	memcpy(g->ready, ranks->busy_ns, n * sizeof(*g->ready));
	if (c->n_messages > ranks->buffered) {
		handed = last - ranks->buffered;
		go_on(g, c, 0, handed);
		for (r = 0; r < n; r++)
			end[r] = fmax(end[r],
				      g->ready[r] +
					      part_of(c, handed)->costs.occupancy[g->hops.of[r]]);
	}
	go_on(g, c, handed, last);
	for (r = 0; r < n; r++) {
		uint32_t next = r + 1 == n ? 0 : r + 1;
		double left = g->ready[r] + p->costs.occupancy[g->hops.of[r]];

		ranks->free_ns[r] = fmax(ranks->free_ns[r], left);
		end[next] = fmax(end[next], left + p->costs.latency[g->hops.of[r]]);
	}
}

int ends_ring_solve(struct ends_ring *g, struct symmetry *y, struct err *err)
{
	uint32_t i, r;

	if (g->by_message)
		return symmetry_ring(y, err);
	for (i = 0; i < g->n_channels; i++)
		solve_channel(g, &g->channels[i], y->ranks);
	for (r = 0; r < g->n && g->error_ns > 0; r++)
		y->ranks->end_ns[r] =
			fmax(y->ranks->start_ns[r], y->ranks->end_ns[r] - g->error_ns);
	return 0;
}

/* Bytes that rank @src sends first in a loop: rank 1 sends the loop's first chunk, rank 0 its
 * last. */
static uint64_t first_bytes(const struct ends_ring *g, const struct sched *s, uint32_t src,
			    uint32_t lane, uint64_t loop)
{
	return sched_message_bytes(s, src, src + 1 == g->n ? 0 : src + 1, (uint16_t)lane,
				   loop * symmetry_ring_positions(s));
}

static int load_channel(struct ends_ring *g, struct symmetry *y, uint32_t lane, struct channel *c)
{
	uint64_t positions = symmetry_ring_positions(y->s), loops;
	uint64_t bytes[N_PARTS];
	int i, r = 0;

	memset(c, 0, sizeof(*c)); /* compared as bytes */
	c->n_messages = sched_conn_messages(y->s, 0, 1, (uint16_t)lane);
	loops = c->n_messages / positions;
	if (!loops)
		return 0;
	c->part[0].n_messages = (loops - 1) * positions;
	c->part[1].n_messages = positions;
	bytes[0] = first_bytes(g, y->s, 1, lane, 0);
	bytes[1] = first_bytes(g, y->s, 1, lane, loops - 1);
	c->is_even = bytes[1] == first_bytes(g, y->s, 0, lane, loops - 1);
	for (i = 0; i < N_PARTS && !r; i++)
		r = ring_hops_price(&g->hops, y, 0, bytes[i], &c->part[i].costs);
	/* a message never arrives before the one ahead: no matter where latencies are equal */
	for (i = 0; i < (int)g->hops.n && loops > 1 && !r; i++)
		if (c->part[0].costs.latency[i] != c->part[1].costs.latency[i])
			r = SYMMETRY_NONE;
	return r;
}

/* Channels with the same messages end at the same time. */
static int load_channels(struct ends_ring *g, struct symmetry *y)
{
	const struct channel *last;
	uint32_t i;
	int r = 0;

	for (i = 0; i < y->s->n_channels && !r; i++) {
		struct channel c;

		r = load_channel(g, y, i, &c);
		if (r || !c.n_messages)
			continue;
		g->by_message = g->by_message || !c.is_even;
		last = g->n_channels ? &g->channels[g->n_channels - 1] : NULL;
		if (!last || memcmp(last, &c, sizeof(c)) != 0)
			g->channels[g->n_channels++] = c;
	}
	return r;
}

/* Unequal chunks count as the largest. @whole_ns: the op's time when all arrive together. */
static int take_as_even(struct ends_ring *g, const struct symmetry *y, double whole_ns)
{
	CLEANUP(freep) double *zero = calloc(3 * (size_t)g->n, sizeof(*zero));
	struct sim_ranks ranks = *y->ranks;
	struct symmetry together = *y;
	double last = 0;
	uint32_t r;

	if (!zero)
		return -ENOMEM;
	ranks.start_ns = ranks.busy_ns = zero;
	ranks.end_ns = zero + g->n;
	ranks.free_ns = ranks.end_ns + g->n;
	together.ranks = &ranks;
	g->by_message = false;
	ends_ring_solve(g, &together, NULL); /* cannot fail */
	for (r = 0; r < g->n; r++)
		last = fmax(last, ranks.end_ns[r]);
	g->error_ns = fmax(last - whole_ns, 0);
	return 0;
}

static int ring_alloc(struct ends_ring *g, const struct sched *s)
{
	g->channels = calloc(s->n_channels, sizeof(*g->channels));
	g->ready = malloc(g->n * sizeof(*g->ready));
	return g->channels && g->ready ? ring_windows_new(g->n, &g->windows) : -ENOMEM;
}

static int ring_init(struct ends_ring *g, struct symmetry *y, double whole_ns)
{
	bool is_reduced = coll_reduces(y->s->kind) && y->cost->reduce_ns_per_byte > 0;
	uint64_t cells = g->n * sched_conn_messages(y->s, 0, 1, 0);
	int r = ring_alloc(g, y->s);

	if (!r)
		r = ring_hops_load(&g->hops, y, 0);
	if (r)
		return r;
	if (is_reduced || y->s->slices > 1) {
		g->by_message = true;
		return cells > MAX_CELLS || (is_reduced && y->s->n_channels > 1) ? SYMMETRY_NONE
										 : 0;
	}
	r = load_channels(g, y);
	return r || !g->by_message || cells <= MAX_CELLS ? r : take_as_even(g, y, whole_ns);
}

int ends_ring_new(struct symmetry *y, double whole_ns, struct ends_ring **ret, struct err *err)
{
	struct ends_ring *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return err_set(err, ENOMEM, "no memory for a ring of %u ranks", y->s->n_ranks);
	g->n = y->s->n_ranks;
	r = ring_init(g, y, whole_ns);
	if (r == -ENOMEM)
		err_set(err, ENOMEM, "no memory for a ring of %u ranks", g->n);
	if (r)
		ends_ring_free(g);
	else
		*ret = g;
	return r;
}
