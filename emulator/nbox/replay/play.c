/* See play.h. A row is an op that computes, then, where it leads to an op of a communicator, or
 * somebody may skip the computation, one that takes no time, and behind an op one more: it is over.
 * Between these two lie the op's hops. */
#include "nbox/replay/play.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number-table.h"
#include "schedule/schedule.h"

#define MOST_HOPS (UINT64_C(1) << 21)
#define BUFFER_BYTES                                                                 \
	(UINT64_C(4) << 20) /* a send that fits these is over at once: NCCL_BUFFSIZE \
			     */
#define DAYDREAM_SHARE 0.85 /* of the link, as its authors take it */
#define ANY UINT32_MAX
/* Where ops of several communicators share links, a message gives way after so many bytes. */
#define PIECE_BYTES (UINT64_C(32) << 10)
#define PIECES_MAX 32

struct maker {
	const struct play *p;
	const struct job *j;
	struct played *to;
	struct number_table devices; /* by what they are: number + 1 */
	const struct shape *shape;   /* of the op that is being added */
	uint32_t op;
	uint64_t most_hops; /* of an op */
	bool has_one_comm;  /* all ops are of one communicator */
	struct err *err;
};

static int no_memory(const struct maker *m)
{
	return m->err->text[0] ? -ENOMEM
			       : err_set(m->err, ENOMEM, "out of memory: the graph has %u ops",
					 m->to->g ? dfg_ops(m->to->g) : 0);
}

/* --- vertices and devices --------------------------------------------------------------------- */

