/* See ends-ring.h. Message m out of rank r is ready when message m-1 is there from rank r-1 and
 * m-1 has left r (symmetry-ring.c). So when it is ready is the latest of many paths: from a rank's
 * arrival, message after message, either over the port to the next rank (occupancy + latency) or to
 * the next message of the same port (occupancy). Where all messages have the same bytes, a path of
 * K messages over d hops takes the hops' occupancies and latencies and K - d times the largest
 * occupancy of a port on it:
 *
 *   ready(r, K) = max over d of  ready(r - d, 0) + C(r) - C(r - d) + (K - d) * M(r - d .. r)
 *
 * C: sum of occupancy + latency along the ring, which goes on round after round. M is one of two
 * numbers, by the kinds of hops. For each the term falls into one part for r and one for r - d, and
 * d moves in a window along the ring: the largest in a sliding window, O(n). Of ranks that are on a
 * path more than once either the first or the last time counts, because more rounds cost the same
 * each.
 *
 * Messages of the last loop may have other bytes: what is ready then is where the next part starts.
 * Chunks of a loop that are not all equal, and reductions, are worked out message by message
 * (symmetry-ring.c) in small worlds. In large ones unequal chunks count as the largest; what that
 * makes longer when all arrive together is taken off again. */
#include "engine/ends-ring.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/symmetry-ring.h"

/* Message by message: about a millisecond. */
#define MAX_CELLS (UINT64_C(1) << 20)

enum { N_PARTS = 2 }; /* loops before the last, the last */

struct part {
	uint64_t n_messages;
	double occupancy[2], latency[2]; /* by hop */
};

struct channel {
	struct part part[N_PARTS];
	uint64_t n_messages;
	bool is_even;
};

struct window {
	double *value; /* falling; owned */
	int64_t *at;   /* owned */
	uint32_t head, tail;
	int64_t next; /* place on the line of ranks, round after round */
	uint32_t rank;
	double way; /* C() of the round */
};

struct ends_ring {
	uint32_t n, n_channels;
	bool by_message;
	double error_ns;
	uint8_t *hop;             /* owned: of r -> r+1 */
	struct channel *channels; /* owned: those that differ */
	double *way;              /* owned: n + 1, C() of the part in work */
	double *ready, *next;     /* owned: n each */
	struct window large, small;
};

struct ends_ring *ends_ring_free(struct ends_ring *g)
{
	if (g) {
		free(g->hop);
		free(g->channels);
		free(g->way);
		free(g->ready);
		free(g->next);
		free(g->large.value);
		free(g->large.at);
		free(g->small.value);
		free(g->small.at);
		free(g);
	}
	return NULL;
}

/* The next windows start at @from. */
static void window_start(const struct ends_ring *g, struct window *w, int64_t from)
{
	int64_t n = g->n, round = from / n - (from % n < 0);

	w->head = w->tail = 0;
	w->next = from;
	w->rank = (uint32_t)(from - round * n);
	w->way = (double)round * g->way[n];
}

/* The largest ready - C + place * slope from @low to @high, which only grow; -INFINITY: none. */
static double window_max(const struct ends_ring *g, struct window *w, double slope, int64_t low,
			 int64_t high)
{
	for (; w->next <= high; w->next++) {
		double v = g->ready[w->rank] - w->way - g->way[w->rank] + (double)w->next * slope;

		while (w->tail > w->head && w->value[w->tail - 1] <= v)
			w->tail--;
		w->value[w->tail] = v;
		w->at[w->tail++] = w->next;
		if (++w->rank == g->n) {
			w->rank = 0;
			w->way += g->way[g->n];
		}
	}
	while (w->head < w->tail && w->at[w->head] < low)
		w->head++;
	return w->head < w->tail ? w->value[w->head] : -INFINITY;
}

