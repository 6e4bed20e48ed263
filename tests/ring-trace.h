/* A job whose times are all known: ranks on hosts compute, and reduce each tensor around a ring,
 * hop by hop, with noise on everything that takes time. */
#pragma once

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "trace/finish.h"

struct ring_job {
	uint32_t n_hosts, per_host, n_steps, n_tensors;
	double compute_ns, hop_ns; /* of a tensor's backward; of a hop between hosts: inside one a
				      quarter of that */
	double noise;              /* of each time, relative; normal */
	uint64_t seed;
};

static inline double ring_noise(const struct ring_job *job, uint64_t *count)
{
	double u = ((double)(rng_hash(job->seed, (*count)++) >> 11) + 0.5) * 0x1p-53;
	double v = (double)(rng_hash(job->seed, (*count)++) >> 11) * 0x1p-53;

	return fmax(0.05, 1 + job->noise * sqrt(-2 * log(u)) * cos(2 * M_PI * v));
}

static inline void ring_op(struct trace *t, uint32_t rank, uint32_t step, enum trace_kind kind,
			   const char *name, uint32_t peer, double start, double end)
{
	struct trace_op op = {.kind = kind,
			      .rank = rank,
			      .stream = kind != TRACE_COMPUTE,
			      .step = step,
			      .start_ns = start,
			      .end_ns = end,
			      .seq = UINT64_MAX,
			      .coll = TRACE_NONE,
			      .comm = TRACE_NONE,
			      .peer = peer,
			      .launched_by = TRACE_NONE};
	struct err err;

	if (trace_add_name(t, name, &op.name) < 0 || trace_add_op(t, &op, NULL, &err) < 0)
		abort();
}

/* One step from when each rank is ready, which becomes when it is ready for the next one. */
static inline void ring_step(struct trace *t, const struct ring_job *job, uint32_t step,
			     double *ready, uint64_t *count)
{
	uint32_t n = job->n_hosts * job->per_host;
	double free_at[64] = {0}, has[64], computed[64];
	char name[64];

	for (uint32_t r = 0; r < n; r++)
		computed[r] = ready[r];
	for (uint32_t tensor = 0; tensor < job->n_tensors; tensor++) {
		for (uint32_t r = 0; r < n; r++) {
			double end = computed[r] + job->compute_ns * ring_noise(job, count);

			snprintf(name, sizeof(name), "BW.layer%u", tensor);
			ring_op(t, r, step, TRACE_COMPUTE, name, TRACE_NONE, computed[r], end);
			computed[r] = end;
			has[r] = fmax(end, free_at[r]);
		}
		for (uint32_t hop = 0; hop < 2 * (n - 1); hop++) {
			double got[64];

			for (uint32_t r = 0; r < n; r++) {
				uint32_t to = (r + 1) % n;
				double takes = job->hop_ns * ring_noise(job, count) *
					       (to / job->per_host == r / job->per_host ? 0.25 : 1);

				snprintf(name, sizeof(name), "Comm.%u.SEND~>0_0_%u_0", tensor, hop);
				ring_op(t, r, step, TRACE_SEND, name, to, has[r], has[r] + takes);
				snprintf(name, sizeof(name), "Comm.%u.RECV~>0_0_%u_0", tensor, hop);
				ring_op(t, to, step, TRACE_RECV, name, r, has[r], has[r] + takes);
				got[to] = has[r] + takes;
			}
			for (uint32_t r = 0; r < n; r++)
				has[r] = fmax(has[r], got[r]);
		}
		for (uint32_t r = 0; r < n; r++)
			free_at[r] = has[r];
	}
	for (uint32_t r = 0; r < n; r++)
		ready[r] = fmax(computed[r], free_at[r]);
}

/* At most 64 ranks. @t: zeros. */
static inline void ring_trace(struct trace *t, const struct ring_job *job)
{
	double ready[64] = {0};
	uint64_t count = 0;
	char host[16];
	uint32_t number, rank;

	for (uint32_t r = 0; r < job->n_hosts * job->per_host; r++) {
		snprintf(host, sizeof(host), "host%u", r / job->per_host);
		if (trace_add_host(t, host, &number) < 0 || trace_add_rank(t, r, number, &rank) < 0)
			abort();
	}
	for (uint32_t step = 0; step < job->n_steps; step++)
		ring_step(t, job, step, ready, &count);
	if (trace_finish(t) < 0)
		abort();
}
