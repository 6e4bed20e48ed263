/* See of-trace.h. */
#include "nbox/replay/of-trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "schedule/schedule.h"

/* The last row of a stream; of a thread the last one that waited. */
struct place {
	uint32_t number, row;
};

struct maker {
	const struct trace *t;
	struct job *j;
	uint32_t world;
	uint32_t *row_of;  /* owned; by op: JOB_NONE: it has none */
	uint32_t *op_of;   /* owned; by join: op of the job + 1 */
	uint32_t *name_of; /* owned; by name of the trace + 1 */
	uint32_t n_names;
	struct place *streams, *threads; /* owned; of the rank */
	uint32_t n_streams, n_threads;
	double begin_ns; /* of the first op */
	struct err *err;
};

static void maker_deinit(struct maker *m)
{
	free(m->row_of);
	free(m->op_of);
	free(m->name_of);
	free(m->streams);
	free(m->threads);
}

/* --- ranks and communicators ------------------------------------------------------------------ */

/* Ranks of a host follow each other, as many on each; else each is its own node. */
static uint32_t ranks_per_host(const struct trace *t)
{
	uint32_t n = 1;

	while (n < t->n_ranks && t->ranks[n].host == t->ranks[0].host)
		n++;
	for (uint32_t i = 0; i < t->n_ranks; i++)
		if (t->ranks[i].rank != i || t->ranks[i].host != t->ranks[i / n * n].host ||
		    (i >= n && i % n == 0 && t->ranks[i].host == t->ranks[i - 1].host))
			return 1;
	return n;
}

static int add_ranks(struct maker *m, const struct hop_cost *intra, const struct hop_cost *inter)
{
	const struct trace *t = m->t;
	uint32_t per_host = ranks_per_host(t);

	m->j->ranks = calloc((size_t)t->n_ranks + 1, sizeof(*m->j->ranks));
	if (!m->j->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_ranks; i++)
		m->j->ranks[i] = t->ranks[i].rank;
	m->j->n_ranks = m->j->n_recorded = t->n_ranks;
	m->j->world = m->world;
	m->j->topology = (struct topology){.n_nodes = (m->world + per_host - 1) / per_host,
					   .gpus_per_node = per_host,
					   .intra = *intra,
					   .inter = *inter};
	return 0;
}

/* A rank without a trace does as those with one, in turn. */
static int add_comm(struct maker *m, const struct trace_comm *of, struct job_comm *c)
{
	bool is_world = of->n == m->t->world;
	uint32_t n = is_world ? m->world : of->n, n_known = 0;
	CLEANUP(freep) uint32_t *known = calloc((size_t)m->j->n_ranks + 1, sizeof(*known));
	uint32_t *table = NULL;

	c->copies = calloc((size_t)n + 1, sizeof(*c->copies));
	if (!is_world && of->members)
		table = malloc((size_t)n * sizeof(*table));
	c->members = (struct membership){n, 0, 1, table};
	if (!known || !c->copies || (!is_world && of->members && !table))
		return -ENOMEM;
	if (table)
		memcpy(table, of->members, (size_t)n * sizeof(*table));
	for (uint32_t i = 0; i < n; i++)
		if (job_rank(m->j, membership_world(&c->members, i)) != JOB_NONE &&
		    n_known < m->j->n_ranks)
			known[n_known++] = job_rank(m->j, membership_world(&c->members, i));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t own = job_rank(m->j, membership_world(&c->members, i));

		c->copies[i] = own != JOB_NONE ? own : n_known ? known[i % n_known] : 0;
	}
	c->ranks_per_node = is_world ? m->j->topology.gpus_per_node : 1;
	return 0;
}

static int add_comms(struct maker *m)
{
	int r = 0;

	m->j->comms = calloc((size_t)m->t->n_comms + 2, sizeof(*m->j->comms));
	if (!m->j->comms)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->t->n_comms && r == 0; i++) {
		m->j->n_comms++;
		r = add_comm(m, &m->t->comms[i], &m->j->comms[i]);
	}
	if (r == 0) { /* of ops that name none */
		const struct trace_comm all = {.n = m->t->world};

		r = add_comm(m, &all, &m->j->comms[m->j->n_comms++]);
	}
	return r;
}

/* --- ops of communicators --------------------------------------------------------------------- */

static int root_of(const struct trace_op *o, const struct job_comm *c)
{
	int64_t root = o->peer == TRACE_NONE ? 0 : membership_rank(&c->members, o->peer);

	return root < 0 ? 0 : (int)root;
}

/* When all had come, until the last one was done: what the op itself took. */
static double taken_ns(const struct trace *t, const struct trace_op *o)
{
	double start = o->start_ns, end = o->end_ns;

	if (o->join == TRACE_NONE)
		return end - start;
	for (uint32_t i = t->first_joined[o->join]; i < t->first_joined[o->join + 1]; i++) {
		const struct trace_op *of = &t->ops[t->joined[i]];

		start = fmax(start, of->start_ns);
		end = fmax(end, of->end_ns);
	}
	return fmax(0, end - start);
}

