/* One port is busy, the root's. A peer's messages take turns lane by lane, a message of each lane
 * is a round; all lanes but one have as many, and rounds are alike but for the last of a lane.
 * Peers over the same class of hop have the same times, or follow each other at the root's port.
 *
 * A Gather's peers send at their own ports, round after round, from the start. The root's port then
 * is never idle after some message has come to it: it is free after the latest of
 *
 *   a message comes + the occupancies of all that come then or later
 *
 * A Scatter's root sends round after round to all peers in turn. Of the peers of a class the one
 * whose turn is last is the last to have all, by the same formula at its own port.
 *
 * Messages that follow each other at once count as one run of them: after its first, none of these
 * can be the latest. */
#include "engine/symmetry-star.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PEER_CLASSES 32
#define RUNS_MAX 1024 /* each is compared with each */

enum size { FULL, LAST, REST, SIZES }; /* a lane's last message; that of the last lane */

/* So many rounds that are alike: of @lanes, and one of the rest. */
struct round {
	uint64_t times;
	uint32_t lanes;
	enum size size;
	bool has_rest;
};

struct peers {
	uint32_t class; /* the caller's number */
	uint32_t rank;  /* one of them */
	double n;
	double before[PEER_CLASSES]; /* of each class, whose turn is before the last one's */
	struct nbox_delay d[SIZES];
};

/* Messages that come to a port. */
struct run {
	double first_ns, each_ns, n, occupancy_ns;
};

struct star {
	struct symmetry *y;
	struct round rounds[4];
	uint32_t n_rounds, n_lanes;
	uint64_t bytes[SIZES];
	struct peers peers[PEER_CLASSES];
	uint32_t n_classes;
	struct run *runs; /* owned */
	uint32_t n_runs;
	double *entered; /* owned: when a lane's last message came to the port */
};

static uint32_t source(const struct star *s, uint32_t peer)
{
	return s->y->s->kind == COLL_GATHER ? peer : s->y->s->root;
}

static uint32_t destination(const struct star *s, uint32_t peer)
{
	return s->y->s->kind == COLL_GATHER ? s->y->s->root : peer;
}

/* --- peers -------------------------------------------------------------------------- */

static int add_peer(struct star *s, uint32_t rank, double times)
{
	uint32_t class = s->y->class_of(s->y->ctx, source(s, rank), destination(s, rank), 0), c = 0;

	while (c < s->n_classes && s->peers[c].class != class)
		c++;
	if (c == PEER_CLASSES || class == UINT32_MAX)
		return SYMMETRY_NONE;
	if (c == s->n_classes)
		s->peers[s->n_classes++] = (struct peers){.class = class, .rank = rank};
	for (uint32_t i = 0; i < s->n_classes; i++)
		s->peers[c].before[i] = s->peers[i].n;
	s->peers[c].n += times;
	return 0;
}

static int add_range(struct star *s, uint32_t from, uint32_t to, double times)
{
	int r = 0;

	for (; from < to && !r; from++)
		r = add_peer(s, from, times);
	return r;
}

/* In the root's order, from the next rank on. Of other periods one stands for all. */
static int add_peers(struct star *s)
{
	const struct symmetry *y = s->y;
	uint32_t n = y->s->n_ranks, root = y->s->root, period = y->period ? y->period : n;
	uint32_t first = root - root % period, next = (first + period) % n;
	int r = add_range(s, root + 1, first + period, 1);

	if (!r && n > 2 * period)
		r = add_range(s, next, next + period, n / period - 2);
	if (!r && n > period)
		r = add_range(s, next, next + period, 1);
	return r ? r : add_range(s, first, root, 1);
}

static int load_costs(struct star *s)
{
	int r = 0;

	for (uint32_t c = 0; c < s->n_classes; c++)
		for (uint32_t i = 0; i < SIZES && !r; i++)
			r = symmetry_cost(s->y, source(s, s->peers[c].rank),
					  destination(s, s->peers[c].rank), 0, 0, s->bytes[i],
					  &s->peers[c].d[i]);
	return r;
}

/* --- rounds ------------------------------------------------------------------------- */

static void add_rounds(struct star *s, uint64_t times, uint32_t lanes, enum size size,
		       bool has_rest)
{
	if (times)
		s->rounds[s->n_rounds++] = (struct round){times, lanes, size, has_rest};
}

static void load_rounds(struct star *s)
{
	const struct sched *d = s->y->s;
	uint32_t src = source(s, !d->root), dst = destination(s, !d->root), even = 1;
	uint64_t n = sched_conn_messages(d, src, dst, 0), rest = 0;

	s->n_lanes = d->n_channels;
	if (!n)
		return;
	s->bytes[FULL] = s->bytes[REST] = sched_message_bytes(d, src, dst, 0, 0);
	s->bytes[LAST] = sched_message_bytes(d, src, dst, 0, n - 1);
	while (even < d->n_channels && sched_conn_messages(d, src, dst, (uint16_t)even) == n &&
	       sched_message_bytes(d, src, dst, (uint16_t)even, n - 1) == s->bytes[LAST])
		even++;
	if (even < d->n_channels)
		rest = sched_conn_messages(d, src, dst, (uint16_t)even);
	if (rest) {
		s->bytes[REST] = sched_message_bytes(d, src, dst, (uint16_t)even, rest - 1);
		add_rounds(s, rest - 1, even + 1, FULL, false);
		add_rounds(s, 1, even, rest == n ? LAST : FULL, true);
	}
	if (rest < n) {
		add_rounds(s, n - 1 - rest, even, FULL, false);
		add_rounds(s, 1, even, LAST, false);
	}
}

