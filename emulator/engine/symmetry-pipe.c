/* Pipelines: tree AllReduce, Broadcast, Reduce. All ranks work chunk after chunk: step i of a
 * thread receives message i of some connections and sends message i on others. All chunks but the
 * last have the same bytes. So the times of the messages are a few lines (pipe-lines.h), computed
 * once a connection, from the sources on (pipe-plan.h). */
#include "engine/symmetry-pipe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/pipe-lines.h"
#include "schedule/rails.h"

struct pipe {
	struct symmetry *y;
	struct pipe_plan *plan;
	uint32_t first;            /* thread of the channel in work */
	struct pipe_times *ready;  /* owned, by rank and thread of the channel */
	struct pipe_lane *lane;    /* owned, by thread of the channel; a thread receives on the lane
				    * with its number */
	struct pipe_slopes slopes; /* of the channel */
};

/* The steps of a thread must differ in the number of their messages only, and in
 * bytes only at the end. */
static int load_lane(struct pipe *p, uint32_t k)
{
	uint32_t rank = p->plan->sample[k], thread = p->first + k;
	uint64_t n = rank == UINT32_MAX ? 0 : sched_n_steps(p->y->s, rank, thread);
	struct pipe_lane *lane = &p->lane[k];
	struct sched_step first, t;

	*lane = (struct pipe_lane){.n_messages = n, .slopes = &p->slopes};
	if (!n)
		return 0;
	sched_step(p->y->s, rank, thread, 0, &first);
	lane->full_bytes = first.bytes;
	sched_step(p->y->s, rank, thread, n - 1, &t);
	lane->last_bytes = t.bytes;
	if (first.recv_index + n - 1 != t.recv_index && first.n_recv)
		return SYMMETRY_NONE;
	if (n > 1) {
		sched_step(p->y->s, rank, thread, n - 2, &t);
		if (t.bytes != lane->full_bytes)
			return SYMMETRY_NONE;
	}
	return 0;
}

static int load_hop(struct pipe *p, uint32_t src, uint32_t dst, uint32_t k, uint32_t hop)
{
	struct pipe_lane *lane = &p->lane[k];
	uint16_t number = (uint16_t)(p->first + k);
	struct nbox_delay full, last;
	int r;

	if (lane->slope[hop])
		return 0;
	r = symmetry_cost(p->y, src, dst, number, 0, lane->full_bytes, &full);
	if (!r)
		r = symmetry_cost(p->y, src, dst, number, lane->n_messages - 1, lane->last_bytes,
				  &last);
	if (!r && !pipe_set_hop(lane, hop, &full, &last))
		r = SYMMETRY_NONE;
	return r;
}

/* The sender of a connection is done when the rest of its messages fits the buffers. */
static void tell_sender(const struct pipe *p, uint32_t src, const struct pipe_lane *lane,
			uint32_t hop, const struct pipe_times *arrivals, double left_ns)
{
	const struct sim_ranks *ranks = p->y->ranks;
	uint64_t n = lane->n_messages;

	ranks->free_ns[src] = fmax(ranks->free_ns[src], left_ns);
	if (n > ranks->buffered)
		ranks->end_ns[src] = fmax(ranks->end_ns[src],
					  pipe_at(lane->slopes, arrivals, n - 1 - ranks->buffered) -
						  lane->full[hop].latency_ns);
}

/* When messages on a connection of lane @k arrive; the times of its sender are known. */
static int arrival_over(struct pipe *p, uint32_t sender, uint32_t dst, uint32_t k, uint32_t hop,
			struct pipe_times *ret)
{
	uint32_t src = sender / p->plan->each;
	double left_ns;
	int r = load_hop(p, src, dst, k, hop);

	if (r)
		return r;
	*ret = pipe_over_hop(&p->lane[k], &p->ready[sender], hop, sim_port_of(p->y->ranks, src),
			     &left_ns);
	if (p->y->ranks)
		tell_sender(p, src, &p->lane[k], hop, ret, left_ns);
	return 0;
}

/* The @i-th thread of the plan. */
static int solve_thread(struct pipe *p, uint32_t i)
{
	const struct pipe_plan *plan = p->plan;
	uint32_t id = plan->thread[i], rank = id / plan->each, k = id % plan->each, c;
	struct pipe_times t = pipe_start(sim_start_of(p->y->ranks, rank)), a;
	int r;

	if (!p->lane[k].n_messages)
		return 0;
	for (c = plan->first[i]; c < plan->first[i + 1]; c++) {
		r = arrival_over(p, plan->sender[c], rank, k, plan->hop[c], &a);
		if (r)
			return r;
		pipe_merge(&t, &a);
	}
	p->ready[id] = t;
	p->y->end_ns = fmax(p->y->end_ns, t.last);
	if (p->y->ranks)
		p->y->ranks->end_ns[rank] = fmax(p->y->ranks->end_ns[rank], t.last);
	return 0;
}

