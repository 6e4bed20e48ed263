/* Pipelines: tree AllReduce, Broadcast, Reduce. All ranks work chunk after chunk:
 * step i of a thread receives message i of some connections and sends message i on
 * others. All chunks but the last have the same bytes. So message i is ready at the greatest of a
 * few lines
 *
 *   ready(i) = offset + i * slope
 *
 * one for each possible slope: 0 where data starts, and the occupancy of a full
 * chunk on either kind of hop. A line is a path from where the data starts: its
 * offset is the sum of occupancy + latency along the path, its slope the greatest
 * occupancy on it. A connection adds its occupancy + latency to the offset and lifts
 * smaller slopes to its occupancy. The last chunk is followed as a number of its own.
 *
 * That is max over paths of the sum of costs + (chunks - 1) * greatest occupancy,
 * computed once a connection, from the sources on. Where ranks start at times of their own, each
 * rank's start is a line of slope 0, and a busy port one of the slope of its connection. */
#include "engine/symmetry-pipe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { N_SLOPES = 3 }; /* 0, occupancy of hop 0, of hop 1 */

struct times {
	double offset[N_SLOPES]; /* of the full chunks; -INFINITY: no such path */
	double slope[N_SLOPES];
	double last; /* of the last chunk */
};

/* What the threads with the same number have in common on all ranks. */
struct lane_info {
	bool is_known;
	uint64_t n_messages;
	uint64_t full_bytes, last_bytes;
	bool has_hop[2];
	struct nbox_delay full[2], last[2];
};

struct pipe {
	struct symmetry *y;
	uint32_t n;
	uint32_t each;          /* threads a rank and channel */
	uint32_t first;         /* thread of the channel in work */
	struct times *ready;    /* owned, by rank and thread of the channel */
	uint8_t *state;         /* owned: 0 unknown, 1 waits for others, 2 known */
	struct lane_info *info; /* owned, by thread of the channel; a thread receives on
				 * the lane with its number */
	uint32_t *stack;        /* owned */
};

static void pipe_deinit(struct pipe *p)
{
	free(p->ready);
	free(p->state);
	free(p->info);
	free(p->stack);
}

/* The steps of a thread must differ in the number of their messages only, and in
 * bytes only at the end. */
static int load_info(struct pipe *p, uint32_t rank, uint32_t thread, const struct sched_step *first)
{
	struct lane_info *info = &p->info[thread - p->first];
	struct sched_step t;
	uint64_t n;

	if (info->is_known)
		return first->bytes == info->full_bytes ? 0 : SYMMETRY_NONE;
	n = sched_n_steps(p->y->s, rank, thread);
	*info = (struct lane_info){.is_known = true, .n_messages = n, .full_bytes = first->bytes};
	sched_step(p->y->s, rank, thread, n - 1, &t);
	info->last_bytes = t.bytes;
	if (first->recv_index + n - 1 != t.recv_index && first->n_recv)
		return SYMMETRY_NONE;
	if (n > 1) {
		sched_step(p->y->s, rank, thread, n - 2, &t);
		if (t.bytes != info->full_bytes)
			return SYMMETRY_NONE;
	}
	return 0;
}

static int load_hop(struct pipe *p, uint32_t src, uint32_t dst, uint32_t thread, uint32_t hop)
{
	struct lane_info *info = &p->info[thread - p->first];
	int r;

	if (info->has_hop[hop])
		return 0;
	r = symmetry_cost(p->y, src, dst, (uint16_t)thread, 0, info->full_bytes, &info->full[hop]);
	if (!r)
		r = symmetry_cost(p->y, src, dst, (uint16_t)thread, info->n_messages - 1,
				  info->last_bytes, &info->last[hop]);
	info->has_hop[hop] = r == 0;
	return r;
}

static double line_at(const struct times *t, uint64_t i)
{
	double latest = 0;
	int k;

	for (k = 0; k < N_SLOPES; k++)
		if (t->offset[k] != -INFINITY)
			latest = fmax(latest, t->offset[k] + (double)i * t->slope[k]);
	return latest;
}

/* When the messages that are ready at @t arrive over a hop of kind @hop, whose port is free at
 * @port_ns; and when the last of them has left. */
