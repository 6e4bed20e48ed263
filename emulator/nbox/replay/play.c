/* See play.h. A row is an op that computes, then, where it leads to an op of a communicator, or
 * somebody may skip the computation, one that takes no time, and behind an op one more: it is over.
 * Between these two lie the op's hops. */
#include "nbox/replay/play.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nbox/replay/add-messages.h"
#include "nbox/replay/add-ops.h"

#define MOST_HOPS (UINT64_C(1) << 21)

/* --- rows ------------------------------------------------------------------------------------- */

static int add_row(struct maker *m, uint32_t i, const uint32_t *device_of, bool is_skipped,
		   uint32_t *n_owned)
{
	const struct job_row *row = &m->j->rows[i];
	struct played *to = m->to;
	uint32_t device = row->stream == JOB_NONE ? DFG_PARALLEL : device_of[row->stream];
	bool is_op = row->op != JOB_NONE;
	int r = dfg_add_op(to->g, device, maker_computed_ns(m, row), 0, &to->begin[i]);

	to->at[i] = to->begin[i];
	if (r == 0 && (is_op || is_skipped)) {
		r = dfg_add_op(to->g, DFG_PARALLEL, 0, 0, &to->at[i]);
		if (r == 0)
			r = dfg_add_edge(to->g, to->begin[i], to->at[i], 0);
	}
	to->end[i] = to->at[i];
	if (r == 0 && is_op)
		r = dfg_add_op(to->g, DFG_PARALLEL, 0, 0, &to->end[i]);
	return r < 0 ? r : maker_own(m, n_owned, i);
}

static int add_rows(struct maker *m, uint32_t *n_owned)
{
	const struct job *j = m->j;
	CLEANUP(freep) uint32_t *device_of = calloc((size_t)j->n_streams + 1, sizeof(*device_of));
	CLEANUP(freep) bool *is_skipped = calloc((size_t)j->n_rows + 1, sizeof(*is_skipped));
	int r = device_of && is_skipped ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < j->n_streams && r == 0; i++) {
		const struct play_device d = {PLAY_STREAM, j->ranks[j->streams[i].rank], MAKER_ANY,
					      j->streams[i].number};

		r = maker_add_device(m, &d, &device_of[i]);
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

/* --- all -------------------------------------------------------------------------------------- */

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
			r = maker_own(m, &n_owned, PLAYED_OP | i);
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
		if (m->j->n_ranks > m->j->n_recorded)
			return err_set(
				m->err, ELOOP,
				"what-ifs tell %u virtual ranks apart, and these cannot "
				"send and receive among each other as the ranks do that they "
				"copy: rank %u would wait in a circle; nbox retime knows how "
				"late they are",
				m->j->n_ranks - m->j->n_recorded,
				m->j->ranks[m->j->rows[row].rank]);
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

static int by_number(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a > b) - (a < b);
}

/* Of ops that have too many hops in all, those with most are one vertex each. */
static int share_hops(struct maker *m)
{
	uint64_t most = m->p->most_hops ? m->p->most_hops : MOST_HOPS, sum = 0;
	CLEANUP(freep) uint64_t *hops = calloc((size_t)m->j->n_ops + 1, sizeof(*hops));
	uint32_t n = 0, i = 0;
	int r = hops ? 0 : -ENOMEM;

	for (uint32_t k = 0; k < m->j->n_ops && r == 0; k++)
		if (m->j->ops[k].kind != COLL_SENDRECV && m->j->ops[k].n)
			r = costs_hops(m->p->costs, &m->j->ops[k], &hops[n++], m->err);
	if (r < 0)
		return r;
	qsort(hops, n, sizeof(*hops), by_number);
	while (i < n && sum + hops[i] <= most)
		sum += hops[i++];
	while (i && i < n && hops[i - 1] == hops[i]) /* equal ones share their fate */
		sum -= hops[--i];
	m->most_hops = i ? hops[i - 1] : 0;
	m->most_pieces = sum && most / sum > 1 ? most / sum : 1;
	return 0;
}

int play(const struct play *p, struct played *ret, struct err *err)
{
	CLEANUP(played_deinit) struct played to = {.g = NULL};
	struct maker m = {.p = p, .j = p->job, .to = &to, .err = err};
	int r;

	m.has_one_comm = true;
	for (uint32_t i = 1; i < p->job->n_ops; i++)
		m.has_one_comm &= p->job->ops[i].comm == p->job->ops[0].comm;
	r = p->policy == PLAY_DAYDREAM ? 0 : share_hops(&m);
	if (r == 0)
		r = add_all(&m);
	if (r == 0)
		r = play_graph(&m);
	number_table_deinit(&m.devices);
	if (r == -ENOMEM && !err->text[0])
		return maker_no_memory(&m);
	if (r < 0)
		return r;
	*ret = to;
	to = (struct played){.g = NULL};
	return 0;
}
