#include "predict/task.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "predict/calls.h"

/* A kernel that was launched before a collective was over, and started soon after that, on a stream
 * that was idle, waited for it. */
#define SOON_NS 50e3
#define ITERATION_OPS_MAX 64000000u /* with copies: some gigabytes */

/* Several sends and receives at once, as PyTorch's all-to-all is made of: the k-th of a
 * communicator at each rank, if they are under way at the same time. */
struct group {
	uint32_t comm, number, join;
	double start, end; /* in which all are under way */
};

struct maker {
	const struct trace *t;
	const struct task_settings *s;
	struct err *err;
	struct task *task;
	uint32_t *joins; /* owned: by the trace's joins, ours; TRACE_NONE: not in this iteration */
	uint32_t *members;    /* owned: by our joins */
	uint32_t *op_of;      /* owned: by the trace's ops, ours, of collectives */
	struct group *groups; /* owned: sends and receives at once, those of all ranks */
	uint32_t n_groups, groups_capacity, last_group;
	uint32_t *counts; /* owned: groups of the rank so far, by communicator */
	uint32_t ops_capacity, kernels_capacity, joins_capacity;
};

static bool is_exchange(const struct trace_op *op)
{
	return op->kind == TRACE_COLLECTIVE || op->kind == TRACE_SEND || op->kind == TRACE_RECV;
}

static enum predict_class class_of(const struct trace *t, const struct trace_op *op)
{
	const char *name = trace_name(t, op->name);

	if (is_exchange(op))
		return PREDICT_COLLECTIVE;
	if (op->kind == TRACE_COPY)
		return PREDICT_COPY;
	return strcasestr(name, "embedding") || strcasestr(name, "lookup") ? PREDICT_LOOKUP
									   : PREDICT_COMPUTE;
}

static int grow(void *list, uint32_t n, uint32_t *capacity, size_t bytes)
{
	uint32_t wanted = 2 * *capacity + 64;
	void *more;

	if (n < *capacity)
		return 0;
	more = realloc(*(void **)list, wanted * bytes);
	if (!more)
		return -ENOMEM;
	*(void **)list = more;
	*capacity = wanted;
	return 0;
}

static bool is_group(const struct trace_op *op)
{
	return op->kind == TRACE_COLLECTIVE && op->join == TRACE_NONE && op->comm != TRACE_NONE;
}

/* The group that @op, the rank's @number-th of its communicator, is a part of. */
static int find_group(struct maker *m, const struct trace_op *op, uint32_t number, uint32_t *ret)
{
	struct group *g;
	uint32_t i = m->last_group, tried = 0;
	int r;

	/* ranks have them in one order: it is the one behind the last */
	while (tried < m->n_groups &&
	       (m->groups[i].comm != op->comm || m->groups[i].number != number)) {
		i = (i + 1) % m->n_groups;
		tried++;
	}
	if (tried == m->n_groups) {
		i = m->n_groups;
		r = grow(&m->groups, m->n_groups, &m->groups_capacity, sizeof(*m->groups));
		if (r < 0)
			return r;
		m->groups[m->n_groups++] =
			(struct group){op->comm, number, TRACE_NONE, op->start_ns, op->end_ns};
	}
	g = &m->groups[i];
	g->start = fmax(g->start, op->start_ns);
	g->end = fmin(g->end, op->end_ns);
	*ret = m->last_group = i;
	return 0;
}

/* The number of the collective that @op is a part of. */
static int join_of(struct maker *m, const struct trace_op *op, uint32_t *ret)
{
	uint32_t *known = op->join == TRACE_NONE ? NULL : &m->joins[op->join], group;

	if (is_group(op)) {
		int r = find_group(m, op, m->counts[op->comm]++, &group);

		if (r < 0)
			return r;
		if (m->groups[group].end < m->groups[group].start)
			return err_set(
				m->err, EINVAL,
				"'%.60s' of rank %u sends and receives, but not with all others at "
				"once: nbox replay and nbox retime know messages",
				trace_name(m->t, op->name), m->t->ranks[op->rank].rank);
		known = &m->groups[group].join;
	}
	if (!known || *known == TRACE_NONE) {
		int r = grow(&m->members, m->task->t.n_joins, &m->joins_capacity,
			     sizeof(*m->members));

		if (r < 0)
			return r;
		m->members[m->task->t.n_joins] = 0;
		if (known)
			*known = m->task->t.n_joins;
		*ret = m->task->t.n_joins++;
	} else {
		*ret = *known;
	}
	m->members[*ret]++;
	return 0;
}

