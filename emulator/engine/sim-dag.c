/* Event simulation of an explicit DAG: messages that wait for any others and share
 * links. A link serves in order of readiness, the smaller number first at equal
 * times: all arrivals of an instant are taken before its links are served, so the
 * order among them is no matter. */
#include <errno.h>
#include <stdlib.h>

#include "base/bitmap.h"
#include "base/cleanup.h"
#include "engine/sim-heap.h"
#include "engine/sim.h"

#define IS_READY (UINT64_C(1) << 32) /* tie: after the arrivals of the same time */

struct dag_run {
	const struct dag *d;
	uint32_t *succ_start, *succ, *n_missing; /* owned */
	double *free_ns;                         /* owned, of each link */
	struct bitmap ready, sent, arrived;
	struct sim_heap heap;
};

static void dag_deinit(struct dag_run *g)
{
	free(g->succ_start);
	free(g->succ);
	free(g->n_missing);
	free(g->free_ns);
	bitmap_deinit(&g->ready);
	bitmap_deinit(&g->sent);
	bitmap_deinit(&g->arrived);
	sim_heap_deinit(&g->heap);
}

static int dag_init(struct dag_run *g)
{
	const struct dag *d = g->d;
	uint32_t i, k, n_edges = d->n ? d->pred_start[d->n] : 0;

	g->succ_start = calloc((size_t)d->n + 2, sizeof(*g->succ_start));
	g->succ = calloc((size_t)n_edges + 1, sizeof(*g->succ));
	g->n_missing = calloc((size_t)d->n + 1, sizeof(*g->n_missing));
	g->free_ns = calloc((size_t)d->n_links + 1, sizeof(*g->free_ns));
	if (!g->succ_start || !g->succ || !g->n_missing || !g->free_ns ||
	    bitmap_init(&g->ready, d->n) || bitmap_init(&g->sent, d->n) ||
	    bitmap_init(&g->arrived, d->n))
		return -ENOMEM;
	for (i = 0; i < d->n; i++) {
		g->n_missing[i] = d->pred_start[i + 1] - d->pred_start[i];
		for (k = d->pred_start[i]; k < d->pred_start[i + 1]; k++)
			g->succ_start[d->pred[k] + 2]++;
	}
	for (i = 2; i < d->n + 2; i++)
		g->succ_start[i] += g->succ_start[i - 1];
	for (i = 0; i < d->n; i++)
		for (k = d->pred_start[i]; k < d->pred_start[i + 1]; k++)
			g->succ[g->succ_start[d->pred[k] + 1]++] = i;
	return 0;
}

static int make_ready(struct dag_run *g, uint32_t i, double now_ns)
{
	bitmap_set(&g->ready, i);
	return sim_heap_push(&g->heap, now_ns, IS_READY | i);
}

static int send_now(struct dag_run *g, uint32_t i, double now_ns)
{
	double *free_ns = &g->free_ns[g->d->link[i]];

	bitmap_set(&g->sent, i);
	*free_ns = (now_ns > *free_ns ? now_ns : *free_ns) + g->d->cost[i].occupancy_ns;
	return sim_heap_push(&g->heap, *free_ns + g->d->cost[i].latency_ns, i);
}

static int arrive_now(struct dag_run *g, uint32_t i, double now_ns)
{
	uint32_t k;
	int rc = 0;

	bitmap_set(&g->arrived, i);
	for (k = g->succ_start[i]; k < g->succ_start[i + 1] && !rc; k++)
		if (--g->n_missing[g->succ[k]] == 0)
			rc = make_ready(g, g->succ[k], now_ns);
	return rc;
}

static int dag_run(struct dag_run *g, double *ret_end_ns, struct err *err)
{
	uint64_t missing;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < g->d->n && !rc; i++)
		if (!g->n_missing[i])
			rc = make_ready(g, i, 0);
	while (g->heap.n && !rc) {
		struct sim_event e = g->heap.items[0];
		double now = sim_event_ns(&e);

		i = (uint32_t)e.tie;
		sim_heap_drop(&g->heap);
		if (e.tie & IS_READY) {
			rc = send_now(g, i, now);
		} else {
			ret_end_ns[i] = now;
			rc = arrive_now(g, i, now);
		}
	}
	if (rc)
		return err_set(err, -rc, "no memory to simulate %u messages", g->d->n);
	missing = bitmap_next_clear(&g->arrived, 0);
	if (missing != BITMAP_NONE)
		return err_set(err, EDEADLK,
			       "message %llu waits for ever: its predecessors wait for it",
			       (unsigned long long)missing);
	return 0;
}

int sim_dag(const struct dag *d, double *ret_end_ns, struct err *err)
{
	struct dag_run g = {.d = d};
	int rc = dag_init(&g);

	if (rc)
		err_set(err, -rc, "no memory to simulate %u messages", d->n);
	else
		rc = dag_run(&g, ret_end_ns, err);
	dag_deinit(&g);
	return rc;
}
