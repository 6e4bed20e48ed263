/* See add-messages.h. */
#include "nbox/replay/add-messages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define BUFFER_BYTES                                                                 \
	(UINT64_C(4) << 20) /* a send that fits these is over at once: NCCL_BUFFSIZE \
			     */

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

		if (op && m->p->without_stages && job_op_is_of_stage(j, op))
			continue;
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

/* What what-ifs add to messages of the op, but by costs_p2p(). */
static double extra_of(const struct maker *m, const struct job_op *op)
{
	const struct delay_chain *d = m->p->costs->delay;

	return d && delay_works_on_messages(d) ? 0 : op->extra_ns;
}

/* All-to-alls of a communicator, groups of calls, by their order at each rank. */
struct groups {
	struct number_table row_of; /* by communicator, rank and number: row + 1 */
	uint32_t *number;           /* owned; by row */
	uint64_t (*bytes)[2];       /* owned; by row: all that it receives, and sends */
};

static void groups_deinit(struct groups *g)
{
	number_table_deinit(&g->row_of);
	free(g->number);
	free(g->bytes);
}

static uint64_t group_key(uint32_t comm, uint32_t rank, uint32_t number)
{
	return (comm + UINT64_C(1)) << 44 | (uint64_t)(rank & 0xfffff) << 24 | (number & 0xffffff);
}

static bool is_alltoall(const struct job *j, const struct job_op *op)
{
	return op->kind == COLL_SENDRECV && op->n_calls && !job_op_is_of_stage(j, op);
}

/* What the row has of other ranks and for them. */
static void add_bytes(const struct job *j, uint32_t row, uint64_t *bytes)
{
	const struct job_op *op = &j->ops[j->rows[row].op];

	for (uint32_t k = 0; k < op->n_calls; k++) {
		const struct job_call *c = &j->calls[op->first_call + k];

		if (c->peer != j->ranks[j->rows[row].rank])
			bytes[c->is_send] += c->bytes;
	}
}

static int find_groups(const struct job *j, struct groups *ret)
{
	struct number_table n = {.n = 0};
	int r = 0;

	ret->number = calloc((size_t)j->n_rows + 1, sizeof(*ret->number));
	ret->bytes = calloc((size_t)j->n_rows + 1, sizeof(*ret->bytes));
	if (!ret->number || !ret->bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->n_rows && r == 0; i++) {
		const struct job_row *row = &j->rows[i];
		uint32_t *next, *place;

		if (row->op != JOB_NONE)
			add_bytes(j, i, ret->bytes[i]);
		if (row->op == JOB_NONE || !is_alltoall(j, &j->ops[row->op]))
			continue;
		next = number_table_at(&n, group_key(j->ops[row->op].comm, row->rank, 0));
		ret->number[i] = next ? (*next)++ : 0;
		place = number_table_at(&ret->row_of,
					group_key(j->ops[row->op].comm, row->rank, ret->number[i]));
		r = next && place ? 0 : -ENOMEM;
		if (r == 0)
			*place = i + 1;
	}
	number_table_deinit(&n);
	return r;
}

/* The row at which the peer of @known comes, of which there are no rows: in an all-to-all that of
 * the rank that stands for it, else that of @known. */
static uint32_t peers_row(const struct maker *m, const struct groups *g, const struct end *known)
{
	const struct job *j = m->j;
	const struct job_row *row = &j->rows[known->row];
	const struct job_op *op = &j->ops[row->op];
	const struct job_comm *c = &j->comms[op->comm];
	int64_t peer = membership_rank(&c->members, known->peer);
	uint32_t found = peer < 0
				 ? 0
				 : number_table_get(&g->row_of, group_key(op->comm, c->copies[peer],
									  g->number[known->row]));

	return found && is_alltoall(j, op) ? found - 1 : known->row;
}