/* One op with kernels @first to @end of @c, the last one perhaps a collective. */
static int add_op(struct maker *m, const struct calls *c, uint32_t first, uint32_t end,
		  bool is_sync, const struct predict_host *host)
{
	struct task *task = m->task;
	struct predict_op *op;
	const uint32_t capacity = m->ops_capacity;
	uint32_t hosts_capacity = capacity;
	int r = grow(&task->ops, task->t.n_ops, &m->ops_capacity, sizeof(*task->ops));

	if (r == 0)
		r = grow(&task->hosts, task->t.n_ops, &hosts_capacity, sizeof(*task->hosts));
	if (r < 0)
		return r;
	op = &task->ops[task->t.n_ops];
	task->hosts[task->t.n_ops] = *host;
	*op = (struct predict_op){.first = task->t.n_kernels,
				  .n = end - first,
				  .join = PREDICT_NONE,
				  .after = PREDICT_NONE,
				  .is_sync = is_sync};
	for (uint32_t i = first; i < end; i++) {
		const struct trace_op *kernel = &m->t->ops[c->kernels[i]];
		uint32_t ops_capacity = m->kernels_capacity;

		r = grow(&task->kernel_ops, task->t.n_kernels, &ops_capacity,
			 sizeof(*task->kernel_ops));
		if (r == 0)
			r = grow(&task->kernels, task->t.n_kernels, &m->kernels_capacity,
				 sizeof(*task->kernels));
		if (r < 0)
			return r;
		task->kernel_ops[task->t.n_kernels] = c->kernels[i];
		task->kernels[task->t.n_kernels++] =
			(struct predict_kernel){kernel->end_ns - kernel->start_ns, kernel->name,
						class_of(m->t, kernel)};
		if (!is_exchange(kernel))
			continue;
		if (kernel->kind != TRACE_COLLECTIVE && kernel->join == TRACE_NONE)
			return err_set(
				m->err, EINVAL,
				"op %u of rank %u, '%.60s', sends or receives, and no trace has the "
				"other end: nbox replay and nbox retime know messages",
				c->kernels[i], m->t->ranks[kernel->rank].rank,
				trace_name(m->t, kernel->name));
		m->op_of[c->kernels[i]] = task->t.n_ops;
		r = join_of(m, kernel, &op->join);
		if (r < 0)
			return r;
	}
	task->t.n_ops++;
	return 0;
}

/* A collective ends an op: what the same op of the host launches behind it is another one. */
static int add_call(struct maker *m, const struct calls *c, const struct call *call)
{
	const struct trace *t = m->t;
	const uint32_t by = call->n ? t->ops[c->kernels[call->first]].launched_by : TRACE_NONE;
	struct predict_host host = {.gap = 0}, part;
	uint32_t first = call->first;
	int r = 0;

	if (call->is_of_host)
		m->task->has_host = true;
	if (call->is_of_host && m->s->overheads)
		host = overheads_of(m->s->overheads, trace_name(t, t->ops[call->op].name),
				    by == TRACE_NONE ? NULL : trace_name(t, t->ops[by].name));
	if (t->ops[call->op].kind == TRACE_SYNC)
		host.next = 0;
	part = host;
	for (uint32_t i = first; i < call->first + call->n && r == 0; i++) {
		bool is_last = i + 1 == call->first + call->n;

		if (!is_last && !is_exchange(&t->ops[c->kernels[i]]))
			continue;
		part.last = is_last ? host.last : 0;
		r = add_op(m, c, first, i + 1, is_last && call->is_sync, &part);
		part.before = 0;
		part.first = host.next;
		first = i + 1;
	}
	return r < 0 || call->n ? r : add_op(m, c, first, first, call->is_sync, &host);
}

/* What kernel @k of the trace waited for: the latest collective, ours; PREDICT_NONE: none. */
static uint32_t awaited(const struct maker *m, uint32_t k)
{
	const struct trace_op *op = &m->t->ops[k];
	uint32_t after = PREDICT_NONE;
	double end = -INFINITY;

	for (uint32_t w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
		uint32_t on = m->t->waits[w].on;

		if (m->op_of[on] == PREDICT_NONE || m->t->ops[on].end_ns <= end)
			continue;
		after = m->op_of[on];
		end = m->t->ops[on].end_ns;
	}
	return after;
}

