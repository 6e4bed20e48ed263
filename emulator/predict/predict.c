#include "predict/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const char *const predict_class_names[PREDICT_CLASSES] = {"lookup", "compute", "copy",
							  "collective"};

/* One rank under way. */
struct walk {
	uint32_t next;      /* op */
	uint32_t last_comm; /* the paper's last_comm: an op; PREDICT_NONE */
	uint32_t blocked;   /* its op that has to be over before it goes on; PREDICT_NONE */
};

struct join {
	double start, end;
	uint32_t missing;
	uint32_t waiting;   /* the first op in it; PREDICT_NONE */
	uint32_t by_kernel; /* that of the rank that decides */
};

/* A rank's op in an exchange. */
struct part {
	bool is_over;
	uint32_t before;  /* op before it in its queue; PREDICT_NONE */
	uint32_t next;    /* op that waits in the same collective */
	uint32_t missing; /* messages that it needs the other end of */
};

struct span {
	double begin, end;
};

struct player {
	const struct predict_task *t;
	enum predict_sync sync;
	struct predict *p;
	struct walk *walks; /* owned, as those below */
	struct join *joins;
	struct part *parts;       /* by op */
	uint32_t *came;           /* by message: ops that have come, the receiver and the sender */
	uint32_t *ready, n_ready; /* ranks that can go on */
	struct span *list;        /* as many as a rank has ops */
};

/* The later of two, and what it is of. */
static void meet(double *at, uint32_t *by, double other, uint32_t other_by)
{
	if (other > *at) {
		*at = other;
		*by = other_by;
	}
}

/* What kernel @k of @rank can begin after: a stream's @front, or the launch. */
static void begin(struct player *y, uint32_t rank, uint32_t k, double front, uint32_t front_by,
		  const struct predict_host *h)
{
	struct predict_front *f = &y->p->ranks[rank];
	struct predict_time *time = &y->p->kernels[k];
	double launched = f->host + h->launch / 2;

	time->rank = rank;
	time->host = f->host;
	time->host_by = f->host_by;
	time->by = time->peer = PREDICT_NONE;
	time->ready = launched;
	/* A stream that has done nothing has a gap, too, as in the paper. */
	meet(&time->ready, &time->by, front + h->gap, front_by);
}

static void compute(struct player *y, uint32_t rank, uint32_t op, uint32_t k)
{
	struct predict_front *f = &y->p->ranks[rank];
	struct predict_time *time = &y->p->kernels[k];

	begin(y, rank, k, f->compute, f->compute_by, y->t->ops[op].host);
	time->op = op;
	time->start = time->ready;
	time->end = time->start + y->t->kernels[k].ns;
	f->compute = time->end;
	f->compute_by = k;
}

/* The host has done with @op. */
static void finish(struct player *y, uint32_t rank, const struct predict_op *op)
{
	struct predict_front *f = &y->p->ranks[rank];

	f->host += op->n ? op->host->last : 0;
	if (op->is_sync && f->compute > f->host) {
		f->host = f->compute;
		f->host_by = f->compute_by;
	}
}

/* --- exchanges ----------------------------------------------------------------------- */

/* Op @i is over. @decider: the kernel from whose arrival on it took so long. */
static void end_part(struct player *y, uint32_t i, double start, double end, uint32_t decider)
{
	uint32_t k = predict_kernel_of(&y->t->ops[i]);
	struct predict_time *time = &y->p->kernels[k];
	struct predict_front *f = &y->p->ranks[time->rank];
	struct walk *w = &y->walks[time->rank];

	time->start = start;
	time->end = end;
	time->peer = decider == k ? PREDICT_NONE : decider;
	if (end >= f->comm) {
		f->comm = end;
		f->comm_by = k;
	}
	y->parts[i].is_over = true;
	if (w->blocked == i) {
		w->blocked = PREDICT_NONE;
		y->ready[y->n_ready++] = time->rank;
	}
}

