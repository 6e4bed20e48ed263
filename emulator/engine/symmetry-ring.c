/* The ring, channel by channel. Message m out of rank r starts when rank r is done with message
 * m - slices of rank r-1 and message m-1 of r has left; done(r,m) is rank r+1's:
 *
 *   sent(r,m)   = max(done(r-1, m-slices), left(r, m-1))
 *   left(r,m)   = sent(r,m) + occupancy,  arrived(r,m) = left(r,m) + latency
 *   done(r,m)   = max(arrived(r,m), done(r,m-1)) + reduction, if m is reduced
 *
 * Where all messages of a loop have the same bytes, ranks with the same hops before and behind them
 * do the same at the same time. So only one period of the pattern of hops is computed: one rank
 * when all hops are equal (then in closed form: each position takes occupancy + latency +
 * reduction), else the ranks of one node. A last loop whose bytes do not divide evenly is computed
 * for all ranks, as rows of numbers, a nanosecond or less a message; so is every loop where ranks
 * start at times of their own (ends-ring.h takes that for small worlds).
 *
 * In large worlds that would take seconds. There all chunks of the last loop count as its first,
 * which is the largest. ring-gain.c subtracts by how much the smaller ones end earlier, by the
 * longest paths: exact where a chunk's way round lasts longer than a port is busy, else within some
 * percent in the smallest worlds, and nearer in large ones. */
#include "engine/symmetry-ring.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/ring-gain.h"
#include "engine/ring-path.h"

#define MAX_CELLS (UINT64_C(1) << 20) /* of a loop with unequal chunks: a millisecond or two */

static void ring_deinit(struct ring *g)
{
	ring_hops_deinit(&g->hops);
	ring_known_deinit(&g->known);
	free(g->rows);
	free(g->arrived);
	free(g->free_ns);
	free(g->handed);
	free(g->kept);
	free(g->cost);
	free(g->in);
}

static int load_hops(struct ring *g)
{
	int r = ring_hops_load(&g->hops, g->y, g->lane);

	if (r)
		return r;
	g->period = g->y->ranks ? g->n : ring_hops_period(&g->hops, g->y);
	g->n_columns = 2 * (g->hops.n < 2 ? 2 : g->hops.n) + 1;
	return 0;
}

/* Where ranks do not start together: the next rank takes nothing, and a rank sends nothing before.
 */
static void load_starts(struct ring *g)
{
	uint32_t n = g->n, j, r;

	for (r = 0; r < n; r++) {
		g->free_ns[r] = sim_port_of(g->y->ranks, rank_at(g, r));
		g->handed[r] = 0;
		for (j = 0; j <= g->slices; j++)
			g->rows[(size_t)j * n + r] = sim_start_of(g->y->ranks, rank_behind(g, r));
	}
}

static int ring_buffers(struct ring *g)
{
	const struct border *b = g->y->border;
	size_t n = g->n;

	if (!g->rows) {
		g->rows = malloc((g->slices + 1) * n * sizeof(double));
		g->arrived = malloc(n * sizeof(double));
		g->free_ns = malloc(n * sizeof(double));
		g->handed = malloc(n * sizeof(double));
		g->kept = malloc((g->slices + 3) * n * sizeof(double));
		g->in = malloc(((b ? b->n_in : 0) + 1) * sizeof(*g->in));
		if (!g->rows || !g->arrived || !g->free_ns || !g->handed || !g->kept || !g->in)
			return -ENOMEM;
	}
	free(g->cost);
	g->cost = malloc((size_t)g->slices * g->n_columns * 2 * n * sizeof(double));
	if (!g->cost)
		return -ENOMEM;
	memset(g->rows, 0, (g->slices + 1) * n * sizeof(double));
	memset(g->arrived, 0, n * sizeof(double));
	memset(g->free_ns, 0, n * sizeof(double));
	if (g->y->ranks)
		load_starts(g);
	g->n_in = 0;
	for (uint32_t i = 0; b && i < b->n_in; i++)
		if (b->in[i].lane == g->lane)
			g->in[g->n_in++] = i;
	return 0;
}

static void report(const struct ring *g, uint64_t m, uint32_t width)
{
	uint32_t i;

	for (i = 0; i < g->n_in; i++)
		g->y->at[g->y->offset[g->in[i]] + m] =
			g->arrived[sched_place_of(g->y->s, g->lane,
						  g->y->border->in[g->in[i]].src) %
				   width];
}

