#include "predict/task.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "predict/depends.h"
#include "predict/pieces.h"
#include "schedule/coll.h"

#define ITERATION_OPS_MAX 64000000u /* with copies: some gigabytes */

/* Of a collective in this iteration. */
struct member {
	uint32_t n;     /* parts so far */
	uint32_t first; /* one: an op of the trace */
};

struct maker {
	const struct trace *t;
	const struct task_settings *s;
	struct err *err;
	struct task *task;
	const struct exchanges *x;
	const struct calls *calls;
	uint32_t *joins; /* owned: by the trace's joins, ours; TRACE_NONE: not in this iteration */
	struct member *members; /* owned: by our joins */
	uint32_t *messages;     /* owned: by the trace's messages, ours; TRACE_NONE */
	uint32_t *message_of;   /* owned: the other way */
	uint32_t *op_of;        /* owned: by the trace's ops, ours, of exchanges */
	uint32_t ops_capacity, kernels_capacity, joins_capacity, ends_capacity;
	uint32_t messages_capacity;
};

static enum predict_class class_of(const struct trace *t, const struct trace_op *op)
{
	const char *name = trace_name(t, op->name);

	if (exchange_is_one(op))
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

/* Whether sends and receives of which no more is known may be parts of one all-to-all. */
static bool are_at_once(const struct trace *t, const struct trace_op *a, const struct trace_op *b)
{
	return a->coll != COLL_SENDRECV || t->ranks[a->rank].host != t->ranks[b->rank].host ||
	       (a->start_ns <= b->end_ns && b->start_ns <= a->end_ns);
}

/* The number of the collective that the trace's op @i is a part of. */
static int join_of(struct maker *m, uint32_t i, uint32_t *ret)
{
	const struct trace_op *op = &m->t->ops[i];
	uint32_t join = m->x->joins[i], *known = join == TRACE_NONE ? NULL : &m->joins[join];

	if (!known || *known == TRACE_NONE) {
		int r = grow(&m->members, m->task->t.n_joins, &m->joins_capacity,
			     sizeof(*m->members));

		if (r < 0)
			return r;
		m->members[m->task->t.n_joins] = (struct member){0, i};
		if (known)
			*known = m->task->t.n_joins;
		*ret = m->task->t.n_joins++;
	} else {
		*ret = *known;
	}
	m->members[*ret].n++;
	if (!are_at_once(m->t, op, &m->t->ops[m->members[*ret].first]))
		return err_set(
			m->err, EINVAL,
			"'%.60s' of rank %u sends and receives, but not with all others at once, "
			"and the trace does not say with whom: a run of nbox does",
			trace_name(m->t, op->name), m->t->ranks[op->rank].rank);
	return 0;
}

/* The ends of the trace's op @i that have another end. */
static int add_ends(struct maker *m, uint32_t i, struct predict_op *op)
{
	struct task *task = m->task;

	op->first_end = task->t.n_ends;
	for (uint32_t e = m->x->first_end[i]; e < m->x->first_end[i + 1]; e++) {
		const struct exchange_end *end = &m->x->ends[e];
		const struct exchange_message *message = &m->x->messages[end->message];
		uint32_t *known = &m->messages[end->message], capacity = m->messages_capacity;
		int r = 0;

		if (isnan(message->ns))
			continue;
		if (*known == TRACE_NONE) {
			r = grow(&m->message_of, task->t.n_messages, &capacity,
				 sizeof(*m->message_of));
			if (r == 0)
				r = grow(&task->messages, task->t.n_messages, &m->messages_capacity,
					 sizeof(*task->messages));
			if (r < 0)
				return r;
			*known = task->t.n_messages++;
			m->message_of[*known] = end->message;
			task->messages[*known] =
				(struct predict_message){message->ns, exchange_taken(message)};
		}
		r = grow(&task->ends, task->t.n_ends, &m->ends_capacity, sizeof(*task->ends));
		if (r < 0)
			return r;
		task->ends[task->t.n_ends++] = (struct predict_end){*known, end->is_send};
	}
	op->n_ends = task->t.n_ends - op->first_end;
	return 0;
}

/* Its last kernel, the trace's op @i, is an exchange. */
static int add_exchange(struct maker *m, uint32_t i, struct predict_op *op)
{
	uint32_t n = m->x->first_end[i + 1] - m->x->first_end[i];
	int r = add_ends(m, i, op);

	if (r == 0 && !op->n_ends)
		return join_of(m, i, &op->join);
	if (op->n_ends == n) /* else the ranks without a trace take what they took */
		m->task->kernels[m->task->t.n_kernels - 1].ns = 0;
	return r;
}

/* Kernels @i and @k of @c have one launch, as those of a graph. */
static bool is_one_launch(const struct maker *m, const struct calls *c, uint32_t i, uint32_t k)
{
	uint32_t by = m->t->ops[c->kernels[i]].launched_by;

	return by != TRACE_NONE && by == m->t->ops[c->kernels[k]].launched_by;
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
						class_of(m->t, kernel),
						i + 1 < end && is_one_launch(m, c, i, i + 1)};
		if (!exchange_is_one(kernel))
			continue;
		m->op_of[c->kernels[i]] = task->t.n_ops;
		r = add_exchange(m, c->kernels[i], op);
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