static void join_in(struct player *y, uint32_t i)
{
	const struct predict_op *op = &y->t->ops[i];
	uint32_t k = predict_kernel_of(op);
	struct join *join = &y->joins[op->join];
	double ns = y->t->kernels[k].ns;
	const struct predict_time *time = &y->p->kernels[k];

	if (y->sync == PREDICT_PAPER) {
		meet(&join->end, &join->by_kernel, time->ready + ns, k);
	} else {
		meet(&join->start, &join->by_kernel, time->ready, k);
		join->end = fmax(join->end, ns); /* for now: how long */
	}
	y->parts[i].next = join->waiting;
	join->waiting = i;
	if (--join->missing)
		return;
	if (y->sync == PREDICT_EVENT)
		join->end += join->start;
	for (i = join->waiting; i != PREDICT_NONE; i = y->parts[i].next) {
		time = &y->p->kernels[predict_kernel_of(&y->t->ops[i])];
		end_part(y, i, y->sync == PREDICT_EVENT ? join->start : time->ready, join->end,
			 join->by_kernel);
	}
}

/* When an end of @m is over whose rank came at @own, the other one's at @peer; as
 * op/rule-p2p.c. *ret_by_peer: it is the later for that one. */
static double message_end(const struct predict_message *m, bool is_send, double own, double peer,
			  bool *ret_by_peer)
{
	double rest = 1 - m->taken, begin = is_send ? own : peer;
	double handed = begin + fmin(m->taken, is_send ? rest : 1) * m->ns;

	if (is_send && rest <= 0) {
		*ret_by_peer = false;
		return own;
	}
	*ret_by_peer = is_send ? peer > handed : handed > own;
	if (is_send)
		return fmax(peer, handed) + fmax(0, rest - m->taken) * m->ns;
	return fmax(own, handed) + rest * m->ns;
}

/* All that @i needs has come. */
static void end_messages(struct player *y, uint32_t i)
{
	const struct predict_op *op = &y->t->ops[i];
	uint32_t k = predict_kernel_of(op), decider = k;
	double own = y->p->kernels[k].ready, start = own, end = own + y->t->kernels[k].ns;

	for (uint32_t e = op->first_end; e < op->first_end + op->n_ends; e++) {
		const struct predict_end *it = &y->t->ends[e];
		uint32_t other = y->came[2 * (size_t)it->message + !it->is_send], peer = k;
		bool is_by_peer;
		double over;

		if (other != PREDICT_NONE)
			peer = predict_kernel_of(&y->t->ops[other]);
		over = message_end(&y->t->messages[it->message], it->is_send, own,
				   y->p->kernels[peer].ready, &is_by_peer);
		if (over <= end)
			continue;
		end = over;
		decider = is_by_peer ? peer : k;
		start = fmax(own, y->p->kernels[decider].ready);
	}
	end_part(y, i, start, end, decider);
}

static bool needs_other(const struct player *y, const struct predict_end *e)
{
	return !e->is_send || y->t->messages[e->message].taken < 1;
}

static void come_to_messages(struct player *y, uint32_t i)
{
	const struct predict_op *op = &y->t->ops[i];

	for (uint32_t e = op->first_end; e < op->first_end + op->n_ends; e++) {
		const struct predict_end *it = &y->t->ends[e];
		uint32_t *came = &y->came[2 * (size_t)it->message], other = came[!it->is_send];
		const struct predict_end its = {it->message, !it->is_send};

		came[it->is_send] = i;
		if (other == PREDICT_NONE)
			y->parts[i].missing += needs_other(y, it);
		else if (needs_other(y, &its) && !--y->parts[other].missing)
			end_messages(y, other);
	}
	if (!y->parts[i].missing)
		end_messages(y, i);
}

/* Without computation. */
static bool is_alone(const struct predict_op *op)
{
	return predict_is_exchange(op) && op->n == 1;
}