/* The vertices since the last call are @owner's. */
static int own(struct maker *m, uint32_t *n_owned, uint32_t owner)
{
	uint32_t n = dfg_ops(m->to->g);

	if (n > m->to->capacity_owner) {
		uint32_t capacity = n > UINT32_MAX / 2 ? n : 2 * n;
		uint32_t *grown = realloc(m->to->owner, (size_t)capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->to->owner = grown;
		m->to->capacity_owner = capacity;
	}
	for (; *n_owned < n; (*n_owned)++)
		m->to->owner[*n_owned] = owner;
	return 0;
}

static int add_device(struct maker *m, const struct play_device *d, uint32_t *ret)
{
	struct played *to = m->to;
	int r = dfg_add_device(to->g, ret);

	if (r == 0 && *ret >= to->capacity_devices) {
		uint32_t capacity = to->capacity_devices ? 2 * to->capacity_devices : 64;
		struct play_device *grown = realloc(to->devices, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		to->devices = grown;
		to->capacity_devices = capacity;
	}
	if (r == 0)
		to->devices[*ret] = *d;
	return r;
}

static int find_device(struct maker *m, const struct play_device *d, uint32_t *ret)
{
	uint64_t key = UINT64_C(1) << 63 | (uint64_t)d->kind << 60 |
		       (uint64_t)(d->number & 0xffff) << 44 | (uint64_t)(d->rank & 0x3fffff) << 22 |
		       (d->peer & 0x3fffff);
	uint32_t *known = number_table_at(&m->devices, key), place;
	int r;

	if (!known)
		return -ENOMEM;
	if (*known) {
		*ret = *known - 1;
		return 0;
	}
	r = add_device(m, d, &place);
	if (r == 0)
		*known = *ret = place, *known += 1;
	return r;
}

/* --- what would be otherwise ------------------------------------------------------------------ */

static bool is_named(const struct maker *m, const struct play_change *c, const struct job_row *row)
{
	const char *name = row->name == JOB_NONE ? NULL : m->j->names[row->name];

	return name && fnmatch(c->name, name, 0) == 0;
}

static double change(const struct play_change *c, double ns)
{
	return fmax(0, ns * c->factor + c->add_ns);
}

static double computed_ns(const struct maker *m, const struct job_row *row)
{
	double ns = row->ns;

	for (uint32_t i = 0; i < m->p->n_changes; i++) {
		const struct play_change *c = &m->p->changes[i];

		if ((c->of == CHANGE_COMPUTE && row->stream != JOB_NONE) ||
		    (c->of == CHANGE_RANK && row->stream != JOB_NONE &&
		     m->j->ranks[row->rank] == c->rank) ||
		    (c->of == CHANGE_NAMED && is_named(m, c, row)))
			ns = change(c, ns);
	}
	return ns;
}

/* *ret_factor: of all that the op takes; *ret_add: before that. */
static void changed_op(const struct maker *m, const struct job_op *op, double *ret_factor,
		       double *ret_add)
{
	*ret_factor = 1;
	*ret_add = 0;
	for (uint32_t i = 0; i < m->p->n_changes; i++) {
		const struct play_change *c = &m->p->changes[i];
		bool is_of = c->of == CHANGE_COMM ||
			     (c->of == CHANGE_NAMED && coll_kind_parse(c->name) == (int)op->kind);

		if (is_of) {
			*ret_factor *= c->factor;
			*ret_add = *ret_add * c->factor + c->add_ns;
		}
	}
	*ret_add = fmax(0, *ret_add);
}

/* --- rows ------------------------------------------------------------------------------------- */

bool play_has_row(const struct play *p, uint32_t row)
{
	return p->policy != PLAY_DAYDREAM || p->job->rows[row].rank == 0;
}

static int add_row(struct maker *m, uint32_t i, const uint32_t *device_of, bool is_skipped,
		   uint32_t *n_owned)
{
	const struct job_row *row = &m->j->rows[i];
	struct played *to = m->to;
	uint32_t device = row->stream == JOB_NONE ? DFG_PARALLEL : device_of[row->stream];
	bool is_op = row->op != JOB_NONE;
	int r = dfg_add_op(to->g, device, computed_ns(m, row), 0, &to->begin[i]);

	to->at[i] = to->begin[i];
	if (r == 0 && (is_op || is_skipped)) {
		r = dfg_add_op(to->g, DFG_PARALLEL, 0, 0, &to->at[i]);
		if (r == 0)
			r = dfg_add_edge(to->g, to->begin[i], to->at[i], 0);
	}
	to->end[i] = to->at[i];
	if (r == 0 && is_op)
		r = dfg_add_op(to->g, DFG_PARALLEL, 0, 0, &to->end[i]);
	return r < 0 ? r : own(m, n_owned, i);
}

static int add_rows(struct maker *m, uint32_t *n_owned)
{
	const struct job *j = m->j;
	CLEANUP(freep) uint32_t *device_of = calloc((size_t)j->n_streams + 1, sizeof(*device_of));
	CLEANUP(freep) bool *is_skipped = calloc((size_t)j->n_rows + 1, sizeof(*is_skipped));
	int r = device_of && is_skipped ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < j->n_streams && r == 0; i++) {
		const struct play_device d = {PLAY_STREAM, j->ranks[j->streams[i].rank], ANY,
					      j->streams[i].number};

		r = add_device(m, &d, &device_of[i]);
	}
	for (uint32_t i = 0; i < j->n_edges && r == 0; i++)
		if (j->edges[i].flags & JOB_SKIPS_WORK)
			is_skipped[j->edges[i].after] = true;
	for (uint32_t i = 0; i < j->n_rows && r == 0; i++)
		if (play_has_row(m->p, i))
			r = add_row(m, i, device_of, is_skipped[i], n_owned);
	return r;
}

static int add_edges(struct maker *m)
{
	const struct job *j = m->j;
	const struct played *to = m->to;
	int r = 0;

	for (uint32_t i = 0; i < j->n_edges && r == 0; i++) {
		const struct job_edge *e = &j->edges[i];

		if (!play_has_row(m->p, e->before) || !play_has_row(m->p, e->after))
			continue;
		r = dfg_add_edge(to->g,
				 e->flags & JOB_OF_ARRIVAL ? to->at[e->before] : to->end[e->before],
				 e->flags & JOB_SKIPS_WORK ? to->at[e->after] : to->begin[e->after],
				 e->lag_ns);
	}
	return r;
}

/* Ops of one communicator follow each other at each rank. */
static int add_queues(struct maker *m)
{
	const struct job *j = m->j;
	uint64_t n = (uint64_t)j->n_comms * j->n_ranks;
	CLEANUP(freep) uint32_t *last = calloc(n + 1, sizeof(*last));
	int r = last ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < j->n_rows && r == 0; i++) {
		const struct job_row *row = &j->rows[i];
		uint32_t *before;

		if (row->op == JOB_NONE || !play_has_row(m->p, i))
			continue;
		before = &last[(uint64_t)j->ops[row->op].comm * j->n_ranks + row->rank];
		if (*before)
			r = dfg_add_edge(m->to->g, m->to->end[*before - 1], m->to->at[i], 0);
		*before = i + 1;
	}
	return r;
}

