/* See of-record.h. A row is a row of the graph, at a real rank, or at one that is told apart from
 * it: there it waits for what that rank itself does. Rows that the replay lost are left out, with
 * all that waits for them. */
#include "nbox/replay/of-record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number-table.h"
#include "members/members.h"
#include "nbox/replay/alike.h"
#include "nbox/report/steps.h"
#include "topology/template.h"
#include "trace/spans.h"

/* Of all ranks, where some are told apart: a minute and some gigabytes. */
#define ROWS_MAX 8000000u
#define CALLS_MAX 8000000u

struct maker {
	const struct job_record *from;
	struct err *err;
	struct job *j;
	struct alike alike;
	struct spans spans;
	uint32_t n_recorded_comms; /* the job's behind them are others of ranks told apart */
	uint32_t *span_of;   /* owned; by row of the graph: index in spans + 1; 0: it was lost */
	uint32_t *row_of;    /* owned; by row of the graph: row of the job; JOB_NONE */
	uint32_t *row_of_op; /* owned; by op of the record */
	struct number_table op_of; /* by communicator and number there: index in the job's + 1 */
	uint64_t epoch;
	/* whose rows are made */
	uint32_t rank; /* index; JOB_NONE: all that are real, each row's own */
	double *ns;    /* owned; of a rank told apart: what it computes, by number of the row */
	uint64_t n_ns;
};

static void maker_deinit(struct maker *m)
{
	alike_deinit(&m->alike);
	spans_deinit(&m->spans);
	free(m->ns);
	free(m->span_of);
	free(m->row_of);
	free(m->row_of_op);
	number_table_deinit(&m->op_of);
}

static double since(const struct maker *m, uint64_t ns)
{
	return (double)(int64_t)(ns - m->epoch);
}

/* --- ranks and communicators ------------------------------------------------------------------ */

static int add_ranks(struct maker *m)
{
	const struct config *c = m->from->config;

	int r = alike_find(m->from->rec, c, m->from->computed, &m->alike);
	uint32_t n = (uint32_t)c->n_real + m->alike.n_apart;

	if (r < 0)
		return r;
	m->j->ranks = calloc((size_t)n + 1, sizeof(*m->j->ranks));
	m->j->n_alike = calloc((size_t)n + 1, sizeof(*m->j->n_alike));
	if (!m->j->ranks || !m->j->n_alike)
		return -ENOMEM;
	memcpy(m->j->ranks, c->real, c->n_real * sizeof(*m->j->ranks));
	for (uint32_t i = 0; i < m->alike.n_apart; i++)
		m->j->ranks[c->n_real + i] = m->alike.apart[i];
	m->j->n_recorded = (uint32_t)c->n_real;
	m->j->n_ranks = n;
	m->j->world = c->world;
	m->j->topology = c->topology;
	for (uint32_t i = 0; i < c->world; i++)
		m->j->n_alike[job_rank(m->j, m->alike.as[i])]++;
	return 0;
}

/* Who does as member @world of a communicator whose template for it is @was. */
static uint32_t copied(const struct maker *m, uint32_t world, uint32_t was)
{
	return job_rank(m->j, m->alike.template[world] == was ? m->alike.as[world] : was);
}