/* As meet(), the end of the exchange @i; PREDICT_NONE: there is none. */
static void meet_exchange(const struct player *y, double *at, uint32_t *by, uint32_t i)
{
	if (i != PREDICT_NONE)
		meet(at, by, y->p->kernels[predict_kernel_of(&y->t->ops[i])].end,
		     predict_kernel_of(&y->t->ops[i]));
}

/* @rank has come to its exchange @i, behind its other kernels. */
static void arrive(struct player *y, uint32_t rank, uint32_t i)
{
	const struct predict_op *op = &y->t->ops[i];
	struct predict_front *f = &y->p->ranks[rank];
	uint32_t k = predict_kernel_of(op), by = PREDICT_NONE;
	double front = 0;

	if (y->sync == PREDICT_PAPER)
		meet(&front, &by, f->comm, f->comm_by);
	else
		meet_exchange(y, &front, &by, y->parts[i].before);
	if (y->sync == PREDICT_EVENT && is_alone(op))
		meet_exchange(y, &front, &by, op->after);
	meet(&front, &by, f->compute, f->compute_by);
	begin(y, rank, k, front, by, op->host);
	y->p->kernels[k].op = i;
	f->host += op->host->launch;
	if (y->sync == PREDICT_PAPER) {
		f->compute = front;
		f->compute_by = by;
	}
	finish(y, rank, op);
	y->walks[rank].last_comm = i;
	if (op->join != PREDICT_NONE)
		join_in(y, i);
	else
		come_to_messages(y, i);
}

/* --- a rank -------------------------------------------------------------------------- */

/* Before @op its rank's computation waits for what it reads. */
static void await(struct player *y, uint32_t rank, const struct predict_op *op)
{
	struct predict_front *f = &y->p->ranks[rank];
	struct walk *w = &y->walks[rank];

	if (op->after == PREDICT_NONE)
		return;
	if (y->sync == PREDICT_EVENT) {
		if (!is_alone(op))
			meet_exchange(y, &f->compute, &f->compute_by, op->after);
	} else if (w->last_comm == op->after) {
		w->last_comm = PREDICT_NONE;
		meet(&f->compute, &f->compute_by, f->comm, f->comm_by);
		meet(&f->comm, &f->comm_by, f->compute, f->compute_by);
	}
}

/* The exchange that has to be over before the rank goes on with op @i; PREDICT_NONE: none. */
static uint32_t blocker(const struct player *y, uint32_t i)
{
	const struct predict_op *op = &y->t->ops[i];
	uint32_t before = y->parts[i].before;

	if (y->sync == PREDICT_PAPER) /* it has waited in each */
		return PREDICT_NONE;
	if (op->after != PREDICT_NONE && !y->parts[op->after].is_over)
		return op->after;
	if (predict_is_exchange(op) && before != PREDICT_NONE && !y->parts[before].is_over)
		return before;
	return PREDICT_NONE;
}

/* Until its ops are over, or it cannot know when the next one begins. */
static void go_on(struct player *y, uint32_t rank)
{
	const struct predict_rank *r = &y->t->ranks[rank];
	struct predict_front *f = &y->p->ranks[rank];
	struct walk *w = &y->walks[rank];

	while (w->next < r->first + r->n) {
		uint32_t i = w->next;
		const struct predict_op *op = &y->t->ops[i];
		bool is_exchange = predict_is_exchange(op);

		w->blocked = blocker(y, i);
		if (w->blocked != PREDICT_NONE)
			return;
		await(y, rank, op);
		f->host += op->host->before + (op->n ? op->host->first : op->host->next);
		for (uint32_t k = op->first; k < op->first + op->n - is_exchange; k++) {
			compute(y, rank, i, k);
			if (y->t->kernels[k].is_with_next)
				continue;
			f->host += op->host->launch;
			f->host += k + 1 < op->first + op->n ? op->host->next : 0;
		}
		w->next++;
		if (!is_exchange) {
			finish(y, rank, op);
			continue;
		}
		arrive(y, rank, i);
		if (y->sync == PREDICT_PAPER && !y->parts[i].is_over) {
			w->blocked = i;
			return;
		}
	}
}