/* The same where the trace has no waits, by when things happened. */
static uint32_t inferred(const struct maker *m, uint32_t k, uint32_t before, uint32_t comm)
{
	const struct trace_op *op = &m->t->ops[k], *c;

	if (comm == TRACE_NONE || op->launched_by == TRACE_NONE)
		return PREDICT_NONE;
	c = &m->t->ops[comm];
	return m->t->ops[op->launched_by].end_ns < c->end_ns && op->start_ns >= c->end_ns &&
			       op->start_ns < c->end_ns + SOON_NS &&
			       (before == TRACE_NONE || m->t->ops[before].end_ns <= c->end_ns)
		       ? m->op_of[comm]
		       : PREDICT_NONE;
}

static void find_waits(struct maker *m, uint32_t first_op)
{
	struct task *task = m->task;
	uint32_t before = TRACE_NONE, comm = TRACE_NONE;

	for (uint32_t i = first_op; i < task->t.n_ops; i++) {
		struct predict_op *op = &task->ops[i];

		for (uint32_t k = op->first; k < op->first + op->n; k++) {
			uint32_t kernel = task->kernel_ops[k], after;

			if (is_exchange(&m->t->ops[kernel])) {
				comm = kernel;
				continue;
			}
			after = m->t->n_waits ? awaited(m, kernel)
					      : inferred(m, kernel, before, comm);
			before = kernel;
			if (after != PREDICT_NONE && after < i &&
			    (op->after == PREDICT_NONE || after > op->after))
				op->after = after;
		}
	}
}

/* A part of what a rank's GPU did, where the trace does not know its host. */
struct piece {
	double start, end;
	uint32_t op, stream;
	bool is_exchange;
};

static int by_stream(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* A stream computes one thing at a time: where two of it overlap, both were seen to end, and it is
 * the same computation. */
static void clip(struct piece *list, uint32_t n)
{
	double end = -INFINITY;

	qsort(list, n, sizeof(*list), by_stream);
	for (uint32_t i = 0; i < n; i++) {
		struct piece *p = &list[i];

		if (i && p->stream != list[i - 1].stream)
			end = -INFINITY;
		if (p->is_exchange)
			continue;
		p->end = fmax(p->end, end);
		p->start = fmax(p->start, end);
		end = p->end;
	}
}

/* What starts first; of a collective and a computation that start together the collective, which
 * does not wait for that. */
static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->is_exchange != y->is_exchange)
		return x->is_exchange ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

/* Cuts computation where a collective starts beside it: what comes before is all that this one
 * waits for. @list: in order, with room for @capacity. Return: how many there are. */
static uint32_t cut(struct piece *list, uint32_t n, uint32_t capacity)
{
	uint32_t made = n;

	for (uint32_t i = 0; i < n; i++) {
		struct piece *p = &list[i];

		for (uint32_t k = i + 1; !p->is_exchange && k < n && list[k].start < p->end; k++) {
			if (!list[k].is_exchange || list[k].start <= p->start || made == capacity)
				continue;
			list[made++] =
				(struct piece){p->start, list[k].start, p->op, p->stream, false};
			p->start = list[k].start;
		}
	}
	qsort(list, made, sizeof(*list), by_start);
	return made;
}

static int add_pieces(struct maker *m, const struct calls *c)
{
	uint32_t capacity = 4 * c->n + 64, n = c->n;
	CLEANUP(freep) struct piece *list = malloc(capacity * sizeof(*list));
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct trace_op *op = &m->t->ops[c->list[i].op];

		list[i] = (struct piece){op->start_ns, op->end_ns, c->list[i].op, op->stream,
					 is_exchange(op)};
	}
	clip(list, n);
	qsort(list, n, sizeof(*list), by_start);
	n = cut(list, n, capacity);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct calls one = {.kernels = &list[i].op};

		r = add_op(m, &one, 0, 1, false, &(const struct predict_host){.gap = 0});
		if (r == 0)
			m->task->kernels[m->task->t.n_kernels - 1].ns = list[i].end - list[i].start;
	}
	return r;
}