static int add_comm(struct maker *m, const struct record_comm *of, struct job_comm *ret)
{
	const struct config *c = m->from->config;
	CLEANUP(freep) uint32_t *real = calloc((size_t)of->n_real + 1, sizeof(*real));
	CLEANUP(freep) uint32_t *table = NULL;
	CLEANUP(templates_deinit) struct templates t = {0};
	struct membership map = {of->n_ranks, of->base, of->stride, NULL};

	ret->copies = calloc((size_t)of->n_ranks + 1, sizeof(*ret->copies));
	if (!real || !ret->copies)
		return -ENOMEM;
	if (of->n_members) {
		table = malloc((size_t)of->n_ranks * sizeof(*table));
		if (!table)
			return -ENOMEM;
		memcpy(table, of->members, (size_t)of->n_ranks * sizeof(*table));
		map.table = table;
	}
	for (uint32_t i = 0; i < of->n_real; i++)
		real[i] = of->real[i].rank;
	ret->ranks_per_node = members_per_node(&map, &c->topology);
	if (of->n_real &&
	    templates_init(&t, &map, c->topology.gpus_per_node, c->classes.of, real, of->n_real))
		return -ENOMEM;
	for (uint32_t i = 0; of->n_real && i < of->n_ranks; i++) {
		uint32_t was = membership_world(&map, real[template_of(&t, i)]);

		ret->copies[i] = copied(m, membership_world(&map, i), was);
	}
	ret->members = map;
	table = NULL;
	return 0;
}

static int add_comms(struct maker *m)
{
	const struct record *rec = m->from->rec;
	int r = 0;

	m->j->comms = calloc(rec->n_comms + 1, sizeof(*m->j->comms));
	if (!m->j->comms)
		return -ENOMEM;
	for (uint64_t i = 0; i < rec->n_comms && r == 0; i++) {
		m->j->n_comms++;
		r = add_comm(m, &rec->comms[i], &m->j->comms[i]);
	}
	m->n_recorded_comms = m->j->n_comms;
	return r;
}

/* Another one after those of the record. */
static struct job_comm *new_comm(struct maker *m, const struct membership *members,
				 uint32_t ranks_per_node)
{
	uint32_t n = m->j->n_comms, *table = malloc((size_t)members->n_ranks * sizeof(*table)),
		 *copies = malloc((size_t)members->n_ranks * sizeof(*copies));
	struct job_comm *grown = reallocarray(m->j->comms, (size_t)n + 1, sizeof(*grown));

	m->j->comms = grown ? grown : m->j->comms;
	if (!grown || !table || !copies) {
		free(table);
		free(copies);
		return NULL;
	}
	grown[n] = (struct job_comm){.members = {.n_ranks = members->n_ranks, .table = table},
				     .copies = copies,
				     .ranks_per_node = ranks_per_node};
	m->j->n_comms++;
	return &grown[n];
}

/* The communicator in which a rank told apart has the ops that its template has in number @of of
 * the record: that one, or its image there. *ret_group: how peers are found. Return: its index;
 * JOB_NONE: no memory. */
static uint32_t comm_at(struct maker *m, uint32_t of, uint32_t rank, struct alike_group *group)
{
	bool is_known = alike_group_of(m->from->config, &m->from->rec->comms[of], rank, group);
	uint32_t n = group->members.n_ranks, *table;
	struct job_comm *c;

	if (is_known && !group->is_image)
		return of;
	for (uint32_t i = m->n_recorded_comms; i < m->j->n_comms; i++) {
		c = &m->j->comms[i];
		if (c->of == of && c->is_alone == !is_known &&
		    (is_known ? c->members.table[0] == alike_group_at(group, 0)
			      : m->j->ranks[c->copies[0]] == rank))
			return i;
	}
	c = new_comm(m, &group->members, m->j->comms[of].ranks_per_node);
	if (!c)
		return JOB_NONE;
	table = (uint32_t *)(uintptr_t)c->members.table;
	c->of = of;
	c->is_alone = !is_known;
	for (uint32_t i = 0; i < n; i++) {
		table[i] =
			is_known ? alike_group_at(group, i) : membership_world(&group->members, i);
		c->copies[i] = job_rank(m->j, is_known ? m->alike.as[table[i]] : rank);
	}
	return m->j->n_comms - 1;
}

/* --- rows ---------------------------------------------------------------------------------------
 */

static uint32_t comm_index(const struct record *rec, const struct record_comm *of)
{
	return (uint32_t)(of - rec->comms);
}