/* --- what it comes to ---------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* When its lead is over. */
static double begin_of(const struct player *y, uint32_t rank)
{
	const struct predict_rank *r = &y->t->ranks[rank];
	double begin = r->begin;

	for (uint32_t i = r->first; i < r->first + r->n_lead; i++)
		for (uint32_t k = y->t->ops[i].first; k < y->t->ops[i].first + y->t->ops[i].n; k++)
			begin = fmax(begin, y->p->kernels[k].end);
	return begin;
}

/* When the rank is in exchanges, from when it was there, as a profiler shows it, but each time
 * once. */
static uint32_t list_spans(struct player *y, uint32_t rank)
{
	const struct predict_rank *r = &y->t->ranks[rank];
	struct span *list = y->list;
	double until = -INFINITY;
	uint32_t n = 0;

	for (uint32_t i = r->first + r->n_lead; i < r->first + r->n; i++) {
		const struct predict_time *time;

		if (!predict_is_exchange(&y->t->ops[i]))
			continue;
		time = &y->p->kernels[predict_kernel_of(&y->t->ops[i])];
		list[n++] = (struct span){time->ready, time->end};
	}
	qsort(list, n, sizeof(*list), by_begin);
	for (uint32_t i = 0; i < n; i++) {
		list[i].begin = fmax(list[i].begin, until);
		list[i].end = until = fmax(list[i].end, until);
	}
	return n;
}

/* How long one stream's kernels take, and both together. */
static void measure(struct player *y, uint32_t rank)
{
	const struct predict_rank *r = &y->t->ranks[rank];
	struct predict_front *f = &y->p->ranks[rank];
	const struct predict_kernel *kernels = y->t->kernels;
	const struct predict_time *times = y->p->kernels;
	double compute_sum = 0, overlap = 0, comm_sum = 0;
	uint32_t end = 0, at = 0, n = list_spans(y, rank);

	/* Kernels of both streams in their order; a rank's kernels stand together. */
	if (r->n > r->n_lead) {
		at = y->t->ops[r->first + r->n_lead].first;
		end = y->t->ops[r->first + r->n - 1].first + y->t->ops[r->first + r->n - 1].n;
	}
	for (uint32_t k = at; k < end; k++) /* what began beside the lead's last exchange in part */
		f->sum[kernels[k].class] +=
			kernels[k].class == PREDICT_COLLECTIVE || times[k].start >= f->begin
				? kernels[k].ns
				: fmax(0, times[k].end - f->begin);
	for (int kind = 0; kind < PREDICT_COLLECTIVE; kind++)
		compute_sum += f->sum[kind];
	y->p->baseline = fmax(y->p->baseline, fmax(compute_sum, f->sum[PREDICT_COLLECTIVE]));
	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = &y->list[i];

		comm_sum += span->end - span->begin;
		while (at < end &&
		       (kernels[at].class == PREDICT_COLLECTIVE || times[at].end <= span->begin))
			at++;
		for (uint32_t k = at; k < end && (kernels[k].class == PREDICT_COLLECTIVE ||
						  times[k].start < span->end);
		     k++)
			if (kernels[k].class != PREDICT_COLLECTIVE)
				overlap += fmin(times[k].end, span->end) -
					   fmax(times[k].start, span->begin);
	}
	f->exposed = comm_sum - overlap;
	f->active = compute_sum + f->exposed;
}

void predict_deinit(struct predict *p)
{
	free(p->ranks);
	free(p->kernels);
}

/* Which exchange each one follows in its queue. */
static int find_queues(struct player *y)
{
	const struct predict_task *t = y->t;
	CLEANUP(freep) uint32_t *last = NULL;
	uint32_t n = 1;

	for (uint32_t i = 0; i < t->n_ops; i++)
		n = t->ops[i].queue >= n ? t->ops[i].queue + 1 : n;
	last = malloc(n * sizeof(*last));
	if (!last)
		return -ENOMEM;
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		memset(last, 0xff, n * sizeof(*last));
		for (uint32_t i = t->ranks[r].first; i < t->ranks[r].first + t->ranks[r].n; i++) {
			y->parts[i].before = last[t->ops[i].queue];
			if (predict_is_exchange(&t->ops[i]))
				last[t->ops[i].queue] = i;
		}
	}
	return 0;
}