/* Message m of places 0 .. width-1. @cost: its columns, by place; @reduces: 1 or 0. */
static void advance(double *restrict row, const double *restrict before,
		    const double *restrict last, double *restrict arrived, double *restrict free_ns,
		    const uint8_t *restrict hop, const double *restrict cost, size_t column,
		    double reduces, uint32_t width)
{
	double ready = before[width - 1];
	uint32_t r;

	for (r = 0; r < width; r++) {
		double occ = hop[r] ? cost[2 * column + r] : cost[r];
		double lat = hop[r] ? cost[3 * column + r] : cost[column + r];
		double sent = r ? before[r - 1] : ready, at;

		sent = sent > free_ns[r] ? sent : free_ns[r];
		free_ns[r] = sent + occ;
		at = free_ns[r] + lat;
		arrived[r] = at = at > arrived[r] ? at : arrived[r];
		row[r] = (at > last[r] ? at : last[r]) + reduces * cost[4 * column + r];
	}
}

/* The same with more than two classes. */
static void advance_mixed(double *restrict row, const double *restrict before,
			  const double *restrict last, double *restrict arrived,
			  double *restrict free_ns, const uint8_t *restrict hop,
			  const double *restrict cost, size_t column, size_t reduction,
			  double reduces, uint32_t width)
{
	double ready = before[width - 1];

	for (uint32_t r = 0; r < width; r++) {
		const double *own = cost + 2 * hop[r] * column + r;
		double sent = r ? before[r - 1] : ready, at;

		sent = sent > free_ns[r] ? sent : free_ns[r];
		free_ns[r] = sent + own[0];
		at = free_ns[r] + own[column];
		arrived[r] = at = at > arrived[r] ? at : arrived[r];
		row[r] = (at > last[r] ? at : last[r]) + reduces * cost[reduction * column + r];
	}
}

static double *slice_cost(const struct ring *g, uint32_t slice)
{
	return g->cost + (size_t)slice * g->n_columns * 2 * g->n;
}

/* Costs of slice @slice of each chunk of a loop, twice, so that any rotation is a
 * row: cost[k][c] for c < 2n; chunk 0 leaves place 1 first. */
static int load_chunks(struct ring *g, uint64_t loop, uint32_t slice)
{
	double *cost = slice_cost(g, slice);
	size_t n = g->n;
	uint32_t c, hop;
	uint64_t bytes, last = 0;
	struct nbox_delay d[RING_CLASSES];
	int r;

	for (c = 0; c < n; c++) {
		bytes = first_bytes(g, c + 1 == n ? 0 : c + 1, loop, slice);
		for (hop = 0; hop < g->hops.n; hop++) {
			r = c && bytes == last ? 0 : cost_of(g, hop, bytes, &d[hop]);
			if (r)
				return r;
			cost[(2 * hop) * 2 * n + c] = d[hop].occupancy_ns;
			cost[(2 * hop) * 2 * n + n + c] = d[hop].occupancy_ns;
			cost[(2 * hop + 1) * 2 * n + c] = d[hop].latency_ns;
			cost[(2 * hop + 1) * 2 * n + n + c] = d[hop].latency_ns;
		}
		cost[(g->n_columns - 1) * 2 * n + c] = reduction(g, bytes);
		cost[(g->n_columns - 1) * 2 * n + n + c] = reduction(g, bytes);
		last = bytes;
	}
	return 0;
}

static double *row_of(const struct ring *g, uint64_t m)
{
	return g->rows + m % (g->slices + 1) * g->n;
}

static void advance_all(struct ring *g, uint64_t m, uint32_t width, uint32_t first_chunk)
{
	const double *cost = slice_cost(g, (uint32_t)(m % g->slices)) + first_chunk;
	bool reduces = m / g->slices % g->n_positions < g->n_reduced;
	uint64_t before = m + 1; /* m - slices, as rows go round */

	if (g->hops.n <= 2)
		advance(row_of(g, m), row_of(g, before), row_of(g, m + g->slices), g->arrived,
			g->free_ns, g->hops.of, cost, 2 * (size_t)g->n, reduces, width);
	else
		advance_mixed(row_of(g, m), row_of(g, before), row_of(g, m + g->slices), g->arrived,
			      g->free_ns, g->hops.of, cost, 2 * (size_t)g->n, g->n_columns - 1,
			      reduces, width);
	if (g->y->ranks && m + 1 + g->y->ranks->buffered == g->n_messages)
		memcpy(g->handed, g->free_ns, width * sizeof(*g->handed));
	report(g, m, width);
}