static int report_border(struct pipe *p, uint32_t channel)
{
	const struct border *b = p->y->border;
	uint32_t each = p->plan->each, i;
	struct pipe_times a;
	uint64_t m;
	int r;

	for (i = 0; b && i < b->n_in; i++) {
		const struct border_conn *c = &b->in[i];
		double *at = p->y->at + p->y->offset[i];

		if (c->lane < p->first || c->lane - p->first >= each)
			continue;
		r = arrival_over(p,
				 pipe_plan_sender(p->plan, p->y->s, channel, c->src, c->dst,
						  c->lane),
				 c->dst, c->lane - p->first,
				 pipe_plan_class(p->plan, p->y->class_of(p->y->ctx, c->src, c->dst,
									 c->lane)),
				 &a);
		if (r)
			return r;
		for (m = 0; m + 1 < c->n_messages; m++)
			at[m] = pipe_at(&p->slopes, &a, m);
		at[c->n_messages - 1] = a.last;
	}
	return 0;
}

/* Whether the threads of channel @channel have the messages of those of channel @other. */
static bool has_messages_of(const struct pipe *p, uint32_t channel, uint32_t other)
{
	const struct sched *s = p->y->s;
	uint32_t each = p->plan->each, k, r, first, thread;
	struct sched_step a, b;
	uint64_t n;

	for (k = 0; k < each; k++) {
		first = other * each + k;
		thread = channel * each + k;
		for (r = 0; r < 2; r++) {
			n = sched_n_steps(s, r, first);
			if (n != sched_n_steps(s, r, thread))
				return false;
			if (!n)
				continue;
			sched_step(s, r, first, 0, &a);
			sched_step(s, r, thread, 0, &b);
			if (a.bytes != b.bytes)
				return false;
			sched_step(s, r, first, n - 1, &a);
			sched_step(s, r, thread, n - 1, &b);
			if (a.bytes != b.bytes)
				return false;
		}
	}
	return true;
}

static int solve_channel(struct pipe *p, uint32_t channel)
{
	uint32_t i;
	int r = 0;

	p->first = channel * p->plan->each;
	p->slopes.n = 0;
	for (i = 0; i < p->plan->each && !r; i++)
		r = load_lane(p, i);
	for (i = 0; i < p->plan->n && !r; i++)
		r = solve_thread(p, i);
	return r ? r : report_border(p, channel);
}

/* Whether an earlier channel did the same. */
static bool is_known(const struct pipe *p, uint32_t channel)
{
	uint32_t n_rails = sched_n_rails(p->y->s);

	return !p->y->border && channel >= n_rails &&
	       has_messages_of(p, channel, channel - n_rails);
}

/* The plan of @channel: that of the channel before, where their rails are one. */
static int plan_of(struct pipe *p, uint32_t channel)
{
	if (p->plan && p->y->s->n_rails < 2)
		return 0;
	p->plan = pipe_plan_free(p->plan);
	return pipe_plan_new(p->y, channel, &p->plan);
}

static int pipe_alloc(struct pipe *p)
{
	uint32_t each = sched_n_threads(p->y->s, 0) / p->y->s->n_channels;

	p->ready = malloc((size_t)p->y->s->n_ranks * each * sizeof(*p->ready));
	p->lane = malloc(each * sizeof(*p->lane));
	return p->ready && p->lane ? 0 : -ENOMEM;
}

bool symmetry_pipe_has_form(const struct symmetry *y)
{
	if (y->s->slices > 1 || sched_n_threads(y->s, 0) % y->s->n_channels)
		return false; /* slices of a chunk are not equal */
	/* reductions are simulated */
	return y->cost->reduce_ns_per_byte <= 0 || y->s->kind == COLL_BROADCAST;
}

int symmetry_pipe_keep(struct symmetry *y, struct pipe_plan **plan, struct err *err)
{
	struct pipe p = {.y = y, .plan = *plan};
	int r = symmetry_pipe_has_form(y) ? pipe_alloc(&p) : SYMMETRY_NONE;

	for (uint32_t c = 0; c < y->s->n_channels && !r; c++) {
		if (p.plan && is_known(&p, c))
			continue;
		r = plan_of(&p, c);
		if (!r)
			r = solve_channel(&p, c);
	}
	if (r == -ENOMEM)
		err_set(err, ENOMEM, "no memory for a pipeline of %u ranks", y->s->n_ranks);
	free(p.ready);
	free(p.lane);
	*plan = p.plan;
	return r;
}

int symmetry_pipe(struct symmetry *y, struct err *err)
{
	struct pipe_plan *plan = NULL;
	int r = symmetry_pipe_keep(y, &plan, err);

	pipe_plan_free(plan);
	return r;
}