static void prepare(struct player *y)
{
	const struct predict_task *t = y->t;

	for (uint32_t j = 0; j < t->n_joins; j++)
		y->joins[j] = (struct join){.waiting = PREDICT_NONE,
					    .by_kernel = PREDICT_NONE,
					    .start = -1,
					    .end = -1};
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].join != PREDICT_NONE)
			y->joins[t->ops[i].join].missing++;
	for (size_t m = 0; m < 2 * (size_t)t->n_messages; m++)
		y->came[m] = PREDICT_NONE;
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		y->walks[r] = (struct walk){t->ranks[r].first, PREDICT_NONE, PREDICT_NONE};
		y->p->ranks[r] = (struct predict_front){.host = t->ranks[r].begin,
							.compute = t->ranks[r].begin,
							.comm = t->ranks[r].begin,
							.host_by = PREDICT_NONE,
							.compute_by = PREDICT_NONE,
							.comm_by = PREDICT_NONE};
		y->ready[y->n_ready++] = t->n_ranks - 1 - r;
	}
}

static int play(struct player *y, uint32_t *ret_op)
{
	const struct predict_task *t = y->t;

	if (find_queues(y) < 0)
		return -ENOMEM;
	prepare(y);
	while (y->n_ready)
		go_on(y, y->ready[--y->n_ready]);
	for (uint32_t i = 0; i < t->n_ops; i++)
		if (predict_is_exchange(&t->ops[i]) && !y->parts[i].is_over) {
			*ret_op = i;
			return -ELOOP;
		}
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		struct predict_front *f = &y->p->ranks[r];
		double ns;

		f->begin = begin_of(y, r);
		f->host = fmax(0, f->host - f->begin);
		f->compute = fmax(0, f->compute - f->begin);
		f->comm = fmax(0, f->comm - f->begin);
		ns = fmax(fmax(f->host, f->compute), f->comm);
		measure(y, r);
		if (ns > y->p->ns || !r) {
			y->p->ns = ns;
			y->p->last = r;
		}
	}
	return 0;
}

int predict_play(const struct predict_task *t, enum predict_sync sync, struct predict *ret,
		 uint32_t *ret_op)
{
	struct predict p = {.ranks = calloc(t->n_ranks + 1, sizeof(*p.ranks)),
			    .kernels = calloc((size_t)t->n_kernels + 1, sizeof(*p.kernels))};
	CLEANUP(freep) struct walk *walks = calloc(t->n_ranks + 1, sizeof(*walks));
	CLEANUP(freep) struct join *joins = calloc((size_t)t->n_joins + 1, sizeof(*joins));
	CLEANUP(freep) struct part *parts = calloc((size_t)t->n_ops + 1, sizeof(*parts));
	CLEANUP(freep) uint32_t *came = malloc((2 * (size_t)t->n_messages + 1) * sizeof(*came));
	CLEANUP(freep) uint32_t *ready = calloc(t->n_ranks + 1, sizeof(*ready));
	CLEANUP(freep) struct span *list = malloc(((size_t)t->n_ops + 1) * sizeof(*list));
	struct player y = {.t = t,
			   .sync = sync,
			   .p = &p,
			   .walks = walks,
			   .joins = joins,
			   .parts = parts,
			   .came = came,
			   .ready = ready,
			   .list = list};
	int r = -ENOMEM;

	if (p.ranks && p.kernels && walks && joins && parts && came && ready && list)
		r = play(&y, ret_op);
	if (r < 0)
		predict_deinit(&p);
	else
		*ret = p;
	return r;
}