/* A loop whose chunks are not all equal: all ranks, position by position. */
static int uneven_loop(struct ring *g, uint64_t loop)
{
	uint64_t s;
	uint32_t j, back;
	int r;

	for (j = 0; j < g->slices; j++) {
		r = load_chunks(g, loop, j);
		if (r)
			return r;
	}
	for (s = 0; s < g->n_positions; s++) {
		back = (uint32_t)((1 + s) % g->n);
		for (j = 0; j < g->slices; j++)
			advance_all(g, loop_first(g, loop) + s * g->slices + j, g->n,
				    (g->n - back) % g->n);
	}
	return 0;
}

/* Whether a loop is not worked out for all ranks. */
static bool is_large(const struct ring *g)
{
	uint64_t max = g->y->max_cells ? g->y->max_cells : MAX_CELLS;

	return !g->y->ranks && g->n * g->n_positions * g->slices > max;
}

/* The j-th of the slices + 3 rows that the messages to come depend on. */
static double *state_of(const struct ring *g, uint32_t j)
{
	return j <= g->slices       ? g->rows + (size_t)j * g->n
	       : j == g->slices + 1 ? g->free_ns
				    : g->arrived;
}

/* By how much the state is later than the one in @g->kept, which then becomes it; negative: not
 * everywhere by as much. */
static double state_grown(struct ring *g)
{
	double grown = g->free_ns[0] - g->kept[(size_t)(g->slices + 1) * g->period];
	double error = 1e-14 * g->free_ns[0], *kept = g->kept;
	bool is_even = true;

	for (uint32_t j = 0; j < g->slices + 3; j++) {
		const double *now = state_of(g, j);

		for (uint32_t i = 0; i < g->period; i++, kept++) {
			is_even = is_even && fabs(now[i] - *kept - grown) <= error;
			*kept = now[i];
		}
	}
	return is_even ? grown : -1;
}

/* Messages @from to @to, all equal and reduced alike. Once everything is as much later as a round
 * before, it goes on like that: the rounds that remain are one step. */
static void even_run(struct ring *g, uint64_t from, uint64_t to)
{
	uint64_t round = (uint64_t)g->period * g->slices * (g->slices + 1), k;
	bool may_jump = !g->n_in && !g->y->ranks;
	double grown;

	for (uint64_t m = from; m < to; m++) {
		advance_all(g, m, g->period, 0);
		if (!may_jump || (m + 1 - from) % round)
			continue;
		grown = state_grown(g);
		if (grown < 0 || m + 1 - from == round)
			continue;
		k = (to - m - 1) / round;
		for (uint32_t j = 0; j < g->slices + 3; j++)
			for (uint32_t i = 0; i < g->period; i++)
				state_of(g, j)[i] += (double)k * grown;
		m += k * round;
		may_jump = false;
	}
}

static int load_even(struct ring *g, uint64_t loop)
{
	size_t n = g->n;
	struct nbox_delay d;

	for (uint32_t j = 0; j < g->slices; j++) {
		uint64_t bytes = first_bytes(g, 1, loop, j);
		double *cost = slice_cost(g, j);

		for (uint32_t hop = 0; hop < g->hops.n; hop++) {
			int r = cost_of(g, hop, bytes, &d);

			if (r)
				return r;
			for (uint32_t i = 0; i < g->period; i++) {
				cost[(2 * hop) * 2 * n + i] = d.occupancy_ns;
				cost[(2 * hop + 1) * 2 * n + i] = d.latency_ns;
			}
		}
		for (uint32_t i = 0; i < g->period; i++)
			cost[(g->n_columns - 1) * 2 * n + i] = reduction(g, bytes);
	}
	return 0;
}