static int take_calls(struct maker *m, const struct record_op *op, const struct alike_group *group)
{
	int r = 0;

	for (uint32_t i = 0; i < op->n_calls && r == 0; i++) {
		const struct record_call *call = &op->calls[i];
		uint32_t peer = m->rank == JOB_NONE ? record_world_rank(op->of, call->peer)
						    : alike_peer(group, op->rank, call->peer,
								 m->j->ranks[m->rank]);

		if (peer != UINT32_MAX)
			r = job_add_call(m->j,
					 &(struct job_call){peer, call->is_send, call->bytes});
	}
	return r;
}

/* The op that this row is in. */
static int take_op(struct maker *m, const struct record_op *op, uint32_t *ret)
{
	bool is_p2p = op->kind == COLL_SENDRECV;
	struct alike_group group;
	uint32_t of = comm_index(m->from->rec, op->of);
	uint32_t comm = m->rank == JOB_NONE ? of : comm_at(m, of, m->j->ranks[m->rank], &group);
	uint64_t key = (comm + UINT64_C(1)) << 44 | (op->seq & ((UINT64_C(1) << 44) - 1));
	uint32_t *known = is_p2p || comm == JOB_NONE ? NULL : number_table_at(&m->op_of, key);
	struct job_op o = {.comm = comm,
			   .kind = op->kind,
			   .root = op->root,
			   .algo = op->algo,
			   .took = {op->took_algorithm, op->took_protocol, op->took_channels},
			   .elem_bytes = (uint32_t)coll_dtype_bytes(op->dtype),
			   .bytes = op->bytes,
			   .ns = op->model_ns,
			   .extra_ns = op->injected_ns,
			   .number = op->number,
			   .first_call = m->j->n_calls};
	int r = comm != JOB_NONE && (is_p2p || known) ? 0 : -ENOMEM;

	if (known && *known) {
		*ret = *known - 1;
		return 0;
	}
	if (r == 0 && is_p2p)
		r = take_calls(m, op, &group);
	o.n_calls = m->j->n_calls - o.first_call;
	*ret = m->j->n_ops;
	if (known)
		*known = *ret + 1;
	return r < 0 ? r : job_add_op(m->j, &o);
}

static int add_row(struct maker *m, uint32_t i)
{
	const struct span *s = m->span_of[i] ? &m->spans.list[m->span_of[i] - 1] : NULL;
	const struct timeline_terms *t = &m->from->terms[i];
	struct job_row row = {.stream = JOB_NONE, .name = JOB_NONE, .op = JOB_NONE};
	int r = 0;

	m->row_of[i] = JOB_NONE;
	if (!s)
		return 0;
	row.rank = job_rank(m->j, s->world_rank);
	row.ns = t->segment_ns;
	row.plain_ns = fmax(0, t->segment_ns - t->slowed_ns + t->rest_ns);
	if (m->rank != JOB_NONE) {
		uint64_t number = m->from->graph->rows[i].number;

		if (m->j->ranks[row.rank] != m->alike.template[m->j->ranks[m->rank]])
			return 0;
		row.rank = m->rank;
		row.ns = isnan(m->ns[number]) ? t->segment_ns - t->slowed_ns : m->ns[number];
	}
	row.ns = fmax(0, row.ns + t->rest_ns);
	row.at = since(m, s->at_ns);
	row.end = since(m, s->end_ns);
	if (row.rank == JOB_NONE)
		return 0;
	if (s->from_ns < s->at_ns) {
		row.stream = job_stream(m->j, row.rank, s->stream);
		r = row.stream == JOB_NONE ? -ENOMEM : 0;
	}
	m->row_of[i] = m->j->n_rows;
	if (s->op && m->rank == JOB_NONE)
		m->row_of_op[s->op - m->from->rec->ops] = m->j->n_rows;
	if (r == 0 && s->op)
		r = take_op(m, s->op, &row.op);
	return r < 0 ? r : job_add_row(m->j, &row);
}

/* --- what rows wait for ----------------------------------------------------------------------- */

