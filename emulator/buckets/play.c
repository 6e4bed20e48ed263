/* See buckets.h: plans, what they take, and the theorems. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "buckets/buckets.h"

int buckets_plan_init(struct buckets_plan *p, uint32_t n)
{
	*p = (struct buckets_plan){.list = calloc((size_t)n + 1, sizeof(*p->list)),
				   .is_fused = calloc((size_t)n + 1, sizeof(*p->is_fused))};
	if (p->list && p->is_fused)
		return 0;
	buckets_plan_deinit(p);
	return -ENOMEM;
}

void buckets_plan_deinit(struct buckets_plan *p)
{
	free(p->list);
	free(p->is_fused);
	*p = (struct buckets_plan){.n = 0};
}

double buckets_play(const struct buckets_job *job, const struct buckets_cost *cost,
		    const struct buckets_plan *p, double *ends)
{
	double q = 0, saved = 0, behind = 0, before, lead;
	double late = -INFINITY; /* done, and all behind the wait; less all behind it so far */

	for (uint32_t k = 0, i = 0; k < p->n; k++) {
		const struct bucket *b = &p->list[k];
		double own = 0;
		uint64_t bytes = 0;

		for (; i < b->end; i++) {
			own += job->after ? job->after[i] : 0;
			bytes += job->bytes[i];
			before = i > 1 ? job->ready[i - 2] : job->begin;
			if (p->is_fused[i])
				saved += job->ready[i] - before - job->fused[i];
		}
		lead = job->lead ? job->lead[b->end - 1] : 0;
		q = fmax(fmax(job->ready[b->end - 1] - saved, b->from), q + lead) +
		    cost->sync(cost->ctx, bytes, b->pieces);
		if (ends)
			ends[k] = q;
		late = fmax(late, q - behind);
		behind += own;
	}
	/* fmax() drops a NAN */
	return isnan(q) ? NAN : fmax(late, job->end - saved) + behind;
}

double buckets_sync(const struct buckets_cost *cost, uint64_t bytes, uint32_t *ret_pieces)
{
	double best = cost->sync(cost->ctx, bytes, 1), t;

	*ret_pieces = 1;
	for (uint32_t k = 2; k <= cost->most_pieces; k++) {
		t = cost->sync(cost->ctx, bytes, k);
		if (t < best) {
			best = t;
			*ret_pieces = k;
		}
	}
	return best;
}

bool buckets_fuses_ops(double q_before, double p_before, double p, double fused)
{
	return q_before <= p + p_before - fused;
}

bool buckets_fuses_tensors(double q_before_end, double p_end, double t_fused, double t)
{
	return q_before_end > p_end + t_fused - t;
}
