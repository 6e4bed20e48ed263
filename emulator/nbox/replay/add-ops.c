/* See add-ops.h. */
#include "nbox/replay/add-ops.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "schedule/schedule.h"

#define DAYDREAM_SHARE 0.85 /* of the link, as its authors take it */
/* Where ops of several communicators share links, a message gives way after so many bytes. */
#define PIECE_BYTES (UINT64_C(32) << 10)
#define PIECES_MAX 32

/* --- ops as one ------------------------------------------------------------------------------- */

static int add_whole(struct maker *m, const struct job_op *op, double ns)
{
	const struct play_device d = {PLAY_WHOLE, 0, MAKER_ANY, op->comm};
	uint32_t device, whole;
	int r = maker_device(m, &d, &device);

	m->to->n_whole++;
	if (r == 0)
		r = dfg_add_op(m->to->g, device, ns, 0, &whole);
	for (uint32_t i = 0; i < op->n && r == 0; i++) {
		uint32_t row = m->j->members[op->first + i];

		if (!play_has_row(m->p, row))
			continue;
		r = dfg_add_edge(m->to->g, m->to->at[row], whole, 0);
		if (r == 0)
			r = dfg_add_edge(m->to->g, whole, m->to->end[row], 0);
	}
	return r;
}

static int add_daydream(struct maker *m, const struct job_op *op)
{
	double factor, add, bytes = (double)op->bytes;
	uint32_t row = op->n ? m->j->members[op->first] : JOB_NONE;

	if (row == JOB_NONE || !play_has_row(m->p, row))
		return 0;
	maker_changed_op(m, op, &factor, &add);
	for (uint32_t i = 0; i < op->n_calls; i++)
		bytes += (double)m->j->calls[op->first_call + i].bytes;
	if (m->p->is_daydream_compat)
		bytes /= 8;
	return add_whole(m, op,
			 factor * bytes / (DAYDREAM_SHARE * m->p->daydream_bytes_per_ns) + add);
}

/* --- hops ------------------------------------------------------------------------------------- */

/* The port that the message leaves by; where all send to one rank, the one that it comes by; of
 * trees, whose edges share the ports by their cost, the edge. */
static int hop_device(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint32_t *ret)
{
	struct maker *m = ctx;
	const struct shape *s = m->shape;
	struct play_device d = {src == dst ? PLAY_ADDER : PLAY_LINK,
				membership_world(s->members, src), MAKER_ANY, lane};
	uint32_t to = membership_world(s->members, dst);

	if (s->s.kind == COLL_GATHER && s->s.algo == SCHED_DIRECT)
		d = (struct play_device){PLAY_LINK, MAKER_ANY, to, lane};
	else if (s->s.algo == SCHED_TREE || s->is_planned)
		d.peer = to;
	else if (src != dst && topology_hop(&m->j->topology, d.rank, to) == HOP_INTRA)
		d.number |= 1 << 15;
	return maker_device(m, &d, ret);
}

static uint32_t row_of(const struct job *j, const struct job_op *op, uint32_t rank)
{
	for (uint32_t i = 0; i < op->n; i++)
		if (j->rows[j->members[op->first + i]].rank == rank)
			return j->members[op->first + i];
	return op->n ? j->members[op->first] : JOB_NONE;
}

/* What each rank of the schedule begins after, and what waits for it. */
static int find_ends(struct maker *m, const struct job_op *op, uint32_t *in, uint32_t *out,
		     uint32_t lead)
{
	const struct shape *s = m->shape;
	const struct job *j = m->j;
	uint32_t nobody;
	int r = dfg_add_op(m->to->g, DFG_PARALLEL, 0, 0, &nobody);

	for (uint32_t i = 0; i < s->period && r == 0; i++) {
		uint32_t world = membership_world(s->members, i);
		int64_t rank = membership_rank(&s->comm->members, world);
		uint32_t row = row_of(j, op, s->comm->copies[rank < 0 ? 0 : rank]);

		in[i] = lead == DFG_NONE ? m->to->at[row] : lead;
		out[i] = nobody;
	}
	for (uint32_t i = 0; i < op->n && r == 0; i++) {
		uint32_t row = j->members[op->first + i];
		int64_t place = membership_rank(s->members, j->ranks[j->rows[row].rank]);

		if (place >= 0)
			out[place % s->period] = m->to->end[row];
		if (place < 0 || out[place % s->period] != m->to->end[row])
			r = dfg_add_edge(m->to->g, m->to->at[row], m->to->end[row], 0);
	}
	return r;
}

