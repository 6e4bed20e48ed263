/* See diagnose.h. The bounds from which on a cause counts are ours; the milliseconds are the
 * replays'. */
#include "nbox/diagnose/diagnose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "nbox/replay/result.h"

#define COUNTS 0.1 /* of an iteration: what a cause must win */
#define COUNTS_LITTLE 0.03
#define MOSTLY 0.7
#define MUCH_LATENCY 0.3 /* of communication */

struct asker {
	struct play p;
	struct err *err;
};

const char *diagnose_name(enum diagnose_cause cause)
{
	static const char *const names[] = {"computation-bound", "communication-bound", "straggler",
					    "poor overlap",      "small tensors",       "queueing"};

	return names[cause];
}

/* The median iteration, or all. Return: 0; negative errno with the sentence. */
static int ask(const struct asker *a, const struct play_change *changes, uint32_t n,
	       struct result *ret, double *ret_ns)
{
	CLEANUP(played_deinit) struct played played = {.g = NULL};
	CLEANUP(result_deinit) struct result own = {.n_parts = 0};
	struct play p = a->p;
	int r;

	p.changes = changes;
	p.n_changes = n;
	r = play(&p, &played, a->err);
	if (r == 0 && result_make(p.job, &played, &own) < 0)
		r = err_set(a->err, ENOMEM, "out of memory");
	if (r < 0)
		return r;
	if (ret_ns)
		*ret_ns = own.median_ns;
	if (ret) {
		*ret = own;
		own = (struct result){.n_parts = 0};
	}
	return 0;
}

/* --- computation and communication --------------------------------------------------------------
 */

static int bounds(const struct asker *a, const struct result *base, struct diagnosis *d)
{
	const struct play_change no_comm = {.of = CHANGE_COMM}, no_compute = {.of = CHANGE_COMPUTE},
				 half = {.of = CHANGE_COMPUTE, .factor = 0.5};
	struct diagnose_finding *c = &d->of[DIAGNOSE_COMPUTATION],
				*m = &d->of[DIAGNOSE_COMMUNICATION], *o = &d->of[DIAGNOSE_OVERLAP];
	double total = base->median_ns, path = fmax(base->path_ns, 1), compute, comm, halved,
	       hidden;
	int r = ask(a, &no_comm, 1, NULL, &compute);

	if (r == 0)
		r = ask(a, &no_compute, 1, NULL, &comm);
	if (r == 0)
		r = ask(a, &half, 1, NULL, &halved);
	if (r < 0)
		return r;
	c->won_ns = total - halved;
	c->is_found =
		base->of_ns[PART_COMPUTATION] >= MOSTLY * path && total - compute < COUNTS * total;
	snprintf(
		c->evidence, sizeof(c->evidence),
		"computation is %.1f %% of the critical path; without communication an iteration takes %.3f ms",
		100 * base->of_ns[PART_COMPUTATION] / path, compute / 1e6);
	snprintf(c->without, sizeof(c->without), "computation is twice as fast");
	m->won_ns = total - compute;
	m->is_found = m->won_ns >= COUNTS * total && comm > compute;
	snprintf(
		m->evidence, sizeof(m->evidence),
		"communication is %.1f %% of the critical path; alone it takes %.3f ms, computation %.3f ms",
		100 * base->of_ns[PART_COMMUNICATION] / path, comm / 1e6, compute / 1e6);
	snprintf(m->without, sizeof(m->without), "communication takes no time");
	o->won_ns = fmax(0, total - fmax(compute, comm));
	o->is_found = o->won_ns >= COUNTS * total;
	hidden = (compute + comm - total) / fmax(1, fmin(compute, comm));
	snprintf(
		o->evidence, sizeof(o->evidence),
		"of the shorter one of %.3f ms computation and %.3f ms communication %.1f %% is hidden",
		compute / 1e6, comm / 1e6, 100 * fmax(0, fmin(1, hidden)));
	snprintf(o->without, sizeof(o->without), "the longer one hides all of the shorter one");
	return 0;
}

/* --- a straggler
 * ---------------------------------------------------------------------------------- */