/* From when a message is ready at each rank to when the @k-th after it is. */
static void pass(struct ends_ring *g, const struct part *p, uint64_t k)
{
	double largest = 0, smallest = INFINITY;
	int64_t n = g->n, r, large = -n, low, high, m = (int64_t)k;
	bool more_rounds;

	if (!k)
		return;
	for (r = 0; r < n; r++) {
		double o = p->occupancy[g->hop[r]];

		largest = fmax(largest, o);
		smallest = fmin(smallest, o);
		g->way[r + 1] = g->way[r] + o + p->latency[g->hop[r]];
	}
	for (r = 0; r < n; r++) /* the last large hop, in the round before */
		if (p->occupancy[g->hop[r]] == largest)
			large = r - n;
	more_rounds = g->way[n] > (double)n * largest;
	for (r = 0; r < n; r++) {
		double late;

		if (p->occupancy[g->hop[r]] == largest)
			large = r;
		low = more_rounds || r - m > large - n + 1 ? r - m : large - n + 1;
		high = more_rounds && r - m + n - 1 < large ? r - m + n - 1 : large;
		if (r == 0)
			window_start(g, &g->large, low);
		late = window_max(g, &g->large, largest, low, high) + g->way[r] +
		       (double)(m - r) * largest;
		low = r - m > large ? r - m : large + 1;
		if (r == 0)
			window_start(g, &g->small, low);
		late = fmax(late, window_max(g, &g->small, smallest, low, r) + g->way[r] +
					  (double)(m - r) * smallest);
		g->next[r] = late;
	}
	memcpy(g->ready, g->next, (size_t)n * sizeof(*g->ready));
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
			pass(g, &c->part[i], end - begin);
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
				      g->ready[r] + part_of(c, handed)->occupancy[g->hop[r]]);
	}
	go_on(g, c, handed, last);
	for (r = 0; r < n; r++) {
		uint32_t next = r + 1 == n ? 0 : r + 1;
		double left = g->ready[r] + p->occupancy[g->hop[r]];

		ranks->free_ns[r] = fmax(ranks->free_ns[r], left);
		end[next] = fmax(end[next], left + p->latency[g->hop[r]]);
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

static int load_hops(struct ends_ring *g, const struct symmetry *y)
{
	uint32_t r;

	for (r = 0; r < g->n; r++) {
		g->hop[r] = (uint8_t)y->class_of(y->ctx, r, r + 1 == g->n ? 0 : r + 1, 0);
		if (g->hop[r] > 1)
			return SYMMETRY_NONE;
	}
	return 0;
}

/* What messages of @bytes cost. */
static int load_part(const struct ends_ring *g, struct symmetry *y, uint64_t bytes, struct part *p)
{
	struct nbox_delay d;
	uint32_t r;
	int result;

	for (r = 0; r < g->n; r++) {
		if (r && g->hop[r] == g->hop[r - 1])
			continue;
		result = symmetry_cost(y, r, r + 1 == g->n ? 0 : r + 1, 0, 0, bytes, &d);
		if (result)
			return result;
		p->occupancy[g->hop[r]] = d.occupancy_ns;
		p->latency[g->hop[r]] = d.latency_ns;
	}
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
		r = load_part(g, y, bytes[i], &c->part[i]);
	/* a message never arrives before the one ahead: no matter where latencies are equal */
	for (i = 0; i < 2 && loops > 1 && !r; i++)
		if (c->part[0].latency[i] != c->part[1].latency[i])
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
	size_t n = g->n;

	g->hop = malloc(n);
	g->channels = calloc(s->n_channels, sizeof(*g->channels));
	g->way = calloc(n + 1, sizeof(*g->way));
	g->ready = malloc(n * sizeof(*g->ready));
	g->next = malloc(n * sizeof(*g->next));
	g->large.value = malloc(3 * n * sizeof(*g->large.value));
	g->large.at = malloc(3 * n * sizeof(*g->large.at));
	g->small.value = malloc(2 * n * sizeof(*g->small.value));
	g->small.at = malloc(2 * n * sizeof(*g->small.at));
	return g->hop && g->channels && g->way && g->ready && g->next && g->large.value &&
			       g->large.at && g->small.value && g->small.at
		       ? 0
		       : -ENOMEM;
}

static int ring_init(struct ends_ring *g, struct symmetry *y, double whole_ns)
{
	bool is_reduced = coll_reduces(y->s->kind) && y->cost->reduce_ns_per_byte > 0;
	uint64_t cells = g->n * sched_conn_messages(y->s, 0, 1, 0);
	int r = ring_alloc(g, y->s);

	if (!r)
		r = load_hops(g, y);
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
