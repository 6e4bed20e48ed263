/* See buckets.h: Algorithm 1's pass, and the exact programme. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "buckets/buckets.h"

/* The bucket that is being filled. */
struct filling {
	struct bucket bucket;
	uint64_t bytes;
	double q_before; /* the end of the bucket before it */
	double q;        /* its own */
};

/* Can the op of @i be one with the op before it? Of three nobody knows the time. */
static bool has_fused(const struct buckets_job *job, const struct buckets_plan *p, uint32_t i)
{
	return i > 0 && job->fused && !isnan(job->fused[i]) && !p->is_fused[i - 1];
}

/* By how much all that comes after is earlier if the op of @i and the one before it are one. */
static double gained(const struct buckets_job *job, uint32_t i)
{
	return job->ready[i] - (i > 1 ? job->ready[i - 2] : job->begin) - job->fused[i];
}

double buckets_dpro(const struct buckets_job *job, const struct buckets_cost *cost,
		    struct buckets_plan *p, struct buckets_decision *log)
{
	struct filling f = {.q = 0};
	double saved = 0;

	buckets_none(job, p);
	p->n = 0;
	for (uint32_t i = 0; i < job->n; i++) {
		uint32_t alone, together;
		struct buckets_decision d = {.gradient = i,
					     .q_before = f.q,
					     .p = job->ready[i] - saved,
					     .t = buckets_sync(cost, job->bytes[i], &alone),
					     .t_fused = buckets_sync(cost, f.bytes + job->bytes[i],
								     &together)};
		bool can_fuse = has_fused(job, p, i);

		d.fuses = i > 0 && buckets_fuses_tensors(d.q_before, d.p, d.t_fused, d.t);
		if (can_fuse && d.fuses) /* the communication part */
			d.fuses_ops = gained(job, i) >= 0;
		else if (can_fuse && d.q_before <= d.p) /* the computation part */
			d.fuses = d.fuses_ops =
				buckets_fuses_ops(f.q - fmax(f.q_before, job->ready[i - 1] - saved),
						  job->ready[i - 1] -
							  (i > 1 ? job->ready[i - 2] : job->begin),
						  job->ready[i] - job->ready[i - 1], job->fused[i]);
		if (d.fuses_ops) {
			saved += gained(job, i);
			p->is_fused[i] = true;
			p->n_fused++;
		}
		if (d.fuses) {
			f.bucket.end = i + 1;
			f.bucket.pieces = together;
			f.bytes += job->bytes[i];
			f.q = fmax(job->ready[i] - saved, f.q_before) + d.t_fused;
		} else {
			p->n += i > 0;
			f = (struct filling){.bucket = {i, i + 1, alone, 0},
					     .bytes = job->bytes[i],
					     .q_before = f.q,
					     .q = fmax(d.p, f.q) + d.t};
		}
		p->list[p->n] = f.bucket;
		if (log)
			log[i] = d;
	}
	p->n += job->n > 0;
	return buckets_play(job, cost, p, NULL);
}

/* A way to have the first gradients done, of which no other is better in both. */
struct way {
	double q;        /* its last bucket is done */
	double late;     /* of its buckets, the latest: done, less what computation does behind the
			    wait with the gradients before it */
	uint32_t before; /* the way that its last bucket was added to */
	uint32_t first, end, pieces;
};

struct ways {
	struct way *list; /* owned; by gradients */
	size_t n, size;
};

static void ways_deinit(struct ways *w)
{
	free(w->list);
}

static int by_q(const void *pa, const void *pb)
{
	const struct way *a = pa, *b = pb;

	if (a->q != b->q)
		return a->q < b->q ? -1 : 1;
	return (a->late > b->late) - (a->late < b->late);
}

static bool add_way(struct ways *w, const struct way *way)
{
	struct way *more;

	if (w->n == w->size) {
		more = realloc(w->list, (2 * w->size + 64) * sizeof(*more));
		if (!more)
			return false;
		w->list = more;
		w->size = 2 * w->size + 64;
	}
	w->list[w->n++] = *way;
	return true;
}

/* All ways to have gradients before @j done, behind those of fewer. @from: where those of each
 * number begin. Return: false: no memory, or no time of an op. */
static bool extend(const struct buckets_job *job, const struct buckets_cost *cost, struct ways *w,
		   const size_t *from, const double *behind, uint32_t j)
{
	double lead = job->lead ? job->lead[j - 1] : 0;
	size_t first = w->n, soonest = first, n;
	uint64_t bytes = 0;

	for (uint32_t i = j; i-- > 0;) {
		uint32_t pieces;
		double t;

		bytes += job->bytes[i];
		t = buckets_sync(cost, bytes, &pieces);
		if (isnan(t))
			return false;
		for (size_t k = from[i]; k < from[i + 1]; k++) {
			double q = fmax(job->ready[j - 1], w->list[k].q + lead) + t;
			struct way way = {
				.q = q,
				.late = fmax(w->list[k].late, q - behind[i]),
				.before = (uint32_t)k,
				.first = i,
				.end = j,
				.pieces = pieces,
			};

			/* most are worse in both than that */
			if (w->n > first && q >= w->list[soonest].q &&
			    way.late >= w->list[soonest].late)
				continue;
			if (!add_way(w, &way))
				return false;
			if (q < w->list[soonest].q)
				soonest = w->n - 1;
		}
	}
	qsort(w->list + first, w->n - first, sizeof(*w->list), by_q);
	n = first + 1;
	for (size_t k = first + 1; k < w->n; k++)
		if (w->list[k].late < w->list[n - 1].late)
			w->list[n++] = w->list[k];
	w->n = n;
	return true;
}

double buckets_best(const struct buckets_job *job, const struct buckets_cost *cost,
		    struct buckets_plan *p)
{
	CLEANUP(ways_deinit) struct ways w = {.n = 0};
	CLEANUP(freep) size_t *from = calloc((size_t)job->n + 2, sizeof(*from));
	CLEANUP(freep) double *behind = calloc((size_t)job->n + 1, sizeof(*behind));
	size_t best;
	uint32_t n = 0;

	buckets_none(job, p);
	p->n = 0;
	if (!from || !behind || !add_way(&w, &(struct way){.late = -INFINITY}))
		return NAN;
	from[1] = 1;
	for (uint32_t j = 1; j <= job->n; j++) {
		behind[j] = behind[j - 1] + (job->after ? job->after[j - 1] : 0);
		if (!extend(job, cost, &w, from, behind, j))
			return NAN;
		from[j + 1] = w.n;
	}
	best = from[job->n];
	for (size_t k = best; k < w.n; k++)
		if (fmax(w.list[k].late, job->end) < fmax(w.list[best].late, job->end))
			best = k;
	for (size_t k = best; k > 0; k = w.list[k].before)
		n++;
	p->n = n;
	for (size_t k = best; k > 0; k = w.list[k].before)
		p->list[--n] = (struct bucket){w.list[k].first, w.list[k].end, w.list[k].pieces, 0};
	return buckets_play(job, cost, p, NULL);
}