		if (!is_last && !exchange_is_one(&t->ops[c->kernels[i]]))
			continue;
		part.last = is_last ? host.last : 0;
		if (first > call->first && is_one_launch(m, c, first - 1, i))
			part.first = part.launch = 0;
		r = add_op(m, c, first, i + 1, is_last && call->is_sync, &part);
		part.before = 0;
		part.first = host.next;
		part.launch = host.launch;
		first = i + 1;
	}
	return r < 0 || call->n ? r : add_op(m, c, first, first, call->is_sync, &host);
}

/* @begin: of the iteration at this rank; -INFINITY: not known. */
static int add_pieces(struct maker *m, const struct calls *c, double begin)
{
	uint32_t capacity = 4 * c->n + 64, n = c->n;
	CLEANUP(freep) struct piece *list = malloc(capacity * sizeof(*list));
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct trace_op *op = &m->t->ops[c->list[i].op];

		list[i] = (struct piece){fmax(op->start_ns, begin), fmax(op->end_ns, begin),
					 c->list[i].op, op->stream, exchange_is_one(op)};
	}
	n = pieces_cut(list, n, capacity);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct calls one = {.kernels = &list[i].op};

		r = add_op(m, &one, 0, 1, false, &(const struct predict_host){.gap = 0});
		if (r == 0 && !list[i].is_exchange)
			m->task->kernels[m->task->t.n_kernels - 1].ns = list[i].end - list[i].start;
	}
	return r;
}

/* What the rank did in iteration @step, which begins there at @before where the trace does not know
 * its host. *ret_begin, *ret_end: of all that. */
static int add_step(struct maker *m, uint32_t rank, uint32_t step, double before, double *ret_begin,
		    double *ret_end)
{
	const struct calls c = host_calls_of_step(m->t, &m->calls[rank], step);
	int r = 0;

	if (c.n && !c.list[0].is_of_host)
		r = add_pieces(m, &c, before);
	for (uint32_t i = 0; i < c.n && r == 0; i++) {
		const struct call *call = &c.list[i];

		*ret_begin = fmin(*ret_begin, m->t->ops[call->op].start_ns);
		*ret_end = fmax(*ret_end, m->t->ops[call->op].end_ns);
		for (uint32_t k = call->first; k < call->first + call->n; k++)
			*ret_end = fmax(*ret_end, m->t->ops[c.kernels[k]].end_ns);
		if (c.list[0].is_of_host)
			r = add_call(m, &c, call);
	}
	return r;
}

static bool has_host(const struct trace *t, uint32_t rank)
{
	const struct trace_rank *r = &t->ranks[rank];

	for (uint32_t i = r->first; i < r->first + r->n; i++)
		if (t->ops[i].kind == TRACE_HOST || t->ops[i].kind == TRACE_CALL)
			return true;
	return false;
}

/* Where hosts are not known an iteration begins where the one before it ends, which leads in, and
 * the first one as the trace does. */
static int add_rank(struct maker *m, uint32_t rank, uint32_t step)
{
	struct task *task = m->task;
	struct predict_rank *to = &task->ranks[rank];
	double begin = INFINITY, first = INFINITY, end = -INFINITY, before = -INFINITY;
	double lead = -INFINITY;
	bool is_hostless = !has_host(m->t, rank);
	struct depends_of of;
	int r = 0;

	*to = (struct predict_rank){.first = task->t.n_ops};
	if (step != TRACE_NONE && step > 0 && !is_hostless)
		before = host_calls_end(&m->calls[rank], step - 1).all;
	if (step != TRACE_NONE && step > 1 && is_hostless) {
		before = host_calls_end(&m->calls[rank], step - 1).exchanges;
		lead = host_calls_end(&m->calls[rank], step - 2).exchanges;
		r = add_step(m, rank, step - 1, lead, &first, &end);
		to->n_lead = task->t.n_ops - to->first;
	}
	r = r < 0 ? r : add_step(m, rank, step, -INFINITY, &begin, &end);
	if (r < 0)
		return r;
	to->n = task->t.n_ops - to->first;
	if (is_hostless && to->n)
		to->begin = lead > -INFINITY ? lead : fmin(first, begin);
	of = (struct depends_of){m->t,      m->op_of,  task->kernel_ops,
				 task->ops, to->first, to->first + to->n};
	depends_find(&of);
	task->traced_ns = fmax(task->traced_ns, end - fmax(begin, before));
	return depends_find_queues(&of);
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
					m->members[op->join].n, n_copies, &task->kernels[k].ns,
					m->err);
	}
	return r;
}