static int wait_for(struct maker *m, uint32_t i, uint32_t row, uint32_t flags, double lag_ns)
{
	uint32_t before = row == ROWS_NONE ? JOB_NONE : m->row_of[row];

	if (before == JOB_NONE || !(lag_ns > -INFINITY))
		return 0;
	return job_add_edge(m->j, before, m->row_of[i], flags, fmax(0, lag_ns));
}

/* As why/chain.c has it. */
static int add_waits(struct maker *m, uint32_t i)
{
	const struct rows_graph *g = m->from->graph;
	const struct rows_row *row = &g->rows[i];
	const struct timeline_terms *t = &m->from->terms[i];
	uint32_t n = m->j->n_edges, at = m->row_of[i];
	int r = 0;

	if (at == JOB_NONE)
		return 0;
	for (uint32_t k = 0; k < row->n_deps && r == 0; k++)
		r = wait_for(m, i, g->deps[row->first_dep + k].row, 0, 0);
	if (r == 0 && t->is_after_latest)
		r = wait_for(m, i, row->latest.row,
			     row->latest.row != ROWS_NONE && g->rows[row->latest.row].is_op &&
					     !row->latest.open_ns
				     ? JOB_OF_ARRIVAL
				     : 0,
			     0);
	if (r == 0 && t->is_after_host)
		r = wait_for(m, i, row->host, JOB_OF_ARRIVAL, 0);
	if (r == 0)
		r = wait_for(m, i, row->host, JOB_OF_ARRIVAL, t->work_ns);
	if (r == 0)
		r = wait_for(m, i, row->host, JOB_OF_ARRIVAL | JOB_SKIPS_WORK, t->gap_ns);
	if (r == 0 && n == m->j->n_edges)
		r = job_add_edge(m->j, 0, at, 0, fmax(0, m->j->rows[at].at - m->j->rows[at].ns));
	return r;
}

/* --- steps ---------------------------------------------------------------------------- */

static int by_order(const void *pa, const void *pb)
{
	const struct record_op *const *a = pa, *const *b = pb;

	return steps_order(*a, *b);
}

/* Those of the lowest rank. */
static int add_steps(struct maker *m)
{
	const struct record *rec = m->from->rec;
	CLEANUP(freep) const struct record_op **ops = calloc(rec->n_ops + 1, sizeof(*ops));
	CLEANUP(freep) struct record_op *rows = calloc(rec->n_ops + 1, sizeof(*rows));
	CLEANUP(steps_deinit) struct steps s = {0};
	uint64_t n = 0;
	int r;

	if (!ops || !rows)
		return -ENOMEM;
	for (uint64_t i = 0; i < rec->n_ops; i++)
		if (m->j->n_ranks && rec->ops[i].world_rank == m->j->ranks[0])
			ops[n++] = &rec->ops[i];
	qsort(ops, n, sizeof(*ops), by_order);
	for (uint64_t i = 0; i < n; i++)
		rows[i] = *ops[i];
	r = steps_find(rec, rows, n, &s);
	for (uint64_t i = s.n_warm_up; r == 0 && i < s.n; i++)
		if (s.list[i].is_timed)
			r = job_add_step(m->j, m->row_of_op[ops[s.list[i].first] - rec->ops],
					 m->row_of_op[ops[s.list[i].end] - rec->ops]);
	memcpy(m->j->steps_how, s.how, sizeof(s.how));
	return r;
}

/* --- all -------------------------------------------------------------------------------------- */

