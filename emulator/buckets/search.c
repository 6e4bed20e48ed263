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

/* The best way to have the first gradients done. */
struct best {
	double end;
	uint32_t first, pieces; /* of its last bucket */
};

double buckets_best(const struct buckets_job *job, const struct buckets_cost *cost,
		    struct buckets_plan *p)
{
	CLEANUP(freep) struct best *best = calloc((size_t)job->n + 1, sizeof(*best));
	uint32_t n = 0;

	buckets_none(job, p);
	p->n = 0;
	if (!best)
		return NAN;
	for (uint32_t j = 1; j <= job->n; j++) {
		uint64_t bytes = 0;

		best[j].end = INFINITY;
		for (uint32_t i = j; i-- > 0;) {
			uint32_t pieces;
			double end;

			bytes += job->bytes[i];
			end = fmax(job->ready[j - 1], best[i].end) +
			      buckets_sync(cost, bytes, &pieces);
			if (isnan(end))
				return NAN;
			if (end < best[j].end)
				best[j] = (struct best){end, i, pieces};
		}
	}
	for (uint32_t j = job->n; j > 0; j = best[j].first)
		n++;
	p->n = n;
	for (uint32_t j = job->n; j > 0; j = best[j].first)
		p->list[--n] = (struct bucket){best[j].first, j, best[j].pieces, 0};
	return buckets_play(job, cost, p, NULL);
}