/* When the last collective of an iteration is over at a rank; -INFINITY: it has none. */
static double end_of(const struct trace *t, uint32_t rank, uint32_t step)
{
	const struct trace_rank *r = &t->ranks[rank];
	double end = -INFINITY;

	for (uint32_t i = r->first; i < r->first + r->n; i++)
		if (t->ops[i].step == step && is_exchange(&t->ops[i]))
			end = fmax(end, t->ops[i].end_ns);
	return end;
}

static int add_rank(struct maker *m, uint32_t rank, uint32_t step)
{
	struct task *task = m->task;
	uint32_t first = task->t.n_ops;
	double begin = INFINITY, end = -INFINITY, before = -INFINITY;
	struct calls c;
	int r = host_calls_find(m->t, rank, step, &c);

	if (r < 0)
		return r;
	memset(m->counts, 0, m->t->n_comms * sizeof(*m->counts));
	if (c.n && !c.list[0].is_of_host)
		r = add_pieces(m, &c);
	/* It begins where the one before it ends. */
	if (c.n && !c.list[0].is_of_host && step != TRACE_NONE && step)
		before = end_of(m->t, rank, step - 1);
	for (uint32_t i = 0; i < c.n && r == 0; i++) {
		const struct call *call = &c.list[i];

		begin = fmin(begin, m->t->ops[call->op].start_ns);
		end = fmax(end, m->t->ops[call->op].end_ns);
		for (uint32_t k = call->first; k < call->first + call->n; k++)
			end = fmax(end, m->t->ops[c.kernels[k]].end_ns);
		if (c.list[0].is_of_host)
			r = add_call(m, &c, call);
	}
	host_calls_deinit(&c);
	if (r < 0)
		return r;
	find_waits(m, first);
	task->ranks[rank] = (struct predict_rank){first, task->t.n_ops - first};
	task->traced_ns = fmax(task->traced_ns, end - fmax(begin, before));
	return 0;
}

/* --- collectives, other ranks, other speeds --- */

static int set_collectives(struct maker *m, uint32_t n_copies)
{
	struct task *task = m->task;
	CLEANUP(freep) double *ns = malloc((task->t.n_joins + 1) * sizeof(*ns));
	int r = 0;

	if (!ns)
		return -ENOMEM;
	for (uint32_t j = 0; j < task->t.n_joins; j++)
		ns[j] = INFINITY;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < task->t.n_ops && r == 0; i++) {
			const struct predict_op *op = &task->ops[i];
			struct predict_kernel *k = &task->kernels[op->first + op->n - 1];

			if (op->join == PREDICT_NONE)
				continue;
			if (pass)
				k->ns = ns[op->join];
			else
				ns[op->join] = fmin(ns[op->join], k->ns);
		}
	for (uint32_t i = 0; i < task->t.n_ops && r == 0 && m->s->collective_ns; i++) {
		const struct predict_op *op = &task->ops[i];
		uint32_t k = op->first + op->n - 1;

		if (op->join == PREDICT_NONE)
			continue;
		r = m->s->collective_ns(m->s->ctx, m->t, &m->t->ops[task->kernel_ops[k]],
					m->members[op->join], n_copies, &task->kernels[k].ns,
					m->err);
	}
	return r;
}

/* Ranks of the trace again, until there are @n. Collectives of all of them are one; of others each
 * copy has its own. */