/* The hops of @s, played alone, all ranks at once. Return: 0; negative errno with the sentence. */
static int alone(struct maker *m, const struct shape *s, double *ret_ns)
{
	struct played own_played = {.g = dfg_new()};
	struct maker own_maker = {
		.p = m->p, .j = m->j, .to = &own_played, .shape = s, .err = m->err};
	CLEANUP(freep) uint32_t *in = calloc((size_t)s->period + 1, sizeof(*in));
	CLEANUP(freep) uint32_t *out = calloc((size_t)s->period + 1, sizeof(*out));
	uint32_t begin, end;
	struct hops h = {.s = &s->s,
			 .cost = &s->cost,
			 .factor = 1,
			 .period = s->period,
			 .in = in,
			 .out = out,
			 .device = hop_device,
			 .ctx = &own_maker};
	int r = own_played.g && in && out &&
				dfg_add_op(own_played.g, DFG_PARALLEL, 0, 0, &begin) == 0 &&
				dfg_add_op(own_played.g, DFG_PARALLEL, 0, 0, &end) == 0
			? 0
			: maker_no_memory(m);

	for (uint32_t i = 0; i < s->period && r == 0; i++) {
		in[i] = begin;
		out[i] = end;
	}
	if (r == 0)
		r = hops_add(own_played.g, &h, m->err);
	if (r == 0)
		r = dfg_play(own_played.g, DFG_EVENT, &begin);
	if (r == 0)
		*ret_ns = dfg_end(own_played.g, NULL);
	number_table_deinit(&own_maker.devices);
	played_deinit(&own_played);
	return r;
}

/* How many times as long the hops take, so that the op alone takes what it should, and @more_ns. */
static int find_factor(struct maker *m, const struct job_op *op, const struct shape *s,
		       double more_ns, double *ret)
{
	double *known;
	int r = 0;

	if (s->whole_ns < 0 && more_ns >= 0)
		return 0;
	known = costs_alone(m->p->costs, op);
	if (!known)
		return maker_no_memory(m);
	if (isnan(*known))
		r = alone(m, s, known);
	if (r == 0 && *known > 0)
		*ret *= fmax(0, (s->whole_ns < 0 ? *known : s->whole_ns) + more_ns) / *known;
	return r;
}

/* Cost without latency, for struct play's without_latency. */
struct quick {
	const struct sim_cost *of;
};

static int quick_message(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			 uint64_t bytes, struct nbox_delay *ret)
{
	const struct quick *q = ctx;
	int r = q->of->message(q->of->ctx, src, dst, lane, index, bytes, ret);

	ret->latency_ns = 0;
	return r;
}

static uint32_t pieces_of(const struct maker *m, const struct shape *s)
{
	uint64_t n = sched_max_step_bytes(&s->s) / PIECE_BYTES + 1;

	n = n < m->most_pieces ? n : m->most_pieces;
	return m->has_one_comm ? 1 : n < PIECES_MAX ? (uint32_t)n : PIECES_MAX;
}

static int add_hops(struct maker *m, const struct job_op *op, const struct shape *s, double factor,
		    double lead_ns)
{
	CLEANUP(freep) uint32_t *in = calloc((size_t)s->period + 1, sizeof(*in));
	CLEANUP(freep) uint32_t *out = calloc((size_t)s->period + 1, sizeof(*out));
	struct quick quick = {&s->cost};
	struct sim_cost cost = s->cost;
	uint32_t lead = DFG_NONE;
	struct hops h = {.s = &s->s,
			 .cost = &cost,
			 .factor = factor,
			 .period = s->period,
			 .in = in,
			 .out = out,
			 .device = hop_device,
			 .ctx = m};
	int r = in && out ? 0 : -ENOMEM;

	h.pieces = pieces_of(m, s);
	if (m->p->without_latency)
		cost = (struct sim_cost){quick_message, &quick, s->cost.reduce_ns_per_byte};
	if (r == 0)
		r = find_ends(m, op, in, out, DFG_NONE);
	if (lead_ns > 0) /* each rank's own */
		for (uint32_t i = 0; i < s->period && r == 0; i++) {
			r = dfg_add_op(m->to->g, DFG_PARALLEL, lead_ns, 0, &lead);
			if (r == 0)
				r = dfg_add_edge(m->to->g, in[i], lead, 0);
			in[i] = lead;
		}
	if (r < 0)
		return maker_no_memory(m);
	m->to->n_by_hops++;
	m->to->n_hops += (uint32_t)hops_count(&s->s, s->period);
	return hops_add(m->to->g, &h, m->err);
}