static int by_number(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static int straggler(const struct asker *a, double total, struct diagnose_finding *f)
{
	const struct job *j = a->p.job;
	CLEANUP(freep) double *sum = calloc((size_t)j->n_ranks + 1, sizeof(*sum));
	CLEANUP(freep) double *sorted = calloc((size_t)j->n_ranks + 1, sizeof(*sorted));
	struct play_change as_others = {.of = CHANGE_RANK};
	double median, without;
	uint32_t slowest = 0;
	int r;

	if (!sum || !sorted)
		return err_set(a->err, ENOMEM, "out of memory");
	snprintf(f->without, sizeof(f->without), "the slowest rank computes as long as the median");
	if (j->n_ranks < 2) {
		snprintf(f->evidence, sizeof(f->evidence),
			 "one rank was recorded: there is nothing to compare it with");
		return 0;
	}
	for (uint32_t i = 0; i < j->n_rows; i++)
		if (j->rows[i].stream != JOB_NONE)
			sum[j->rows[i].rank] += j->rows[i].ns;
	for (uint32_t i = 0; i < j->n_ranks; i++) {
		sorted[i] = sum[i];
		slowest = sum[i] > sum[slowest] ? i : slowest;
	}
	qsort(sorted, j->n_ranks, sizeof(*sorted), by_number);
	median = sorted[(j->n_ranks - 1) / 2];
	as_others.rank = j->ranks[slowest];
	as_others.factor = sum[slowest] > 0 ? median / sum[slowest] : 1;
	r = ask(a, &as_others, 1, NULL, &without);
	if (r < 0)
		return r;
	f->won_ns = total - without;
	f->is_found = f->won_ns >= COUNTS_LITTLE * total;
	snprintf(f->evidence, sizeof(f->evidence),
		 "rank %u computes %.3f times as long as the median of %u ranks", j->ranks[slowest],
		 median > 0 ? sum[slowest] / median : 1, j->n_ranks);
	return 0;
}

/* --- links
 * ---------------------------------------------------------------------------------------- */

static int links(const struct asker *a, double total, struct diagnosis *d)
{
	struct diagnose_finding *s = &d->of[DIAGNOSE_SMALL], *q = &d->of[DIAGNOSE_QUEUEING];
	const struct play_change no_compute = {.of = CHANGE_COMPUTE};
	struct asker quick = *a, free = *a;
	double without, all, bytes_only;
	int r;

	quick.p.without_latency = true;
	free.p.without_queues = true;
	r = ask(&quick, NULL, 0, NULL, &without);
	if (r == 0)
		r = ask(&quick, &no_compute, 1, NULL, &bytes_only);
	if (r == 0)
		r = ask(a, &no_compute, 1, NULL, &all);
	if (r < 0)
		return r;
	s->won_ns = total - without;
	s->is_found = s->won_ns >= COUNTS_LITTLE * total && all - bytes_only > MUCH_LATENCY * all;
	snprintf(s->evidence, sizeof(s->evidence),
		 "latency is %.1f %% of the %.3f ms that communication takes alone",
		 100 * (all - bytes_only) / fmax(1, all), all / 1e6);
	snprintf(s->without, sizeof(s->without), "hops have no latency");
	r = ask(&free, NULL, 0, NULL, &without);
	if (r < 0)
		return r;
	q->won_ns = total - without;
	q->is_found = q->won_ns >= COUNTS_LITTLE * total;
	snprintf(q->evidence, sizeof(q->evidence),
		 "messages that wait for a link in use make an iteration %.1f %% longer",
		 100 * q->won_ns / fmax(1, without));
	snprintf(q->without, sizeof(q->without), "a link carries any number at once");
	return 0;
}

int diagnose(const struct job *job, struct costs *costs, struct diagnosis *ret, struct err *err)
{
	const struct asker a = {.p = {.job = job, .costs = costs}, .err = err};
	CLEANUP(result_deinit) struct result base = {.n_parts = 0};
	struct diagnosis d = {0};
	int r = ask(&a, NULL, 0, &base, NULL);

	d.iteration_ns = base.median_ns;
	if (r == 0)
		r = bounds(&a, &base, &d);
	if (r == 0)
		r = straggler(&a, d.iteration_ns, &d.of[DIAGNOSE_STRAGGLER]);
	if (r == 0)
		r = links(&a, d.iteration_ns, &d);
	if (r == 0)
		*ret = d;
	return r;
}