static int copy_ranks(struct maker *m, uint32_t n)
{
	struct task *task = m->task;
	uint32_t n_traced = m->t->n_ranks, n_joins = task->t.n_joins;
	uint64_t n_all = ((uint64_t)task->t.n_ops + task->t.n_kernels) * (n / n_traced + 1);
	struct predict_rank *ranks;

	if (n > n_traced && n_all > ITERATION_OPS_MAX)
		return err_set(
			m->err, EFBIG,
			"an iteration of %u ranks has more than %u million ops and kernels: copy "
			"fewer ranks",
			n, ITERATION_OPS_MAX / 1000000);
	ranks = realloc(task->ranks, n * sizeof(*ranks));
	if (!ranks)
		return -ENOMEM;
	task->ranks = ranks;
	for (uint32_t rank = n_traced; rank < n; rank++) {
		struct predict_rank from = ranks[rank % n_traced];
		uint32_t copy = rank / n_traced, first_op = task->t.n_ops;

		ranks[rank] = (struct predict_rank){first_op, from.n};
		for (uint32_t i = from.first; i < from.first + from.n; i++) {
			const struct predict_op *op = &task->ops[i];
			uint32_t hosts_capacity = m->ops_capacity, first = task->t.n_kernels;

			for (uint32_t k = op->first; k < op->first + op->n; k++) {
				uint32_t capacity = m->kernels_capacity;

				if (grow(&task->kernel_ops, task->t.n_kernels, &capacity,
					 sizeof(*task->kernel_ops)) < 0 ||
				    grow(&task->kernels, task->t.n_kernels, &m->kernels_capacity,
					 sizeof(*task->kernels)) < 0)
					return -ENOMEM;
				task->kernel_ops[task->t.n_kernels] = task->kernel_ops[k];
				task->kernels[task->t.n_kernels++] = task->kernels[k];
			}
			if (grow(&task->ops, task->t.n_ops, &m->ops_capacity, sizeof(*task->ops)) <
				    0 ||
			    grow(&task->hosts, task->t.n_ops, &hosts_capacity,
				 sizeof(*task->hosts)) < 0)
				return -ENOMEM;
			op = &task->ops[i];
			task->hosts[task->t.n_ops] = task->hosts[i];
			task->ops[task->t.n_ops] = *op;
			task->ops[task->t.n_ops].first = first;
			if (op->after != PREDICT_NONE)
				task->ops[task->t.n_ops].after = op->after - from.first + first_op;
			if (op->join != PREDICT_NONE && m->members[op->join] < n_traced)
				task->ops[task->t.n_ops].join = op->join + copy * n_joins;
			task->t.n_ops++;
		}
		task->t.n_joins = (copy + 1) * n_joins;
	}
	return 0;
}

static void scale(struct task *task, const double *scales)
{
	for (uint32_t r = 0; r < task->t.n_ranks; r++) {
		const struct predict_rank *rank = &task->ranks[r];

		for (uint32_t i = rank->first; i < rank->first + rank->n; i++)
			for (uint32_t k = task->ops[i].first;
			     k < task->ops[i].first + task->ops[i].n; k++)
				if (task->kernels[k].class != PREDICT_COLLECTIVE)
					task->kernels[k].ns *= scales[r];
	}
}

static int make(struct maker *m, uint32_t step)
{
	const struct trace *t = m->t;
	struct task *task = m->task;
	uint32_t n = m->s->n_ranks ? m->s->n_ranks : t->n_ranks;
	int r = 0;

	task->ranks = calloc(t->n_ranks + 1, sizeof(*task->ranks));
	m->joins = malloc((t->n_joins + 1) * sizeof(*m->joins));
	m->op_of = malloc((t->n_ops + 1) * sizeof(*m->op_of));
	m->counts = calloc(t->n_comms + 1, sizeof(*m->counts));
	if (!task->ranks || !m->joins || !m->op_of || !m->counts)
		return -ENOMEM;
	memset(m->joins, 0xff, t->n_joins * sizeof(*m->joins));
	memset(m->op_of, 0xff, t->n_ops * sizeof(*m->op_of));
	for (uint32_t rank = 0; rank < t->n_ranks && r == 0; rank++)
		r = add_rank(m, rank, step);
	r = r < 0 ? r : set_collectives(m, (n + t->n_ranks - 1) / t->n_ranks);
	r = r < 0 ? r : copy_ranks(m, n);
	if (r < 0)
		return r;
	task->t.ranks = task->ranks;
	task->t.ops = task->ops;
	task->t.kernels = task->kernels;
	task->t.n_ranks = n;
	for (uint32_t i = 0; i < task->t.n_ops; i++)
		task->ops[i].host = &task->hosts[i];
	if (m->s->scales)
		scale(task, m->s->scales);
	return 0;
}

void task_deinit(struct task *task)
{
	free(task->kernel_ops);
	free(task->ranks);
	free(task->ops);
	free(task->kernels);
	free(task->hosts);
}

int task_make(const struct trace *t, uint32_t step, const struct task_settings *s, struct task *ret,
	      struct err *err)
{
	struct task task = {.traced_ns = 0};
	struct maker m = {.t = t, .s = s, .err = err, .task = &task};
	int r = make(&m, step);

	free(m.joins);
	free(m.members);
	free(m.op_of);
	free(m.groups);
	free(m.counts);
	if (r < 0) {
		task_deinit(&task);
		return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
	}
	*ret = task;
	return 0;
}