static struct times over_hop(const struct lane_info *info, const struct times *t, uint32_t hop,
			     double port_ns, double *ret_left_ns)
{
	const struct nbox_delay *full = &info->full[hop], *last = &info->last[hop];
	struct times a = {.offset = {-INFINITY, -INFINITY, -INFINITY}};
	double start = fmax(t->last, port_ns), arrived;
	int k;

	a.offset[1 + hop] = port_ns + full->occupancy_ns + full->latency_ns;
	a.slope[1 + hop] = full->occupancy_ns;
	for (k = 0; k < N_SLOPES; k++) {
		int to = t->slope[k] > full->occupancy_ns ? k : 1 + (int)hop;

		if (t->offset[k] == -INFINITY)
			continue;
		a.offset[to] =
			fmax(a.offset[to], t->offset[k] + full->occupancy_ns + full->latency_ns);
		a.slope[to] = fmax(t->slope[k], full->occupancy_ns);
	}
	if (info->n_messages > 1) {
		arrived = line_at(&a, info->n_messages - 2);
		start = fmax(start, arrived - full->latency_ns);
		a.last = fmax(start + last->occupancy_ns + last->latency_ns, arrived);
	} else {
		a.last = start + last->occupancy_ns + last->latency_ns;
	}
	*ret_left_ns = start + last->occupancy_ns;
	return a;
}

/* Number of the thread that sends on the connection, or SYMMETRY_NONE's worth. */
static uint32_t sender_id(const struct pipe *p, uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t thread = sched_send_thread(p->y->s, src, dst, lane);

	if (thread < p->first || thread - p->first >= p->each)
		return UINT32_MAX;
	return src * p->each + thread - p->first;
}

/* The sender of a connection is done when the rest of its messages fits the buffers. */
static void tell_sender(const struct pipe *p, uint32_t src, const struct lane_info *info,
			uint32_t hop, const struct times *arrivals, double left_ns)
{
	const struct sim_ranks *ranks = p->y->ranks;
	uint64_t n = info->n_messages;

	ranks->free_ns[src] = fmax(ranks->free_ns[src], left_ns);
	if (n > ranks->buffered)
		ranks->end_ns[src] =
			fmax(ranks->end_ns[src], line_at(arrivals, n - 1 - ranks->buffered) -
							 info->full[hop].latency_ns);
}

/* When messages on the connection arrive; the times of its sender are known. */
static int arrival_over(struct pipe *p, uint32_t src, uint32_t dst, uint16_t lane, uint32_t sender,
			struct times *ret)
{
	uint32_t hop = p->y->hop(p->y->ctx, src, dst);
	const struct lane_info *info = &p->info[lane - p->first];
	double left_ns;
	int r;

	if (hop > 1)
		return SYMMETRY_NONE;
	r = load_hop(p, src, dst, lane, hop);
	if (r)
		return r;
	*ret = over_hop(info, &p->ready[sender], hop, sim_port_of(p->y->ranks, src), &left_ns);
	if (p->y->ranks)
		tell_sender(p, src, info, hop, ret, left_ns);
	return 0;
}

/* The later of two, line by line. */
static int merge(struct times *t, const struct times *other)
{
	int k;

	for (k = 0; k < N_SLOPES; k++) {
		if (other->offset[k] == -INFINITY)
			continue;
		if (t->offset[k] != -INFINITY && t->slope[k] != other->slope[k])
			return SYMMETRY_NONE; /* trees with other chunks meet */
		t->offset[k] = fmax(t->offset[k], other->offset[k]);
		t->slope[k] = other->slope[k];
	}
	t->last = fmax(t->last, other->last);
	return 0;
}

/* Computes the thread on top of the stack, or puts those it waits for on top of it. */
static int visit(struct pipe *p, uint32_t *depth)
{
	uint32_t id = p->stack[*depth - 1], rank = id / p->each;
	uint32_t thread = p->first + id % p->each, sender[SCHED_FAN], j, waiting = 0;
	struct times t = {.offset = {-INFINITY, -INFINITY, -INFINITY}}, a;
	struct sched_step st;
	int r;

	sched_step(p->y->s, rank, thread, 0, &st);
	r = load_info(p, rank, thread, &st);
	for (j = 0; j < st.n_recv && !r; j++) {
		sender[j] = sender_id(p, st.recv[j], rank, st.recv_lane);
		if (sender[j] == UINT32_MAX || st.recv_lane != thread || p->state[sender[j]] == 1 ||
		    *depth + waiting >= p->n * p->each + SCHED_FAN)
			return SYMMETRY_NONE; /* a circle is no pipeline */
		if (p->state[sender[j]] == 0)
			p->stack[*depth + waiting++] = sender[j];
	}
	p->state[id] = waiting ? 1 : 2;
	*depth += waiting;
	if (waiting || r)
		return r;

	if (!st.n_recv || p->y->ranks)
		t.offset[0] = t.last = sim_start_of(p->y->ranks, rank);
	for (j = 0; j < st.n_recv && !r; j++) {
		r = arrival_over(p, st.recv[j], rank, st.recv_lane, sender[j], &a);
		if (!r)
			r = merge(&t, &a);
	}
	p->ready[id] = t;
	p->y->end_ns = fmax(p->y->end_ns, t.last);
	if (p->y->ranks)
		p->y->ranks->end_ns[rank] = fmax(p->y->ranks->end_ns[rank], t.last);
	--*depth;
	return r;
}