/* --- ops as one ------------------------------------------------------------------------------- */

static int add_whole(struct maker *m, const struct job_op *op, double ns)
{
	const struct play_device d = {PLAY_WHOLE, 0, ANY, op->comm};
	uint32_t device, whole;
	int r = find_device(m, &d, &device);

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
	changed_op(m, op, &factor, &add);
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
				membership_world(s->members, src), ANY, lane};
	uint32_t to = membership_world(s->members, dst);

	if (s->s.kind == COLL_GATHER && s->s.algo == SCHED_DIRECT)
		d = (struct play_device){PLAY_LINK, ANY, to, lane};
	else if (s->s.algo == SCHED_TREE || s->is_planned)
		d.peer = to;
	else if (src != dst && topology_hop(&m->j->topology, d.rank, to) == HOP_INTRA)
		d.number |= 1 << 15;
	return find_device(m, &d, ret);
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
			: no_memory(m);

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

/* How many times as long the hops take, so that the op alone takes what it should. */
static int find_factor(struct maker *m, const struct job_op *op, const struct shape *s, double *ret)
{
	double *known;
	int r = 0;

	if (s->whole_ns < 0)
		return 0;
	known = costs_alone(m->p->costs, op);
	if (!known)
		return no_memory(m);
	if (isnan(*known))
		r = alone(m, s, known);
	if (r == 0 && *known > 0)
		*ret *= s->whole_ns / *known;
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
		return no_memory(m);
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
	int r = find_device(m, link, &device);

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
	struct play_device in = {PLAY_LINK, ANY, ANY - 1 - server, 0},
			   out = {PLAY_LINK, ANY - 1 - server, ANY, 0};
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

/* --- sends and receives ----------------------------------------------------------------------- */

struct end {
	uint64_t key; /* communicator, source, destination */
	uint32_t number, row, peer;
	uint64_t bytes;
};

static int by_key(const void *pa, const void *pb)
{
	const struct end *a = pa, *b = pb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* The k-th send from a to b is the k-th receive there. */
static uint32_t list_ends(const struct maker *m, bool is_send, struct end *list)
{
	const struct job *j = m->j;
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->n_rows; i++) {
		const struct job_op *op = j->rows[i].op == JOB_NONE ? NULL : &j->ops[j->rows[i].op];
		uint64_t self = j->ranks[j->rows[i].rank];

		for (uint32_t k = 0; op && k < op->n_calls; k++) {
			const struct job_call *c = &j->calls[op->first_call + k];
			uint64_t src = is_send ? self : c->peer, dst = is_send ? c->peer : self;

			if (c->is_send != is_send || c->peer == self || !c->bytes)
				continue;
			list[n] = (struct end){(uint64_t)op->comm << 40 | src << 20 | dst, n, i,
					       c->peer, c->bytes};
			n++;
		}
	}
	qsort(list, n, sizeof(*list), by_key);
	return n;
}

/* The message of @send to @receive; either may be NULL: the peer was not recorded, and is there
 * when the other comes. */
static int add_message(struct maker *m, const struct end *send, const struct end *receive)
{
	const struct end *known = send ? send : receive;
	const struct job *j = m->j;
	const struct job_op *op = &j->ops[j->rows[known->row].op];
	uint32_t self = j->ranks[j->rows[known->row].rank];
	uint32_t src = send ? self : known->peer, dst = send ? known->peer : self, from, recv;
	struct play_device d = {PLAY_LINK, src, ANY, 0};
	uint32_t device = DFG_PARALLEL, vertex;
	struct nbox_delay delay;
	double factor, add;
	int r = costs_p2p(m->p->costs, op, src, dst, known->bytes, &delay, m->err);

	if (r < 0)
		return r;
	changed_op(m, op, &factor, &add);
	if (m->p->costs->is_measured && op->ns >= 0 && delay.occupancy_ns + delay.latency_ns > 0)
		factor *= op->ns / (delay.occupancy_ns + delay.latency_ns);
	if (!send) /* others receive from it, too: the port here is the bound */
		d = (struct play_device){PLAY_LINK, ANY, dst, 0};
	if (topology_hop(&j->topology, src, dst) == HOP_INTRA)
		d.number |= 1 << 15;
	from = m->to->at[known->row];
	if (!m->p->without_queues)
		r = find_device(m, &d, &device);
	if (r == 0)
		r = dfg_add_op(m->to->g, device, factor * delay.occupancy_ns + add, 0, &vertex);
	if (r == 0)
		r = dfg_add_edge(m->to->g, from, vertex, 0);
	if (r == 0)
		r = dfg_add_op(m->to->g, DFG_PARALLEL, 0, 0, &recv);
	if (r == 0)
		r = dfg_add_edge(m->to->g, vertex, recv,
				 m->p->without_latency ? 0 : factor * delay.latency_ns);
	if (r == 0 && receive)
		r = dfg_add_edge(m->to->g, recv, m->to->end[receive->row], 0);
	if (r == 0 && send && known->bytes > BUFFER_BYTES)
		r = dfg_add_edge(m->to->g, vertex, m->to->end[send->row], 0);
	if (r == 0 && send && receive && known->bytes > BUFFER_BYTES)
		r = dfg_add_edge(m->to->g, m->to->at[receive->row], m->to->end[send->row], 0);
	m->to->n_hops++;
	return r < 0 ? no_memory(m) : 0;
}

static int add_messages(struct maker *m, uint32_t *n_owned)
{
	const struct job *j = m->j;
	CLEANUP(freep) struct end *sends = calloc((size_t)j->n_calls + 1, sizeof(*sends));
	CLEANUP(freep) struct end *receives = calloc((size_t)j->n_calls + 1, sizeof(*receives));
	uint32_t n_sends, n_receives, i = 0, k = 0;
	int r = 0;

	if (!sends || !receives)
		return no_memory(m);
	n_sends = list_ends(m, true, sends);
	n_receives = list_ends(m, false, receives);
	/* those of one key by their order there */
	while (r == 0 && (i < n_sends || k < n_receives)) {
		const struct end *s = i < n_sends ? &sends[i] : NULL;
		const struct end *e = k < n_receives ? &receives[k] : NULL;

		if (s && e && s->key != e->key) {
			if (s->key < e->key)
				e = NULL;
			else
				s = NULL;
		}
		i += s != NULL;
		k += e != NULL;
		r = add_message(m, s, e);
		if (r == 0)
			r = own(m, n_owned, PLAYED_OP | j->rows[(s ? s : e)->row].op);
	}
	for (uint32_t row = 0; row < j->n_rows && r == 0; row++)
		if (j->rows[row].op != JOB_NONE && j->ops[j->rows[row].op].kind == COLL_SENDRECV)
			r = dfg_add_edge(m->to->g, m->to->at[row], m->to->end[row], 0);
	return r;
}

/* --- all -------------------------------------------------------------------------------------- */

static int add_op(struct maker *m, const struct job_op *op)
{
	struct shape s;
	double factor, add, ns;
	int r;

	if (m->p->policy == PLAY_DAYDREAM)
		return add_daydream(m, op);
	changed_op(m, op, &factor, &add);
	if (op->kind == COLL_SENDRECV && !op->n_calls &&
	    op->ns > 0) /* a group; of what, no trace says */
		return add_whole(m, op, factor * op->ns + add);
	if (op->kind == COLL_SENDRECV || op->n == 0)
		return 0;
	r = shape_make(m->p->costs, op, &s, m->err);
	m->shape = &s;
	if (m->p->without_queues) /* the links are this op's alone */
		number_table_deinit(&m->devices);
	if (r == 0 && m->p->costs->n_servers && op->kind == COLL_ALLREDUCE) {
		r = add_server(m, op, &s, factor);
	} else if (r == 0 &&
		   (s.is_whole || hops_count(&s.s, s.period) * pieces_of(m, &s) > m->most_hops)) {
		r = shape_whole(m->p->costs, op, &s, &ns, m->err);
		r = r < 0 ? r : add_whole(m, op, factor * ns + add);
	} else if (r == 0) {
		r = find_factor(m, op, &s, &factor);
		if (r == 0)
			r = add_hops(m, op, &s, factor, s.lead_ns + add);
	}
	shape_deinit(&s);
	m->shape = NULL;
	return r;
}

static int add_all(struct maker *m)
{
	struct played *to = m->to;
	uint32_t n_owned = 0;
	int r;

	to->g = dfg_new();
	to->begin = calloc((size_t)m->j->n_rows + 1, sizeof(*to->begin));
	to->at = calloc((size_t)m->j->n_rows + 1, sizeof(*to->at));
	to->end = calloc((size_t)m->j->n_rows + 1, sizeof(*to->end));
	if (!to->g || !to->begin || !to->at || !to->end)
		return -ENOMEM;
	r = add_rows(m, &n_owned);
	if (r == 0)
		r = add_edges(m);
	if (r == 0)
		r = add_queues(m);
	for (uint32_t i = 0; i < m->j->n_ops && r == 0; i++) {
		m->op = i;
		r = add_op(m, &m->j->ops[i]);
		if (r == 0)
			r = own(m, &n_owned, PLAYED_OP | i);
	}
	return r < 0 || m->p->policy == PLAY_DAYDREAM ? r : add_messages(m, &n_owned);
}

static int play_graph(struct maker *m)
{
	uint32_t last, op;
	int r = dfg_play(m->to->g, m->p->policy == PLAY_DPRO ? DFG_DPRO : DFG_EVENT, &op);

	if (r == -ELOOP) {
		uint32_t owner = m->to->owner[op], row = owner;

		if (owner & PLAYED_OP)
			row = m->j->members[m->j->ops[owner & ~PLAYED_OP].first];
		return err_set(
			m->err, ELOOP,
			"ops wait for each other in a circle: one of them is rank %u's at "
			"%.3f ms%s%s; the trace's order is not one in which the job can have run",
			m->j->ranks[m->j->rows[row].rank], m->j->rows[row].at / 1e6,
			m->j->rows[row].name != JOB_NONE ? ", " : "",
			m->j->rows[row].name != JOB_NONE ? m->j->names[m->j->rows[row].name] : "");
	}
	if (r == 0)
		m->to->end_ns = dfg_end(m->to->g, &last);
	return r;
}

int play(const struct play *p, struct played *ret, struct err *err)
{
	uint64_t most = p->most_hops ? p->most_hops : MOST_HOPS;
	CLEANUP(played_deinit) struct played to = {.g = NULL};
	struct maker m = {.p = p, .j = p->job, .to = &to, .err = err};
	int r;

	m.most_hops = most / (p->job->n_ops ? p->job->n_ops : 1);
	m.has_one_comm = true;
	for (uint32_t i = 1; i < p->job->n_ops; i++)
		m.has_one_comm &= p->job->ops[i].comm == p->job->ops[0].comm;
	r = add_all(&m);
	if (r == 0)
		r = play_graph(&m);
	number_table_deinit(&m.devices);
	if (r == -ENOMEM && !err->text[0])
		return no_memory(&m);
	if (r < 0)
		return r;
	*ret = to;
	to = (struct played){.g = NULL};
	return 0;
}

void played_deinit(struct played *p)
{
	dfg_free(p->g);
	free(p->begin);
	free(p->at);
	free(p->end);
	free(p->owner);
	free(p->devices);
	*p = (struct played){.g = NULL};
}

double played_ns(const struct job *j, const struct played *p, uint32_t row)
{
	return j->rows[row].op == JOB_NONE ? dfg_op(p->g, p->begin[row])->start
					   : dfg_op(p->g, p->at[row])->end;
}
