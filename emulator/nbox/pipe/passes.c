/* See passes.h. What a stage computes shows between the messages: a pass begins when the one before
 * it is over and what it waits for is there, and is over when its own message goes. Where a pass
 * sends nothing, the last stage's forward one and the first stage's backward one, it counts
 * together with the next. */
#include "nbox/pipe/passes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nbox/report/repeats.h"
#include "schedule/coll.h"

void passes_deinit(struct passes *p)
{
	for (int w = 0; w < PASSES_WAYS; w++) {
		free(p->way[w].ops);
		free(p->way[w].rows);
		p->way[w] = (struct passes_list){.n = 0};
	}
}

struct found {
	const struct record_op *op;
	uint32_t row;
};

/* Names are given in the order of the host's calls. */
static int by_name(const void *a, const void *b)
{
	uint64_t x = ((const struct found *)a)->op->name, y = ((const struct found *)b)->op->name;

	return (x > y) - (x < y);
}

/* The bytes that go so; 0: none. */
static uint64_t bytes_of(const struct record_op *op, enum passes_way way, int64_t previous,
			 int64_t next)
{
	int64_t peer = way == PASSES_TO_NEXT || way == PASSES_FROM_NEXT ? next : previous;
	bool is_send = way == PASSES_TO_NEXT || way == PASSES_TO_PREVIOUS;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < op->n_calls; i++)
		if (op->calls[i].is_send == is_send &&
		    record_world_rank(op->of, op->calls[i].peer) == peer)
			bytes += op->calls[i].bytes;
	return bytes;
}

/* Not what comes before the first message of the usual size: stages of PyTorch greet each other. */
static int fill(const struct found *all, size_t n, enum passes_way way, int64_t previous,
		int64_t next, struct passes_list *ret)
{
	uint64_t usual = 0;

	ret->ops = malloc((n + 1) * sizeof(struct record_op *));
	ret->rows = malloc((n + 1) * sizeof(*ret->rows));
	if (!ret->ops || !ret->rows)
		return -ENOMEM;
	for (size_t i = n; i-- > 0 && !usual;)
		usual = bytes_of(all[i].op, way, previous, next);
	for (size_t i = 0; i < n; i++) {
		uint64_t bytes = bytes_of(all[i].op, way, previous, next);

		if (!bytes || (!ret->n && bytes != usual))
			continue;
		ret->ops[ret->n] = all[i].op;
		ret->rows[ret->n++] = all[i].row;
	}
	return 0;
}

int passes_find(const struct rows_graph *g, uint32_t world_rank, int64_t previous, int64_t next,
		struct passes *ret)
{
	CLEANUP(freep) struct found *all = malloc(((size_t)g->n + 1) * sizeof(*all));
	size_t n = 0;

	*ret = (struct passes){.is_recorded = false};
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct record_op *op = &g->rec->ops[g->rows[i].index];

		if (g->rows[i].is_op && op->world_rank == world_rank && op->kind == COLL_SENDRECV)
			all[n++] = (struct found){op, i};
	}
	qsort(all, n, sizeof(*all), by_name);
	for (int w = 0; w < PASSES_WAYS; w++) {
		if (fill(all, n, (enum passes_way)w, previous, next, &ret->way[w]) < 0) {
			passes_deinit(ret);
			return -ENOMEM;
		}
	}
	ret->is_recorded = n > 0;
	return 0;
}

int64_t passes_peak(const struct rows_graph *g, const struct passes *p, uint32_t n_micro)
{
	CLEANUP(freep) uint8_t *follows = calloc((size_t)g->n + 1, 1);
	const struct passes_list *sent = &p->way[PASSES_TO_NEXT], *got = &p->way[PASSES_FROM_NEXT];

	if (!follows)
		return -ENOMEM;
	if (!got->n)
		return n_micro;
	follows[got->rows[0]] = 1;
	for (uint32_t i = 0; i < g->n; i++) /* what a row waits for stands before it */
		for (uint32_t k = 0; k < g->rows[i].n_deps; k++)
			follows[i] |= follows[g->deps[g->rows[i].first_dep + k].row];
	for (uint32_t i = 0; i < sent->n && i < n_micro; i++)
		if (sent->rows[i] != got->rows[0] && follows[sent->rows[i]])
			return i;
	return n_micro;
}