static int report_border(struct pipe *p)
{
	const struct border *b = p->y->border;
	struct times a;
	uint32_t i;
	uint64_t m;
	int r;

	for (i = 0; b && i < b->n_in; i++) {
		const struct border_conn *c = &b->in[i];
		double *at = p->y->at + p->y->offset[i];

		if (c->lane < p->first || c->lane - p->first >= p->each)
			continue;
		r = arrival_over(p, c->src, c->dst, c->lane, sender_id(p, c->src, c->dst, c->lane),
				 &a);
		if (r)
			return r;
		for (m = 0; m + 1 < c->n_messages; m++)
			at[m] = line_at(&a, m);
		at[c->n_messages - 1] = a.last;
	}
	return 0;
}

/* Whether the threads of channel @channel do what those of channel 0 do. */
static bool is_like_first(const struct pipe *p, uint32_t channel)
{
	const struct sched *s = p->y->s;
	uint32_t k, r, thread;
	struct sched_step a, b;
	uint64_t n;

	for (k = 0; k < p->each; k++) {
		thread = channel * p->each + k;
		for (r = 0; r < 2; r++) {
			n = sched_n_steps(s, r, k);
			if (n != sched_n_steps(s, r, thread))
				return false;
			if (!n)
				continue;
			sched_step(s, r, k, 0, &a);
			sched_step(s, r, thread, 0, &b);
			if (a.bytes != b.bytes)
				return false;
			sched_step(s, r, k, n - 1, &a);
			sched_step(s, r, thread, n - 1, &b);
			if (a.bytes != b.bytes)
				return false;
		}
	}
	return true;
}

static int solve_channel(struct pipe *p, uint32_t channel)
{
	uint32_t rank, k, depth;
	int r;

	p->first = channel * p->each;
	memset(p->state, 0, (size_t)p->n * p->each);
	memset(p->info, 0, p->each * sizeof(*p->info));
	for (rank = 0; rank < p->n; rank++) {
		for (k = 0; k < p->each; k++) {
			if (p->state[rank * p->each + k] == 2 ||
			    !sched_n_steps(p->y->s, rank, p->first + k))
				continue;
			p->stack[0] = rank * p->each + k;
			for (depth = 1; depth;) {
				r = visit(p, &depth);
				if (r)
					return r;
			}
		}
	}
	return report_border(p);
}

static int pipe_solve(struct pipe *p)
{
	size_t n = (size_t)p->n * p->each;
	uint32_t c;
	int r = 0;

	p->ready = malloc(n * sizeof(*p->ready));
	p->state = malloc(n);
	p->info = malloc(p->each * sizeof(*p->info));
	p->stack = malloc((n + SCHED_FAN) * sizeof(*p->stack));
	if (!p->ready || !p->state || !p->info || !p->stack)
		return -ENOMEM;
	for (c = 0; c < p->y->s->n_channels && !r; c++)
		if (!c || p->y->border || !is_like_first(p, c))
			r = solve_channel(p, c);
	return r;
}

int symmetry_pipe(struct symmetry *y, struct err *err)
{
	uint32_t n_threads = sched_n_threads(y->s, 0);
	struct pipe p = {.y = y, .n = y->s->n_ranks, .each = n_threads / y->s->n_channels};
	int r;

	if (y->s->slices > 1 || n_threads != p.each * y->s->n_channels)
		return SYMMETRY_NONE; /* slices of a chunk are not equal */
	if (y->cost->reduce_ns_per_byte > 0 && y->s->kind != COLL_BROADCAST)
		return SYMMETRY_NONE; /* they are simulated */
	r = pipe_solve(&p);
	if (r == -ENOMEM)
		err_set(err, ENOMEM, "no memory for a pipeline of %u ranks", p.n);
	pipe_deinit(&p);
	return r;
}
