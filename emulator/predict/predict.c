#include "predict/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

const char *const predict_class_names[PREDICT_CLASSES] = {"lookup", "compute", "copy",
							  "collective"};

/* One rank under way. */
struct walk {
	uint32_t next;      /* op */
	uint32_t last_comm; /* the paper's last_comm: an op; PREDICT_NONE */
	uint32_t waiting;   /* the next rank that waits in the same collective */
};

struct join {
	double start, end;
	uint32_t missing;
	uint32_t waiting;   /* the first rank in it; PREDICT_NONE */
	uint32_t by_kernel; /* that of the rank that decides */
};

struct player {
	const struct predict_task *t;
	enum predict_sync sync;
	struct predict *p;
	struct walk *walks; /* owned, as those below */
	struct join *joins;
	uint32_t *ready, n_ready; /* ranks that can go on */
};

static const struct predict_kernel *kernel_of(const struct predict_task *t,
					      const struct predict_op *op)
{
	return &t->kernels[op->first + op->n - 1];
}

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
	time->by = PREDICT_NONE;
	time->ready = launched;
	/* A stream that has done nothing has a gap, too, as in the paper. */
	meet(&time->ready, &time->by, front + h->gap, front_by);
	f->sum[y->t->kernels[k].class] += y->t->kernels[k].ns;
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

/* @rank has come to its part of a collective, behind its other kernels. */
static void arrive(struct player *y, uint32_t rank, uint32_t i)
{
	const struct predict_op *op = &y->t->ops[i];
	struct predict_front *f = &y->p->ranks[rank];
	uint32_t k = op->first + op->n - 1, by = f->comm_by;
	struct join *join = &y->joins[op->join];
	double front = f->comm;

	meet(&front, &by, f->compute, f->compute_by);
	begin(y, rank, k, front, by, op->host);
	y->p->kernels[k].op = i;
	f->host += op->host->launch;
	if (y->sync == PREDICT_PAPER) {
		f->compute = front;
		f->compute_by = by;
		meet(&join->end, &join->by_kernel, y->p->kernels[k].ready + kernel_of(y->t, op)->ns,
		     k);
	} else {
		meet(&join->start, &join->by_kernel, y->p->kernels[k].ready, k);
		join->end = fmax(join->end, kernel_of(y->t, op)->ns); /* for now: how long */
	}
	y->walks[rank].waiting = join->waiting;
	join->waiting = rank;
	join->missing--;
}

/* All have come. */
static void complete(struct player *y, struct join *join)
{
	if (y->sync == PREDICT_EVENT)
		join->end += join->start;
	for (uint32_t rank = join->waiting; rank != PREDICT_NONE; rank = y->walks[rank].waiting) {
		struct walk *w = &y->walks[rank];
		const struct predict_op *op = &y->t->ops[w->next];
		uint32_t k = op->first + op->n - 1;
		struct predict_time *time = &y->p->kernels[k];
		struct predict_front *f = &y->p->ranks[rank];

		time->start = y->sync == PREDICT_EVENT ? join->start : time->ready;
		time->end = join->end;
		f->comm = join->end;
		f->comm_by = k;
		if (join->by_kernel != k)
			time->by = join->by_kernel;
		finish(y, rank, op);
		w->last_comm = w->next++;
		y->ready[y->n_ready++] = rank;
	}
}

/* Before @op its rank's computation waits for what it reads. */
static void await(struct player *y, uint32_t rank, const struct predict_op *op)
{
	struct predict_front *f = &y->p->ranks[rank];
	struct walk *w = &y->walks[rank];

	if (op->after == PREDICT_NONE)
		return;
	if (y->sync == PREDICT_EVENT) {
		const struct predict_op *before = &y->t->ops[op->after];
		uint32_t k = before->first + before->n - 1;

		meet(&f->compute, &f->compute_by, y->p->kernels[k].end, k);
	} else if (w->last_comm == op->after) {
		w->last_comm = PREDICT_NONE;
		meet(&f->compute, &f->compute_by, f->comm, f->comm_by);
		meet(&f->comm, &f->comm_by, f->compute, f->compute_by);
	}
}

