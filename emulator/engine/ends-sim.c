/* See ends-sim.h. */
#include "engine/ends-sim.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void ends_sim_deinit(struct ends_sim *c)
{
	for (int i = 0; i < ENDS_SIM_KEPT; i++)
		free(c->kept[i].end);
}

static uint64_t mix(uint64_t h, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	h = (h ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static struct ends_sim_kept *find(struct ends_sim *c, uint64_t hash)
{
	struct ends_sim_kept *oldest = &c->kept[0];

	c->n_lookups++;
	for (int i = 0; i < ENDS_SIM_KEPT; i++) {
		if (c->kept[i].used && c->kept[i].hash == hash)
			return &c->kept[i];
		if (c->kept[i].used < oldest->used)
			oldest = &c->kept[i];
	}
	oldest->used = 0;
	return oldest;
}

/* Starts and ports after @first: what a simulation is told. */
static uint64_t relative(uint32_t n, const double *arrive, const double *busy, double first,
			 double quantum_ns, double *start, double *port)
{
	uint64_t hash = n;
	uint32_t r;

	for (r = 0; r < n; r++) {
		start[r] = arrive[r] - first;
		port[r] = busy ? fmax(busy[r] - first, start[r]) : start[r];
		hash = mix(hash, rint(start[r] / quantum_ns));
		hash = mix(hash, rint(port[r] / quantum_ns));
	}
	return hash;
}

static int simulate(const struct sched *s, const struct sim_cost *cost, const double *start,
		    double *end, struct err *err)
{
	uint32_t n = s->n_ranks;
	struct sim_ranks ranks = {.start_ns = start,
				  .busy_ns = start + n,
				  .buffered = sim_buffered(s),
				  .end_ns = end,
				  .free_ns = end + n};
	struct sim_result result;

	return sim_run(s, cost, &ranks, NULL, &result, err);
}

int ends_sim(struct ends_sim *c, const struct sched *s, const struct sim_cost *cost,
	     double quantum_ns, const double *arrive, const double *busy, double *ret_end,
	     double *ret_busy, struct err *err)
{
	CLEANUP(freep) double *start = NULL;
	uint32_t n = s->n_ranks, r;
	struct ends_sim_kept *k;
	double first = INFINITY;
	uint64_t hash;
	int result;

	for (r = 0; r < n; r++)
		first = fmin(first, arrive[r]);
	if (isinf(first))
		first = 0;
	start = malloc(2 * (size_t)n * sizeof(*start));
	if (!start)
		return err_set(err, ENOMEM, "no memory for %u ranks", n);
	hash = relative(n, arrive, busy, first, quantum_ns, start, start + n);
	k = find(c, hash);
	if (!k->used) {
		if (!k->end)
			k->end = malloc(2 * (size_t)n * sizeof(*k->end));
		if (!k->end)
			return err_set(err, ENOMEM, "no memory for %u ranks", n);
		result = simulate(s, cost, start, k->end, err);
		if (result)
			return result;
		k->hash = hash;
	}
	k->used = c->n_lookups;
	for (r = 0; r < n; r++) {
		ret_end[r] = fmax(arrive[r], first + k->end[r]);
		ret_busy[r] = first + k->end[n + r];
	}
	return 0;
}