/* What a round of one peer takes a port. */
static double round_ns(const struct round *r, const struct peers *p)
{
	return r->lanes * p->d[r->size].occupancy_ns + r->has_rest * p->d[REST].occupancy_ns;
}

/* --- the port where messages come ----------------------------------------------------- */

static void add_run(struct star *s, double first_ns, double each_ns, double n, double occupancy_ns)
{
	s->runs[s->n_runs++] = (struct run){first_ns, each_ns, n, occupancy_ns};
}

/* @times rounds, which leave the other port from @at on, of @n_peers at the same time. No message
 * comes before the one ahead of it in its lane. */
static void add_messages(struct star *s, const struct round *r, const struct peers *p, double at,
			 double times, double n_peers)
{
	const struct nbox_delay *full = &p->d[FULL];
	double enter;

	if (r->size == FULL && !r->has_rest) {
		add_run(s, at + full->latency_ns, full->occupancy_ns, times * r->lanes,
			n_peers * full->occupancy_ns);
		enter = at + (times - 1) * round_ns(r, p) + full->latency_ns;
		for (uint32_t i = 0; i < r->lanes; i++)
			s->entered[i] = enter + i * full->occupancy_ns;
		return;
	}
	for (uint32_t i = 0; i < r->lanes + r->has_rest; i++) {
		const struct nbox_delay *d = &p->d[i < r->lanes ? r->size : REST];

		s->entered[i] = fmax(s->entered[i], at + d->latency_ns);
		add_run(s, s->entered[i], 0, 1, n_peers * d->occupancy_ns);
		at += d->occupancy_ns;
	}
}

/* How many of a run come at @ns or later. */
static double since(const struct run *r, double ns)
{
	double before = 0;

	ns -= 1e-12 * ns; /* what comes at the same time */
	if (r->first_ns < ns)
		before = r->each_ns > 0 ? ceil((ns - r->first_ns) / r->each_ns) : r->n;
	return fmax(r->n - before, 0);
}

/* When the port is free, to which the runs come. */
static double port_ns(const struct star *s)
{
	double end = 0;

	for (uint32_t i = 0; i < s->n_runs; i++) {
		double free_ns = s->runs[i].first_ns;

		for (uint32_t k = 0; k < s->n_runs; k++)
			free_ns +=
				since(&s->runs[k], s->runs[i].first_ns) * s->runs[k].occupancy_ns;
		end = fmax(end, free_ns);
	}
	return end;
}

static void start_peers(struct star *s)
{
	for (uint32_t i = 0; i < s->n_lanes; i++)
		s->entered[i] = 0;
}

static double gather_ns(struct star *s)
{
	for (uint32_t c = 0; c < s->n_classes; c++) {
		const struct peers *p = &s->peers[c];
		double at = 0;

		start_peers(s);
		for (uint32_t k = 0; k < s->n_rounds; k++) {
			const struct round *r = &s->rounds[k];

			add_messages(s, r, p, at, (double)r->times, p->n);
			at += (double)r->times * round_ns(r, p);
		}
	}
	return port_ns(s);
}

/* Of rounds that are alike the last is the one that counts. */
static double scatter_ns(struct star *s)
{
	double end = 0;

	for (uint32_t c = 0; c < s->n_classes; c++) {
		double at = 0;

		s->n_runs = 0;
		start_peers(s);
		for (uint32_t k = 0; k < s->n_rounds; k++) {
			const struct round *r = &s->rounds[k];
			double all = 0, before = 0;

			for (uint32_t i = 0; i < s->n_classes; i++) {
				all += s->peers[i].n * round_ns(r, &s->peers[i]);
				before += s->peers[c].before[i] * round_ns(r, &s->peers[i]);
			}
			add_messages(s, r, &s->peers[c], at + (double)(r->times - 1) * all + before,
				     1, 1);
			at += (double)r->times * all;
		}
		end = fmax(end, port_ns(s));
	}
	return end;
}

static int solve_star(struct star *s)
{
	uint32_t most;
	int r;

	load_rounds(s);
	if (!s->n_rounds)
		return 0;
	r = add_peers(s);
	if (!r)
		r = load_costs(s);
	if (r)
		return r;
	most = s->n_classes * 2 * (s->n_lanes + 1);
	if (most > RUNS_MAX)
		return SYMMETRY_NONE;
	s->runs = malloc(most * sizeof(*s->runs));
	s->entered = malloc(s->n_lanes * sizeof(*s->entered));
	if (!s->runs || !s->entered)
		return -ENOMEM;
	s->y->end_ns = s->y->s->kind == COLL_GATHER ? gather_ns(s) : scatter_ns(s);
	return 0;
}

int symmetry_star(struct symmetry *y, struct err *err)
{
	struct star s = {.y = y};
	int r = y->border || y->ranks || y->s->slices > 1 ? SYMMETRY_NONE : solve_star(&s);

	free(s.runs);
	free(s.entered);
	return r == -ENOMEM ? err_set(err, ENOMEM, "no memory for %u lanes", y->s->n_channels) : r;
}
