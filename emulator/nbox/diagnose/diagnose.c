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
#define SLOWED 0.99 /* of what a rank computes: what-ifs act on it */
#define MOSTLY 0.7
#define MUCH_LATENCY 0.3 /* of communication */

struct asker {
	struct play p;
	struct err *err;
};

const char *diagnose_name(enum diagnose_cause cause)
{
	static const char *const names[] = {"computation-bound", "communication-bound", "straggler",
					    "poor overlap",      "small tensors",       "queueing",
					    "pipeline bubble"};

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

/* What a rank computes in all, and how many ranks do so. */
struct load {
	double ns, plain_ns;
	uint32_t rank, n; /* index */
};

static int by_load(const void *pa, const void *pb)
{
	const struct load *a = pa, *b = pb;

	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* Of all ranks, half of which stand at or before it. */
static double median_of(const struct load *sorted, uint32_t n)
{
	uint64_t all = 0, seen = 0;

	for (uint32_t i = 0; i < n; i++)
		all += sorted[i].n;
	for (uint32_t i = 0; i < n; i++) {
		seen += sorted[i].n;
		if (2 * seen >= all)
			return sorted[i].ns;
	}
	return 0;
}

/* What it should compute: where what-ifs act on it, what it does without them. */
static double should_ns(const struct load *l, double median)
{
	return l->plain_ns < SLOWED * l->ns ? l->plain_ns : median;
}

/* The one that computes most beyond that. */
static const struct load *find_slowest(const struct load *list, uint32_t n, double median)
{
	const struct load *slowest = &list[n - 1];

	for (uint32_t i = 0; i < n; i++)
		if (list[i].ns - should_ns(&list[i], median) >
		    slowest->ns - should_ns(slowest, median))
			slowest = &list[i];
	return slowest;
}

static int straggler(const struct asker *a, double total, struct diagnose_finding *f)
{
	const struct job *j = a->p.job;
	CLEANUP(freep) struct load *list = calloc((size_t)j->n_ranks + 1, sizeof(*list));
	struct play_change change = {.of = CHANGE_RANK, .factor = 1};
	const struct load *slowest;
	char more[48] = "", than[48];
	double median, should, without;
	int r;

	if (!list)
		return err_set(a->err, ENOMEM, "out of memory");
	snprintf(f->without, sizeof(f->without), "the slowest rank computes as long as the median");
	for (uint32_t i = 0; i < j->n_ranks; i++)
		list[i] = (struct load){.rank = i, .n = j->n_alike ? j->n_alike[i] : 1};
	for (uint32_t i = 0; i < j->n_rows; i++) {
		struct load *l = &list[j->rows[i].rank];

		l->ns += j->rows[i].stream == JOB_NONE ? 0 : j->rows[i].ns;
		l->plain_ns += j->rows[i].stream == JOB_NONE ? 0 : j->rows[i].plain_ns;
	}
	qsort(list, j->n_ranks, sizeof(*list), by_load);
	median = median_of(list, j->n_ranks);
	slowest = find_slowest(list, j->n_ranks, median);
	should = should_ns(slowest, median);
	if (j->n_ranks < 2 && !(should < slowest->ns)) {
		snprintf(f->evidence, sizeof(f->evidence),
			 "one rank was recorded: there is nothing to compare it with");
		return 0;
	}
	change.rank = j->ranks[slowest->rank];
	snprintf(than, sizeof(than), "the median of %u ranks", j->n_alike ? j->world : j->n_ranks);
	if (slowest->plain_ns < SLOWED * slowest->ns) {
		change.of = CHANGE_PLAIN;
		snprintf(than, sizeof(than), "without what-ifs");
		snprintf(f->without, sizeof(f->without),
			 "the slowest rank computes as long as without what-ifs");
	} else if (slowest->ns > 0) {
		change.factor = median / slowest->ns;
	}
	r = ask(a, &change, 1, NULL, &without);
	if (r < 0)
		return r;
	f->won_ns = total - without;
	f->is_found = f->won_ns >= COUNTS_LITTLE * total;
	if (slowest->n > 1)
		snprintf(more, sizeof(more), ", as %u more do,", slowest->n - 1);
	snprintf(f->evidence, sizeof(f->evidence), "rank %u%s computes %.3f times as long as %s",
		 change.rank, more, should > 0 ? slowest->ns / should : 1, than);
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

/* --- stages of a pipeline
 * ------------------------------------------------------------------------- */

static int pipeline(const struct asker *a, double total, struct diagnose_finding *f)
{
	static const struct play_change quick = {.of = CHANGE_STAGE};
	const struct job *j = a->p.job;
	struct asker apart = *a;
	bool has_stages = false;
	double without, without_time;
	int r;

	for (uint32_t i = 0; i < j->n_ops && !has_stages; i++)
		has_stages = job_op_is_of_stage(j, &j->ops[i]);
	snprintf(f->without, sizeof(f->without), "no stage waits for another");
	if (!has_stages) {
		snprintf(f->evidence, sizeof(f->evidence), "no stage sends to another");
		return 0;
	}
	apart.p.without_stages = true;
	r = ask(&apart, NULL, 0, NULL, &without);
	if (r == 0)
		r = ask(a, &quick, 1, NULL, &without_time);
	if (r < 0)
		return r;
	f->won_ns = total - without;
	f->is_found = f->won_ns >= COUNTS * total;
	snprintf(f->evidence, sizeof(f->evidence),
		 "%.3f ms of that if messages between stages take no time; the rest is up to the "
		 "schedule and its micro-batches: nbox pipe",
		 (total - without_time) / 1e6);
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
		r = pipeline(&a, d.iteration_ns, &d.of[DIAGNOSE_PIPELINE]);
	if (r == 0)
		*ret = d;
	return r;
}