static int set_messages(struct maker *m)
{
	struct task *task = m->task;
	int r = 0;

	for (uint32_t i = 0; i < task->t.n_messages && r == 0 && m->s->message_ns; i++)
		r = m->s->message_ns(m->s->ctx, &m->x->messages[m->message_of[i]],
				     &task->messages[i].ns, m->err);
	return r;
}

static int copy_ends(struct maker *m, struct predict_op *op, uint32_t n_messages)
{
	struct task *task = m->task;
	uint32_t from = op->first_end;

	op->first_end = task->t.n_ends;
	for (uint32_t e = from; e < from + op->n_ends; e++) {
		if (grow(&task->ends, task->t.n_ends, &m->ends_capacity, sizeof(*task->ends)) < 0)
			return -ENOMEM;
		task->ends[task->t.n_ends] = task->ends[e];
		task->ends[task->t.n_ends++].message += n_messages;
	}
	return 0;
}

/* Those of the @copy-th copy, once. */
static int copy_messages(struct maker *m, uint32_t n, uint32_t copy)
{
	struct task *task = m->task;

	for (uint32_t i = task->t.n_messages; i < (copy + 1) * n; i++) {
		if (grow(&task->messages, i, &m->messages_capacity, sizeof(*task->messages)) < 0)
			return -ENOMEM;
		task->messages[i] = task->messages[i - n];
		task->t.n_messages++;
	}
	return 0;
}

/* Ranks of the trace again, until there are @n. Collectives of all of them are one; of others each
 * copy has its own, as of messages. */
static int copy_ranks(struct maker *m, uint32_t n)
{
	struct task *task = m->task;
	uint32_t n_traced = m->t->n_ranks, n_joins = task->t.n_joins;
	uint32_t n_messages = task->t.n_messages;
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

		ranks[rank] = (struct predict_rank){first_op, from.n, from.n_lead, from.begin};
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
			if (op->join != PREDICT_NONE && m->members[op->join].n < n_traced)
				task->ops[task->t.n_ops].join = op->join + copy * n_joins;
			if (copy_ends(m, &task->ops[task->t.n_ops], copy * n_messages) < 0)
				return -ENOMEM;
			task->t.n_ops++;
		}
		task->t.n_joins = (copy + 1) * n_joins;
		if (copy_messages(m, n_messages, copy) < 0)
			return -ENOMEM;
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

/* From when the first rank begins. */
static void count_begins(struct task *task, uint32_t n)
{
	double first = INFINITY;

	for (uint32_t r = 0; r < n; r++)
		first = task->ranks[r].n ? fmin(first, task->ranks[r].begin) : first;
	for (uint32_t r = 0; r < n; r++)
		task->ranks[r].begin -= task->ranks[r].n ? first : 0;
}

static int make(struct maker *m, uint32_t step)
{
	const struct trace *t = m->t;
	struct task *task = m->task;
	uint32_t n = m->s->n_ranks ? m->s->n_ranks : t->n_ranks;
	int r = 0;

	task->ranks = calloc(t->n_ranks + 1, sizeof(*task->ranks));
	m->joins = malloc((m->x->n_joins + (size_t)1) * sizeof(*m->joins));
	m->messages = malloc((m->x->n_messages + (size_t)1) * sizeof(*m->messages));
	m->op_of = malloc((t->n_ops + 1) * sizeof(*m->op_of));
	if (!task->ranks || !m->joins || !m->messages || !m->op_of)
		return -ENOMEM;
	memset(m->joins, 0xff, m->x->n_joins * sizeof(*m->joins));
	memset(m->messages, 0xff, m->x->n_messages * sizeof(*m->messages));
	memset(m->op_of, 0xff, t->n_ops * sizeof(*m->op_of));
	for (uint32_t rank = 0; rank < t->n_ranks && r == 0; rank++)
		r = add_rank(m, rank, step);
	count_begins(task, t->n_ranks);
	r = r < 0 ? r : set_collectives(m, (n + t->n_ranks - 1) / t->n_ranks);
	r = r < 0 ? r : set_messages(m);
	r = r < 0 ? r : copy_ranks(m, n);
	if (r < 0)
		return r;
	task->t.ranks = task->ranks;
	task->t.ops = task->ops;
	task->t.kernels = task->kernels;
	task->t.ends = task->ends;
	task->t.messages = task->messages;
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
	free(task->ends);
	free(task->messages);
	free(task->hosts);
}

int task_make(const struct trace *t, const struct exchanges *x, const struct calls *calls,
	      uint32_t step, const struct task_settings *s, struct task *ret, struct err *err)
{
	struct task task = {.traced_ns = 0};
	struct maker m = {.t = t, .x = x, .calls = calls, .s = s, .err = err, .task = &task};
	int r = make(&m, step);

	free(m.joins);
	free(m.members);
	free(m.messages);
	free(m.message_of);
	free(m.op_of);
	if (r < 0) {
		task_deinit(&task);
		return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
	}
	*ret = task;
	return 0;
}