/* --- times ------------------------------------------------------------------------------------ */

enum { FORWARD, BACKWARD, BOTH, UPDATE, SAMPLES };

struct samples {
	double *list[SAMPLES]; /* owned */
	uint64_t n[SAMPLES];
};

static void samples_deinit(struct samples *s)
{
	for (int i = 0; i < SAMPLES; i++)
		free(s->list[i]);
}

/* The passes that are not known to be over. */
struct stretch {
	double from; /* NAN: not known */
	uint32_t n_forward, n_backward;
	bool is_mixed; /* a later one of them had to wait, too */
};

static void close_stretch(struct stretch *t, double at, struct samples *s)
{
	int what = t->n_forward == 1 && t->n_backward == 1   ? BOTH
		   : t->n_forward == 1 && t->n_backward == 0 ? FORWARD
		   : t->n_forward == 0 && t->n_backward == 1 ? BACKWARD
							     : SAMPLES;

	if (what < SAMPLES && !t->is_mixed && !isnan(t->from))
		s->list[what][s->n[what]++] = at - t->from;
	*t = (struct stretch){.from = at};
}

static const struct record_op *op_of(const struct passes *p, enum passes_way way, uint64_t k)
{
	return k < p->way[way].n ? p->way[way].ops[k] : NULL;
}

static void take_pass(const struct passes *p, struct pipe_pass pass, uint64_t k, struct stretch *t,
		      struct samples *s)
{
	bool is_forward = pass.kind == PIPE_FORWARD;
	const struct record_op *got = op_of(p, is_forward ? PASSES_FROM_PREVIOUS : PASSES_FROM_NEXT,
					    k),
			       *sent = op_of(p, is_forward ? PASSES_TO_NEXT : PASSES_TO_PREVIOUS,
					     k);
	bool is_first = t->n_forward + t->n_backward == 0;

	if (got && is_first)
		t->from = fmax((double)got->virtual_end_ns, isnan(t->from) ? 0 : t->from);
	else if (got)
		t->is_mixed = true;
	t->n_forward += is_forward;
	t->n_backward += !is_forward;
	if (sent)
		close_stretch(t, (double)sent->virtual_arrive_ns, s);
}

/* All iterations of the record. */
static void take_all(const struct passes *p, const struct pipe_job *job, uint32_t stage, uint64_t n,
		     struct samples *s)
{
	uint32_t peak = pipe_peak(job, stage);
	struct stretch t = {.from = NAN};

	for (uint64_t step = 0; step < n; step++) {
		const struct record_op *last, *next;

		for (uint32_t i = 0; i < 2 * job->n_micro; i++) {
			struct pipe_pass pass = pipe_pass_at(job, peak, i);

			take_pass(p, pass, step * job->n_micro + pass.micro, &t, s);
		}
		/* from the last backward pass to the next iteration's first message; of the first
		 * stage alone, which waits for nobody then */
		last = op_of(p, PASSES_FROM_NEXT, (step + 1) * job->n_micro - 1);
		next = op_of(p, PASSES_TO_NEXT, (step + 1) * job->n_micro);
		if (stage == 0 && last && next)
			s->list[UPDATE][s->n[UPDATE]++] =
				(double)(int64_t)(next->virtual_arrive_ns - last->virtual_end_ns);
		t = (struct stretch){.from = NAN}; /* the update is between */
	}
}

int passes_times(const struct passes *p, const struct pipe_job *job, uint32_t stage,
		 struct passes_times *ret)
{
	uint64_t most = 0;
	CLEANUP(samples_deinit) struct samples s = {.n = {0}};
	double medians[SAMPLES];

	for (int w = 0; w < PASSES_WAYS; w++)
		most = p->way[w].n > most ? p->way[w].n : most;
	for (int i = 0; i < SAMPLES; i++) {
		s.list[i] = malloc((2 * most + 1) * sizeof(double));
		if (!s.list[i])
			return -ENOMEM;
	}
	take_all(p, job, stage, most / job->n_micro, &s);
	for (int i = 0; i < SAMPLES; i++)
		medians[i] = s.n[i] ? repeats_median(s.list[i], s.n[i]) : NAN;
	*ret = (struct passes_times){medians[FORWARD], medians[BACKWARD], medians[BOTH],
				     medians[UPDATE]};
	return 0;
}