/* Loops @from to @to, of equal chunks. One period of the ring stands for all of it. */
static int even_loops(struct ring *g, uint64_t from, uint64_t to)
{
	int r = from < to ? load_even(g, from) : 0;

	if (r)
		return r;
	if (!g->n_reduced || g->y->cost->reduce_ns_per_byte <= 0) {
		even_run(g, loop_first(g, from), loop_first(g, to));
		return 0;
	}
	for (; from < to; from++) {
		uint64_t first = loop_first(g, from), reduced = first + g->n_reduced * g->slices;

		even_run(g, first, reduced);
		even_run(g, reduced, loop_first(g, from + 1));
	}
	return 0;
}

/* From here on each rank goes its own way. */
static void widen(struct ring *g, uint32_t from)
{
	uint32_t j, r;

	for (r = from; r < g->n; r++) {
		g->free_ns[r] = g->free_ns[r % from];
		g->arrived[r] = g->arrived[r % from];
		for (j = 0; j <= g->slices; j++)
			g->rows[(size_t)j * g->n + r] = g->rows[(size_t)j * g->n + r % from];
	}
}

/* All hops equal, one slice: each position takes as long as its message and its reduction. */
static int closed_form(struct ring *g, double *ret_end_ns)
{
	struct nbox_delay d;
	double now = 0, each, reduced;
	uint64_t loop, m;
	uint32_t i;
	int r;

	for (loop = 0; loop < g->n_loops; loop++) {
		r = cost_of(g, 0, first_bytes(g, 1, loop, 0), &d);
		if (r)
			return r;
		each = d.occupancy_ns + d.latency_ns;
		reduced = reduction(g, first_bytes(g, 1, loop, 0));
		for (i = 0; i < g->n_in; i++)
			for (m = 0; m < g->n_positions; m++)
				g->y->at[g->y->offset[g->in[i]] + loop_first(g, loop) + m] =
					now + (double)(m + 1) * each +
					(double)(m < g->n_reduced ? m : g->n_reduced) * reduced;
		now += (double)g->n_positions * each + (double)g->n_reduced * reduced;
	}
	*ret_end_ns = now;
	return 0;
}

/* Whether the longest path is asked for: where that is exact, and where there are too many messages
 * for each to be looked at. */
static bool wants_path(const struct ring *g)
{
	uint64_t max = g->y->max_cells ? g->y->max_cells : MAX_CELLS;

	if (g->y->ranks || g->n_in || (g->n_reduced && g->y->cost->reduce_ns_per_byte > 0))
		return false;
	return ring_has_one_size(g) || (g->period == g->n && g->n * g->n_messages > max);
}

static void tell_rank(const struct ring *g, uint32_t place, const double *row)
{
	double *end = g->y->ranks->end_ns, *port = g->y->ranks->free_ns;
	double received = row[place ? place - 1 : g->n - 1];
	uint32_t rank = rank_at(g, place);

	end[rank] = fmax(end[rank], fmax(received, g->handed[place]));
	port[rank] = fmax(port[rank], g->free_ns[place]);
}

/* The last loop, whose chunks may not all be equal. */
static int last_loop(struct ring *g, double *ret_gain, uint32_t *ret_width)
{
	uint64_t loop = g->n_loops - 1;
	int r;

	*ret_width = g->period;
	*ret_gain = 0;
	if (is_even(g, loop))
		return even_loops(g, loop, loop + 1);
	if (is_large(g)) {
		g->y->is_near = true;
		r = ring_gain(g, loop, ret_gain);
		return r ? r : even_loops(g, loop, loop + 1);
	}
	widen(g, g->period);
	*ret_width = g->n;
	return uneven_loop(g, loop);
}

static int recurrence(struct ring *g, double *ret_end_ns)
{
	uint64_t n_full = g->n_loops - 1;
	bool is_last_full = is_even(g, n_full) && ring_has_bytes_of_first(g, n_full);
	uint32_t width = g->period, rank;
	const double *row;
	double gain = 0;
	int r = even_loops(g, 0, is_last_full ? g->n_loops : n_full);

	if (!r && !is_last_full)
		r = last_loop(g, &gain, &width);
	row = row_of(g, g->n_messages - 1);
	for (rank = 0; rank < width && !r; rank++)
		*ret_end_ns = row[rank] > *ret_end_ns ? row[rank] : *ret_end_ns;
	*ret_end_ns -= gain;
	for (uint32_t i = 0; i < g->n_in && gain > 0; i++)
		for (uint64_t m = 0; m < g->n_messages; m++) {
			double *at = &g->y->at[g->y->offset[g->in[i]] + m];

			*at = fmin(*at, *ret_end_ns);
		}
	for (rank = 0; g->y->ranks && rank < width && !r; rank++)
		tell_rank(g, rank, row);
	return r;
}