static int take_op(struct maker *m, const struct trace_op *o, uint32_t *ret)
{
	bool is_message = o->kind == TRACE_SEND || o->kind == TRACE_RECV;
	uint32_t *known = is_message || o->join == TRACE_NONE ? NULL : &m->op_of[o->join];
	uint32_t comm = o->comm < m->t->n_comms ? o->comm : m->j->n_comms - 1;
	uint32_t kind = is_message || o->coll >= COLL_KINDS ? (uint32_t)COLL_SENDRECV : o->coll;
	struct job_op op = {.comm = comm,
			    .kind = kind,
			    .root = (uint32_t)root_of(o, &m->j->comms[comm]),
			    .elem_bytes = 1,
			    .bytes = o->bytes ? o->bytes : 1,
			    .ns = taken_ns(m->t, o),
			    .first_call = m->j->n_calls};
	int r = 0;

	*ret = m->j->n_ops;
	if (known && *known) {
		*ret = *known - 1;
		return 0;
	}
	if (kind != COLL_SENDRECV)
		op.algo = (uint32_t)sched_default_algo((enum coll_kind)kind);
	if (is_message && trace_rank(m->t, o->peer) != TRACE_NONE &&
	    trace_rank(m->t, o->peer) != o->rank) {
		r = job_add_call(m->j,
				 &(struct job_call){o->peer, o->kind == TRACE_SEND, op.bytes});
		op.n_calls = 1;
	}
	if (known)
		*known = *ret + 1;
	return r < 0 ? r : job_add_op(m->j, &op);
}

/* --- rows ---------------------------------------------------------------------------------------
 */

static struct place *place_of(struct place *list, uint32_t *n, uint32_t number)
{
	for (uint32_t i = 0; i < *n; i++)
		if (list[i].number == number)
			return &list[i];
	list[*n] = (struct place){number, JOB_NONE};
	return &list[(*n)++];
}

static int take_name(struct maker *m, uint32_t name, uint32_t *ret)
{
	if (!m->name_of[name]) {
		uint32_t added = job_name(m->j, trace_name(m->t, name));

		if (added == JOB_NONE)
			return -ENOMEM;
		m->name_of[name] = added + 1;
	}
	*ret = m->name_of[name] - 1;
	return 0;
}

/* Rows that it waited for; all are over when it begins, or it waited for none. */
struct waits {
	uint32_t row[64];
	uint32_t n;
	double last_ns;
};

static void wait_for(const struct maker *m, struct waits *w, uint32_t row, double start_ns)
{
	double end;

	if (row == JOB_NONE || w->n == 64)
		return;
	end = m->j->rows[row].end;
	if (end > start_ns)
		return;
	w->row[w->n++] = row;
	w->last_ns = fmax(w->last_ns, end);
}

static int add_waits(struct maker *m, const struct waits *w, uint32_t row, double start_ns)
{
	int r = 0;

	for (uint32_t i = 0; i < w->n && r == 0; i++)
		r = job_add_edge(m->j, w->row[i], row, 0, start_ns - w->last_ns);
	return r;
}

/* A stream computes one thing at a time: of two that overlap the second one is the rest. @before:
 * the row before it; JOB_NONE. */
static double start_of(const struct maker *m, const struct trace_op *o, uint32_t before)
{
	double start = (o->kind == TRACE_SYNC ? o->end_ns : o->start_ns) - m->begin_ns;

	return o->kind < TRACE_COLLECTIVE && before != JOB_NONE
		       ? fmax(start, m->j->rows[before].end)
		       : start;
}

static int add_row(struct maker *m, uint32_t number)
{
	const struct trace_op *o = &m->t->ops[number];
	bool is_host = o->kind == TRACE_SYNC, is_op = o->kind >= TRACE_COLLECTIVE;
	struct place *place = is_host ? place_of(m->threads, &m->n_threads, o->stream)
				      : place_of(m->streams, &m->n_streams, o->stream);
	const struct trace_op *launch =
		!is_host && o->launched_by < m->t->n_ops ? &m->t->ops[o->launched_by] : NULL;
	double start = start_of(m, o, is_host ? JOB_NONE : place->row);
	struct job_row row = {.rank = o->rank,
			      .stream = JOB_NONE,
			      .name = JOB_NONE,
			      .op = JOB_NONE,
			      .at = start,
			      .end = fmax(start, o->end_ns - m->begin_ns)};
	struct waits w = {.last_ns = -INFINITY};
	int r = take_name(m, o->name, &row.name);

	if (r == 0 && !is_host && !is_op) {
		row.ns = row.plain_ns = row.end - start;
		row.at = row.end;
		row.stream = job_stream(m->j, o->rank, o->stream);
		r = row.stream == JOB_NONE ? -ENOMEM : 0;
	}
	if (r == 0 && is_op)
		r = take_op(m, o, &row.op);
	wait_for(m, &w, place->row, start);
	for (uint32_t i = 0; i < o->n_waits; i++)
		wait_for(m, &w, m->row_of[m->t->waits[o->first_wait + i].on], start);
	if (launch)
		wait_for(m, &w, place_of(m->threads, &m->n_threads, launch->stream)->row, start);
	if (r == 0)
		r = add_waits(m, &w, m->j->n_rows, start);
	if (r == 0 && !w.n)
		r = job_add_edge(m->j, 0, m->j->n_rows, 0, start);
	m->row_of[number] = place->row = m->j->n_rows;
	return r < 0 ? r : job_add_row(m->j, &row);
}