/* --- a parameter server ----------------------------------------------------------------------- */

/* One message: on @link, from @before, @lag_ns later at @after. */
static int add_push(struct maker *m, const struct play_device *link, double ns, double lag_ns,
		    uint32_t before, uint32_t after)
{
	uint32_t device, send;
	int r = maker_device(m, link, &device);

	if (r == 0)
		r = dfg_add_op(m->to->g, device, ns, 0, &send);
	if (r == 0)
		r = dfg_add_edge(m->to->g, before, send, 0);
	return r < 0 ? r : dfg_add_edge(m->to->g, send, after, lag_ns);
}

/* All ranks PUSH to a server, which adds up, and PULL from there. Servers take turns op by op, and
 * have a machine each: their ports are the bound. */
static int add_server(struct maker *m, const struct job_op *op, const struct shape *s,
		      double factor)
{
	const struct topology *t = &m->j->topology;
	uint32_t server = m->op % m->p->costs->n_servers, n = s->s.n_ranks, has_all;
	struct play_device in = {PLAY_LINK, MAKER_ANY, MAKER_ANY - 1 - server, 0},
			   out = {PLAY_LINK, MAKER_ANY - 1 - server, MAKER_ANY, 0};
	double ns = factor * (double)op->bytes / t->inter.bytes_per_ns;
	double lag = m->p->without_latency ? 0 : factor * t->inter.latency_ns;
	int r = dfg_add_op(m->to->g, DFG_PARALLEL, 0, 0, &has_all);

	m->to->n_by_hops++;
	m->to->n_hops += 2 * n;
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = add_push(m, &in, ns, lag, m->to->at[row_of(m->j, op, s->comm->copies[i])],
			     has_all);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = add_push(m, &out, ns, lag, has_all,
			     m->to->end[row_of(m->j, op, s->comm->copies[i])]);
	return r;
}

/* --- any op
 * --------------------------------------------------------------------------------------- */

int add_op(struct maker *m, const struct job_op *op)
{
	struct shape s;
	double factor, add, ns, extra = 0;
	uint64_t hops;
	int r;

	if (m->p->policy == PLAY_DAYDREAM)
		return add_daydream(m, op);
	maker_changed_op(m, op, &factor, &add);
	if (op->kind == COLL_SENDRECV && !op->n_calls &&
	    op->ns > 0) /* a group; of what, no trace says */
		return add_whole(m, op, factor * op->ns + add);
	if (op->kind == COLL_SENDRECV || op->n == 0)
		return 0;
	r = shape_make(m->p->costs, op, &s, m->err);
	if (r == 0)
		r = shape_extra(m->p->costs, op, &s, &extra, m->err);
	m->shape = &s;
	hops = r == 0 ? hops_count(&s.s, s.period) : 0;
	if (m->p->without_queues) /* the links are this op's alone */
		number_table_deinit(&m->devices);
	if (r == 0 && m->p->costs->n_servers && op->kind == COLL_ALLREDUCE) {
		r = add_server(m, op, &s, factor);
	} else if (r == 0 && (s.is_whole || s.comm->is_alone || hops > m->most_hops ||
			      (hops == 0 && s.whole_ns > 0))) { /* of one rank; it took its time */
		r = shape_whole(m->p->costs, op, &s, &ns, m->err);
		r = r < 0 ? r : add_whole(m, op, factor * fmax(0, ns + extra) + add);
	} else if (r == 0) {
		add += factor * fmax(0, extra);
		r = find_factor(m, op, &s, fmin(0, extra), &factor);
		if (r == 0)
			r = add_hops(m, op, &s, factor, s.lead_ns + add);
	}
	shape_deinit(&s);
	m->shape = NULL;
	return r;
}
