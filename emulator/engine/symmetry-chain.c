/* See symmetry-chain.h: the times of the data, as lines (pipe-lines.h), go hop by hop from where it
 * starts to the last rank. Where hops repeat after a period, each round adds as much once the
 * steepest line is above all others: the rounds that remain are one step. */
#include "engine/symmetry-chain.h"

#include <errno.h>
#include <math.h>

#include "engine/pipe-lines.h"
#include "engine/ring-hops.h"

_Static_assert((int)RING_CLASSES <= (int)PIPE_CLASSES, "a lane's hops are all known to its lines");

struct chain {
	struct symmetry *y;
	struct ring_hops hops; /* of the lane */
	struct ring_known known;
	struct pipe_lane messages; /* of the lane */
	struct pipe_slopes slopes; /* of the lane */
};

/* The place where the data starts. */
static uint32_t start_of(const struct chain *c, uint16_t lane)
{
	const struct sched *s = c->y->s;
	uint32_t root = sched_place_of(s, lane, s->root);

	if (s->kind == COLL_BROADCAST)
		return root;
	return root + 1 == s->n_ranks ? 0 : root + 1;
}

static struct pipe_lane messages_of(const struct chain *c, uint16_t lane)
{
	const struct sched *s = c->y->s;
	uint32_t place = start_of(c, lane), src = ring_rank(s, lane, place);
	uint32_t dst = ring_behind(s, lane, place);
	uint64_t n = sched_conn_messages(s, src, dst, lane);

	return (struct pipe_lane){.n_messages = n,
				  .full_bytes = n ? sched_message_bytes(s, src, dst, lane, 0) : 0,
				  .last_bytes =
					  n ? sched_message_bytes(s, src, dst, lane, n - 1) : 0};
}

static int load_costs(struct chain *c, uint16_t lane)
{
	struct ring_costs full, last;
	int r;

	c->slopes.n = 0;
	c->messages.slopes = &c->slopes;
	r = ring_hops_price(&c->hops, c->y, lane, c->messages.full_bytes, &full);
	if (!r)
		r = ring_hops_price(&c->hops, c->y, lane, c->messages.last_bytes, &last);
	for (uint32_t i = 0; i < c->hops.n && !r; i++) {
		const struct nbox_delay f = {full.latency[i], full.occupancy[i]};
		const struct nbox_delay l = {last.latency[i], last.occupancy[i]};

		r = pipe_set_hop(&c->messages, i, &f, &l) ? 0 : SYMMETRY_NONE;
	}
	return r;
}

/* The line above all others; -1: there is none. */
static int top_line(const struct pipe_slopes *s, const struct pipe_times *t)
{
	int top = 0;

	for (int k = 1; k < t->n; k++)
		if (t->offset[k] > t->offset[top])
			top = k;
	for (int k = 0; k < t->n; k++)
		if (t->offset[k] != -INFINITY && s->of[k] > s->of[top])
			return -1;
	return top;
}

/* What a round adds to @t, whose times a round before were @before; negative: not yet the same each
 * time. */
static double growth(const struct pipe_slopes *s, const struct pipe_times *t,
		     const struct pipe_times *before)
{
	int top = top_line(s, t);
	double grown;

	if (top <= 0 || top != top_line(s, before))
		return -1;
	grown = t->offset[top] - before->offset[top];
	return fabs(t->last - before->last - grown) <= 1e-14 * t->last ? grown : -1;
}

static int solve_lane(struct chain *c, uint16_t lane)
{
	uint32_t n = c->y->s->n_ranks, place = start_of(c, lane);
	uint32_t period = ring_hops_period(&c->hops, c->y);
	struct pipe_times t = pipe_start(0), before = t;
	double left, grown;
	int r = load_costs(c, lane);

	for (uint32_t i = 0; i + 1 < n && !r; i++) {
		if (i && i % period == 0) {
			uint32_t rounds = (n - 1 - i) / period;

			grown = growth(&c->slopes, &t, &before);
			for (int k = 1; k < t.n && grown >= 0; k++)
				t.offset[k] += rounds * grown;
			t.last += grown >= 0 ? rounds * grown : 0;
			i += grown >= 0 ? rounds * period : 0;
			before = t;
			if (i + 1 >= n)
				break;
		}
		struct pipe_times a = pipe_over_hop(&c->messages, &t, c->hops.of[place], 0, &left);

		t = pipe_start(0);
		pipe_merge(&t, &a);
		place = place + 1 == n ? 0 : place + 1;
	}
	c->y->end_ns = fmax(c->y->end_ns, t.last);
	return r;
}

static bool are_equal(const struct pipe_lane *a, const struct pipe_lane *b)
{
	return a->n_messages == b->n_messages && a->full_bytes == b->full_bytes &&
	       a->last_bytes == b->last_bytes;
}

static bool has_messages_of(const struct chain *c, uint16_t lane)
{
	struct pipe_lane other = messages_of(c, lane);

	return are_equal(&c->messages, &other);
}

/* Whether the lane before it on its rail, whose hops are the same, has the same messages. */
static bool is_like_rail(const struct chain *c, uint32_t lane)
{
	uint32_t n_rails = sched_n_rails(c->y->s);

	return lane >= n_rails && has_messages_of(c, (uint16_t)(lane - n_rails));
}

/* Whether an earlier lane had the same hops and messages. */
static bool is_known(const struct chain *c, uint16_t lane)
{
	uint32_t n = c->y->s->n_ranks;

	for (uint32_t i = 0; (i = ring_known_find(&c->known, i, &c->hops, n)) < c->known.n; i++) {
		uint16_t other = c->known.items[i].lane;

		if (start_of(c, lane) == start_of(c, other) && has_messages_of(c, other))
			return true;
	}
	return false;
}

static int each_lane(struct chain *c)
{
	int r = 0;

	for (uint32_t i = 0; i < c->y->s->n_channels && !r; i++) {
		uint16_t lane = (uint16_t)i;

		c->messages = messages_of(c, lane);
		if (!c->messages.n_messages || is_like_rail(c, lane))
			continue;
		r = ring_hops_load(&c->hops, c->y, lane);
		if (r || is_known(c, lane))
			continue;
		r = solve_lane(c, lane);
		if (!r)
			r = ring_known_add(&c->known, &c->hops, lane, c->y->s->n_ranks);
	}
	return r;
}

int symmetry_chain(struct symmetry *y, struct err *err)
{
	struct chain c = {.y = y};
	int r;

	if (y->border || y->ranks || y->s->slices > 1 ||
	    (y->cost->reduce_ns_per_byte > 0 && y->s->kind == COLL_REDUCE))
		return SYMMETRY_NONE;
	r = each_lane(&c);
	ring_hops_deinit(&c.hops);
	ring_known_deinit(&c.known);
	return r == -ENOMEM
		       ? err_set(err, ENOMEM, "no memory for a chain of %u ranks", y->s->n_ranks)
		       : r;
}