static bool is_wanted(const struct trace_op *o)
{
	return o->kind >= TRACE_COMPUTE || (o->kind == TRACE_SYNC && o->n_waits);
}

static int add_rank(struct maker *m, const struct trace_rank *of)
{
	int r = 0;

	m->n_streams = m->n_threads = 0;
	free(m->streams);
	free(m->threads);
	m->streams = calloc((size_t)of->n + 1, sizeof(*m->streams));
	m->threads = calloc((size_t)of->n + 1, sizeof(*m->threads));
	if (!m->streams || !m->threads)
		return -ENOMEM;
	for (uint32_t i = of->first; i < of->first + of->n && r == 0; i++)
		if (is_wanted(&m->t->ops[i]))
			r = add_row(m, i);
	return r;
}

/* --- all -------------------------------------------------------------------------------------- */

/* From the first row of a step to that of the next one, at the first rank. */
static int add_steps(struct maker *m)
{
	const struct trace_rank *of = &m->t->ranks[0];
	uint32_t row = JOB_NONE, step = TRACE_NONE;
	int r = 0;

	for (uint32_t i = of->first; i < of->first + of->n && r == 0; i++) {
		const struct trace_op *o = &m->t->ops[i];

		if (m->row_of[i] == JOB_NONE || o->kind == TRACE_SYNC || o->step == TRACE_NONE ||
		    (step != TRACE_NONE && o->step <= step))
			continue;
		if (step != TRACE_NONE && o->step == step + 1)
			r = job_add_step(m->j, row, m->row_of[i]);
		row = m->row_of[i];
		step = o->step;
	}
	return r;
}

static int make(struct maker *m, const struct hop_cost *intra, const struct hop_cost *inter)
{
	const struct trace *t = m->t;
	int r;

	for (uint32_t i = 0; i < t->n_ops; i++)
		m->n_names = t->ops[i].name >= m->n_names ? t->ops[i].name + 1 : m->n_names;
	m->row_of = malloc(((size_t)t->n_ops + 1) * sizeof(*m->row_of));
	m->op_of = calloc((size_t)t->n_joins + 1, sizeof(*m->op_of));
	m->name_of = calloc((size_t)m->n_names + 1, sizeof(*m->name_of));
	if (!m->row_of || !m->op_of || !m->name_of)
		return -ENOMEM;
	memset(m->row_of, 0xff, ((size_t)t->n_ops + 1) * sizeof(*m->row_of));
	r = add_ranks(m, intra, inter);
	if (r == 0)
		r = add_comms(m);
	m->begin_ns = t->ops[0].start_ns;
	for (uint32_t i = 0; i < t->n_ops; i++)
		m->begin_ns = fmin(m->begin_ns, t->ops[i].start_ns);
	if (r == 0)
		r = job_add_row(m->j, &job_begin);
	for (uint32_t i = 0; i < t->n_ranks && r == 0; i++)
		r = add_rank(m, &t->ranks[i]);
	if (r == 0)
		r = job_find_members(m->j);
	return r < 0 ? r : add_steps(m);
}

int job_of_trace(const struct trace *t, uint32_t world, const struct hop_cost *intra,
		 const struct hop_cost *inter, struct job *ret, struct err *err)
{
	CLEANUP(job_deinit) struct job j = {.n_rows = 0};
	CLEANUP(maker_deinit)
	struct maker m = {.t = t, .j = &j, .world = world ? world : t->world, .err = err};
	int r;

	if (!t->n_ranks || !t->n_ops)
		return err_set(err, ENODATA, "the trace has no op");
	if (m.world < t->n_ranks)
		return err_set(err, EINVAL, "%u ranks are fewer than the %u that the trace has",
			       m.world, t->n_ranks);
	r = make(&m, intra, inter);
	if (r < 0)
		return err->text[0] ? r : err_set(err, -r, "out of memory");
	*ret = j;
	j = (struct job){.n_rows = 0};
	return 0;
}