/* The message of @send to @receive; either may be NULL: there are no rows of the peer. */
static int add_message(struct maker *m, const struct groups *g, const struct end *send,
		       const struct end *receive)
{
	const struct end *known = send ? send : receive;
	const struct job *j = m->j;
	const struct job_op *op = &j->ops[j->rows[known->row].op];
	uint32_t self = j->ranks[j->rows[known->row].rank];
	uint32_t src = send ? self : known->peer, dst = send ? known->peer : self, from, recv;
	struct play_device d = {PLAY_LINK, src, MAKER_ANY, 0};
	uint32_t device = DFG_PARALLEL, vertex;
	struct nbox_delay delay;
	double factor, add, extra;
	int r = costs_p2p(m->p->costs, op, src, dst, known->bytes, &delay, m->err);

	if (r < 0)
		return r;
	if (costs_are_whole(m->p->costs) && op->ns >= 0) /* a part of the group's time */
		delay = (struct nbox_delay){
			.occupancy_ns = op->ns * (double)known->bytes /
					fmax(1, (double)g->bytes[known->row][send != NULL])};
	maker_changed_op(m, op, &factor, &add);
	extra = factor * fmax(0, extra_of(m, op));
	if (extra_of(m, op) < 0 && op->ns > 0)
		factor *= fmax(0, 1 + op->extra_ns / op->ns);
	if (m->p->costs->is_measured && op->ns >= 0 && delay.occupancy_ns + delay.latency_ns > 0)
		factor *= op->ns / (delay.occupancy_ns + delay.latency_ns);
	if (!send) /* others receive from it, too: the port here is the bound */
		d = (struct play_device){PLAY_LINK, MAKER_ANY, dst, 0};
	if (topology_hop(&j->topology, src, dst) == HOP_INTRA)
		d.number |= 1 << 15;
	from = m->to->at[send ? send->row : peers_row(m, g, receive)];
	if (!m->p->without_queues)
		r = maker_device(m, &d, &device);
	if (r == 0)
		r = dfg_add_op(m->to->g, device, factor * delay.occupancy_ns + add, 0, &vertex);
	if (r == 0)
		r = dfg_add_edge(m->to->g, from, vertex, 0);
	if (r == 0)
		r = dfg_add_op(m->to->g, DFG_PARALLEL, 0, 0, &recv);
	if (r == 0)
		r = dfg_add_edge(m->to->g, vertex, recv,
				 m->p->without_latency ? 0 : factor * delay.latency_ns + extra);
	if (r == 0 && receive)
		r = dfg_add_edge(m->to->g, recv, m->to->end[receive->row], 0);
	if (r == 0 && send && known->bytes > BUFFER_BYTES)
		r = dfg_add_edge(m->to->g, vertex, m->to->end[send->row], 0);
	if (r == 0 && send && receive && known->bytes > BUFFER_BYTES)
		r = dfg_add_edge(m->to->g, m->to->at[receive->row], m->to->end[send->row], 0);
	m->to->n_hops++;
	return r < 0 ? maker_no_memory(m) : 0;
}

int add_messages(struct maker *m, uint32_t *n_owned)
{
	const struct job *j = m->j;
	CLEANUP(freep) struct end *sends = calloc((size_t)j->n_calls + 1, sizeof(*sends));
	CLEANUP(freep) struct end *receives = calloc((size_t)j->n_calls + 1, sizeof(*receives));
	CLEANUP(groups_deinit) struct groups groups = {.number = NULL};
	uint32_t n_sends, n_receives, i = 0, k = 0;
	int r = 0;

	if (!sends || !receives || find_groups(j, &groups) < 0)
		return maker_no_memory(m);
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
		r = add_message(m, &groups, s, e);
		if (r == 0)
			r = maker_own(m, n_owned, PLAYED_OP | j->rows[(s ? s : e)->row].op);
	}
	for (uint32_t row = 0; row < j->n_rows && r == 0; row++)
		if (j->rows[row].op != JOB_NONE && j->ops[j->rows[row].op].kind == COLL_SENDRECV)
			r = dfg_add_edge(m->to->g, m->to->at[row], m->to->end[row], 0);
	return r;
}
