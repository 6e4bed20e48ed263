/* See buckets.h: what frameworks do by themselves. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "buckets/buckets.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define NEARLY (1 - 1e-3) /* as good */

static void clear(const struct buckets_job *job, struct buckets_plan *p)
{
	p->n = p->n_fused = 0;
	memset(p->is_fused, 0, job->n * sizeof(*p->is_fused));
}

static void add(struct buckets_plan *p, uint32_t first, uint32_t end)
{
	p->list[p->n++] = (struct bucket){first, end, 1, 0};
}

void buckets_none(const struct buckets_job *job, struct buckets_plan *p)
{
	clear(job, p);
	for (uint32_t i = 0; i < job->n; i++)
		add(p, i, i + 1);
}

void buckets_one(const struct buckets_job *job, struct buckets_plan *p)
{
	clear(job, p);
	if (job->n)
		add(p, 0, job->n);
}

void buckets_ddp(const struct buckets_job *job, uint64_t first, uint64_t most,
		 struct buckets_plan *p)
{
	uint64_t bytes = 0;

	clear(job, p);
	for (uint32_t i = 0, from = 0; i < job->n; i++) {
		bytes += job->bytes[i];
		if (bytes < (p->n ? most : first) && i + 1 < job->n)
			continue;
		add(p, from, i + 1);
		from = i + 1;
		bytes = 0;
	}
}

void buckets_horovod(const struct buckets_job *job, double cycle, uint64_t most,
		     struct buckets_plan *p)
{
	double from = 0;
	uint64_t bytes = 0;

	clear(job, p);
	for (uint32_t i = 0; i < job->n; i++) {
		double tick = ceil(fmax(job->ready[i], 1e-9 * cycle) / cycle) * cycle;

		if (i == 0 || tick > from || bytes + job->bytes[i] > most) {
			add(p, i, i);
			bytes = 0;
		}
		from = tick;
		bytes += job->bytes[i];
		p->list[p->n - 1].end = i + 1;
		p->list[p->n - 1].from = tick;
	}
}

void buckets_byteps(const struct buckets_job *job, uint64_t most, struct buckets_plan *p)
{
	buckets_none(job, p);
	for (uint32_t i = 0; i < job->n; i++)
		if (job->bytes[i] > most)
			p->list[i].pieces = (uint32_t)((job->bytes[i] + most - 1) / most);
}

double buckets_ddp_best(const struct buckets_job *job, const struct buckets_cost *cost,
			bool is_first, struct buckets_plan *p, uint64_t *ret_limit)
{
	static const uint64_t limits[] = {256 * KIB, 512 * KIB, MIB,       2 * MIB,   3 * MIB,
					  4 * MIB,   5 * MIB,   6 * MIB,   8 * MIB,   10 * MIB,
					  12 * MIB,  16 * MIB,  20 * MIB,  25 * MIB,  32 * MIB,
					  40 * MIB,  50 * MIB,  64 * MIB,  80 * MIB,  100 * MIB,
					  128 * MIB, 160 * MIB, 200 * MIB, 256 * MIB, 320 * MIB,
					  400 * MIB, 512 * MIB};
	uint64_t limit = is_first ? MIB : 25 * MIB;
	double best, end;

	buckets_ddp(job, limit, 25 * MIB, p);
	best = buckets_play(job, cost, p, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		buckets_ddp(job, limits[i], is_first ? 25 * MIB : limits[i], p);
		end = buckets_play(job, cost, p, NULL);
		if (isnan(end))
			return NAN;
		if (end < best * NEARLY) {
			best = end;
			limit = limits[i];
		}
	}
	buckets_ddp(job, limit, is_first ? 25 * MIB : limit, p);
	*ret_limit = limit;
	return best;
}

double buckets_horovod_best(const struct buckets_job *job, const struct buckets_cost *cost,
			    double unit, struct buckets_plan *p, double *ret_cycle,
			    uint64_t *ret_most)
{
	static const double cycles[] = {1, 2.5, 5, 7.5, 10, 15, 20, 25, 30, 40, 50, 75, 100};
	double best = INFINITY, end;

	for (uint64_t most = MIB; most <= 64 * MIB; most *= 2)
		for (size_t i = 0; i < ARRAY_SIZE(cycles); i++) {
			buckets_horovod(job, cycles[i] * unit, most, p);
			end = buckets_play(job, cost, p, NULL);
			if (isnan(end))
				return NAN;
			if (end < best) {
				best = end;
				*ret_cycle = cycles[i] * unit;
				*ret_most = most;
			}
		}
	buckets_horovod(job, *ret_cycle, *ret_most, p);
	return best;
}