/* The span of each row of the graph. */
static int find_spans(struct maker *m)
{
	const struct rows_graph *g = m->from->graph;
	const struct record *was = g->rec, *rec = m->from->rec;
	CLEANUP(freep) uint32_t *of_op = calloc(rec->n_ops + 1, sizeof(*of_op));
	CLEANUP(freep) uint32_t *of_point = calloc(rec->n_points + 1, sizeof(*of_point));
	CLEANUP(freep) uint32_t *now_op = calloc(was->n_ops + 1, sizeof(*now_op));
	CLEANUP(freep) uint32_t *now_point = calloc(was->n_points + 1, sizeof(*now_point));
	uint64_t k = 0;
	int r = spans_find(rec, &m->spans);

	m->span_of = calloc((size_t)g->n + 1, sizeof(*m->span_of));
	if (r < 0 || !of_op || !of_point || !now_op || !now_point || !m->span_of)
		return -ENOMEM;
	m->epoch = UINT64_MAX;
	for (size_t i = 0; i < m->spans.n; i++) {
		const struct span *s = &m->spans.list[i];

		if (s->op)
			of_op[s->op - rec->ops] = (uint32_t)i + 1;
		else
			of_point[s->point - rec->points] = (uint32_t)i + 1;
		m->epoch = s->from_ns < m->epoch ? s->from_ns : m->epoch;
	}
	for (uint64_t i = 0; i < was->n_ops && k < rec->n_ops; i++)
		if (was->ops[i].order == rec->ops[k].order)
			now_op[i] = of_op[k++];
	k = 0;
	for (uint64_t i = 0; i < was->n_points && k < rec->n_points; i++)
		if (was->points[i].order == rec->points[k].order)
			now_point[i] = of_point[k++];
	for (uint32_t i = 0; i < g->n; i++)
		m->span_of[i] =
			g->rows[i].is_op ? now_op[g->rows[i].index] : now_point[g->rows[i].index];
	return 0;
}

/* Those of the rank, or of all real ones. */
static int add_rows(struct maker *m)
{
	uint32_t n = m->from->graph->n;
	int r = 0;

	for (uint32_t i = 0; i < n && r == 0; i++)
		r = add_row(m, i);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = add_waits(m, i);
	return r;
}

static int make(struct maker *m)
{
	const struct rows_graph *g = m->from->graph;
	int r = find_spans(m);

	m->row_of = calloc((size_t)g->n + 1, sizeof(*m->row_of));
	m->row_of_op = calloc(m->from->rec->n_ops + 1, sizeof(*m->row_of_op));
	for (uint32_t i = 0; i < g->n; i++)
		m->n_ns = g->rows[i].number >= m->n_ns ? g->rows[i].number + 1 : m->n_ns;
	m->ns = malloc((m->n_ns + 1) * sizeof(*m->ns));
	if (r < 0 || !m->row_of || !m->row_of_op || !m->ns)
		return -ENOMEM;
	r = add_ranks(m);
	if (r == 0)
		r = add_comms(m);
	if (r == 0)
		r = job_add_row(m->j, &job_begin);
	m->rank = JOB_NONE;
	r = r < 0 ? r : add_rows(m);
	for (uint32_t i = m->j->n_recorded; i < m->j->n_ranks && r == 0; i++) {
		m->rank = i;
		for (uint64_t k = 0; k < m->n_ns; k++)
			m->ns[k] = NAN;
		computed_apply(m->from->computed, m->j->ranks[i], m->ns, m->n_ns);
		r = add_rows(m);
		if (r == 0 && (m->j->n_rows > ROWS_MAX || m->j->n_calls > CALLS_MAX))
			r = err_set(m->err, E2BIG,
				    "what-ifs tell %u virtual ranks apart, and what these compute "
				    "and send is too much for one graph: nbox retime has it, or "
				    "fewer --nodes",
				    m->j->n_ranks - m->j->n_recorded);
	}
	if (r == 0)
		r = job_find_members(m->j);
	return r < 0 ? r : add_steps(m);
}

int job_of_record(const struct job_record *from, struct job *ret, struct err *err)
{
	CLEANUP(job_deinit) struct job j = {.n_rows = 0};
	CLEANUP(maker_deinit) struct maker m = {.from = from, .err = err, .j = &j};
	int r = make(&m);

	if (r < 0)
		return err->text[0] ? r : err_set(err, -r, "out of memory");
	*ret = j;
	j = (struct job){.n_rows = 0};
	return 0;
}