static int solve_channel(struct ring *g, double *ret_end_ns)
{
	bool is_closed = g->period == 1 && g->slices == 1;
	double gain = 0;
	uint64_t loop;
	int r;

	*ret_end_ns = 0;
	for (loop = 0; loop < g->n_loops && is_closed; loop++)
		is_closed = is_even(g, loop);
	r = ring_buffers(g);
	if (r)
		return r;
	if (is_closed)
		return closed_form(g, ret_end_ns);
	if (!wants_path(g))
		return recurrence(g, ret_end_ns);
	g->y->is_near = g->y->is_near || !ring_has_one_size(g);
	if (!is_even(g, g->n_loops - 1))
		r = ring_gain(g, g->n_loops - 1, &gain);
	if (!r)
		r = ring_by_path(g, ret_end_ns);
	*ret_end_ns -= gain;
	return r;
}

/* Whether the lane's messages are those of lane @other: then, with the same hops, its end is known.
 * All loops but the last are full. */
static bool has_messages_of(struct ring *g, uint32_t other)
{
	uint64_t loops[2] = {0, g->n_loops - 1};
	struct ring like = *g;
	uint32_t i, place, j;

	like.lane = (uint16_t)other;
	if (sched_conn_messages(g->y->s, rank_at(&like, 0), rank_at(&like, 1), like.lane) !=
	    g->n_messages)
		return false;
	for (i = 0; i < 2; i++)
		for (place = 0; place < 2; place++)
			for (j = 0; j < g->slices; j++)
				if (first_bytes(g, place, loops[i], j) !=
				    first_bytes(&like, place, loops[i], j))
					return false;
	return true;
}

/* Whether the lane before it on its rail, whose hops are the same, has the same messages. */
static bool is_like_rail(struct ring *g)
{
	uint32_t n_rails = sched_n_rails(g->y->s);

	return !g->y->border && g->lane >= n_rails && has_messages_of(g, g->lane - n_rails);
}

/* Whether an earlier lane had the same hops and messages. */
static bool is_known(struct ring *g)
{
	const struct ring_known *k = &g->known;

	for (uint32_t i = 0; (i = ring_known_find(k, i, &g->hops, g->n)) < k->n; i++)
		if (has_messages_of(g, k->items[i].lane))
			return true;
	return false;
}

static int one_lane(struct ring *g)
{
	const struct sched *s = g->y->s;
	double end;
	int r = 0;

	g->n_messages = sched_conn_messages(s, rank_at(g, 0), rank_at(g, 1), g->lane);
	g->n_loops = g->n_messages / (g->n_positions * g->slices);
	if (!g->n_loops || is_like_rail(g))
		return 0;
	if (!g->lane || s->n_rails > 1)
		r = load_hops(g);
	if (r || is_known(g))
		return r;
	r = solve_channel(g, &end);
	if (!r && end > g->y->end_ns)
		g->y->end_ns = end;
	return r || g->y->border ? r : ring_known_add(&g->known, &g->hops, g->lane, g->n);
}

static int all_channels(struct ring *g)
{
	int r = 0;

	for (uint32_t c = 0; c < g->y->s->n_channels && !r; c++) {
		g->lane = (uint16_t)c;
		r = one_lane(g);
	}
	return r;
}

int symmetry_ring(struct symmetry *y, struct err *err)
{
	struct ring g = {
		.y = y,
		.n = y->s->n_ranks,
		.slices = y->s->slices ? y->s->slices : 1,
		.n_positions = symmetry_ring_positions(y->s),
		.n_reduced = y->s->kind == COLL_ALLGATHER ? 0 : y->s->n_ranks - 1,
	};
	bool takes_turns = g.n_reduced && y->cost->reduce_ns_per_byte > 0 && y->s->n_channels > 1;
	int r = takes_turns || g.slices > MAX_SLICES ? SYMMETRY_NONE : all_channels(&g);

	if (r == -ENOMEM)
		err_set(err, ENOMEM, "no memory for a ring of %u ranks", g.n);
	ring_deinit(&g);
	return r;
}