/* Until its ops are over, or it waits in a collective. */
static void go_on(struct player *y, uint32_t rank)
{
	const struct predict_rank *r = &y->t->ranks[rank];
	struct walk *w = &y->walks[rank];

	for (; w->next < r->first + r->n; w->next++) {
		const struct predict_op *op = &y->t->ops[w->next];
		struct predict_front *f = &y->p->ranks[rank];
		bool is_join = op->join != PREDICT_NONE;

		await(y, rank, op);
		f->host += op->host->before + (op->n ? op->host->first : op->host->next);
		for (uint32_t k = op->first; k < op->first + op->n - is_join; k++) {
			compute(y, rank, w->next, k);
			f->host += op->host->launch;
			f->host += k + 1 < op->first + op->n ? op->host->next : 0;
		}
		if (is_join) {
			struct join *join = &y->joins[op->join];

			arrive(y, rank, w->next);
			if (!join->missing)
				complete(y, join);
			return;
		}
		finish(y, rank, op);
	}
}

/* How long one stream's kernels take, and both together. */
static void measure(struct player *y, uint32_t rank)
{
	const struct predict_rank *r = &y->t->ranks[rank];
	struct predict_front *f = &y->p->ranks[rank];
	double compute_sum = 0, overlap = 0, comm_sum = 0;
	uint32_t c = r->first, compute_end = 0, compute_at = 0;

	for (int kind = 0; kind < PREDICT_COLLECTIVE; kind++)
		compute_sum += f->sum[kind];
	y->p->baseline = fmax(y->p->baseline, fmax(compute_sum, f->sum[PREDICT_COLLECTIVE]));
	/* Kernels of both streams in their order; a rank's kernels stand together. */
	if (r->n) {
		compute_at = y->t->ops[r->first].first;
		compute_end =
			y->t->ops[r->first + r->n - 1].first + y->t->ops[r->first + r->n - 1].n;
	}
	for (; c < r->first + r->n; c++) {
		const struct predict_op *op = &y->t->ops[c];
		const struct predict_time *comm;

		if (op->join == PREDICT_NONE)
			continue;
		comm = &y->p->kernels[op->first + op->n - 1];
		/* From when it was there: what a profiler shows, but not before the one before it.
		 */
		comm_sum += comm->end - comm->ready;
		while (compute_at < compute_end &&
		       (y->t->kernels[compute_at].class == PREDICT_COLLECTIVE ||
			y->p->kernels[compute_at].end <= comm->ready))
			compute_at++;
		for (uint32_t k = compute_at;
		     k < compute_end && (y->t->kernels[k].class == PREDICT_COLLECTIVE ||
					 y->p->kernels[k].start < comm->end);
		     k++)
			if (y->t->kernels[k].class != PREDICT_COLLECTIVE)
				overlap += fmin(y->p->kernels[k].end, comm->end) -
					   fmax(y->p->kernels[k].start, comm->ready);
	}
	f->exposed = comm_sum - overlap;
	f->active = compute_sum + f->exposed;
}

void predict_deinit(struct predict *p)
{
	free(p->ranks);
	free(p->kernels);
}

static int play(struct player *y, uint32_t *ret_op)
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
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		y->walks[r] = (struct walk){t->ranks[r].first, PREDICT_NONE, PREDICT_NONE};
		y->p->ranks[r] = (struct predict_front){.host_by = PREDICT_NONE,
							.compute_by = PREDICT_NONE,
							.comm_by = PREDICT_NONE};
		y->ready[y->n_ready++] = t->n_ranks - 1 - r;
	}
	while (y->n_ready)
		go_on(y, y->ready[--y->n_ready]);
	for (uint32_t r = 0; r < t->n_ranks; r++) {
		const struct predict_front *f = &y->p->ranks[r];
		double end = fmax(fmax(f->host, f->compute), f->comm);

		if (y->walks[r].next < t->ranks[r].first + t->ranks[r].n) {
			*ret_op = y->walks[r].next;
			return -ELOOP;
		}
		measure(y, r);
		if (end > y->p->ns || !r) {
			y->p->ns = end;
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
	CLEANUP(freep) uint32_t *ready = calloc(t->n_ranks + 1, sizeof(*ready));
	struct player y = {t, sync, &p, walks, joins, ready, 0};
	int r = -ENOMEM;

	if (p.ranks && p.kernels && walks && joins && ready)
		r = play(&y, ret_op);
	if (r < 0)
		predict_deinit(&p);
	else
		*ret = p;
	return r;
}
