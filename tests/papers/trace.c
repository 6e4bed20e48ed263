/* dPRO's alignment of clocks (paper 003, section 4.2), against a job whose clocks are known. */
#include "papers.h"

#include <time.h>

#include "dfg/dfg.h"
#include "ring-trace.h"
#include "trace/align.h"
#include "trace/skew.h"

#define HOSTS 4
#define RANKS 8
#define STEPS 10
#define TENSORS 4
#define HOPS 14 /* 2 * (RANKS - 1) */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct found {
	double worst_us;             /* error of a clock, at any time of the trace */
	double widest_us;            /* bounds of a clock, without the variances */
	uint64_t reversed;           /* messages that are received before they are sent */
	double raw_pct, aligned_pct; /* by how much a replay is off, at worst; as it is at least */
};

/* dPRO's graph: a backward pass's op behind the one before, or behind the last step; a hop behind
 * the rank's last one, and the first behind the gradient and the tensor before. A hop takes as long
 * as its RECV. Return: when all of it is over. */
static double replay(const struct trace *t)
{
	static uint32_t backward[STEPS][TENSORS][RANKS], recv[STEPS][TENSORS][HOPS][RANKS];
	struct dfg *g = dfg_new();
	uint32_t stream[RANKS], tensor, hop, op;
	double end;
	int r = g ? 0 : -1;

	for (uint32_t rank = 0; rank < RANKS; rank++)
		r |= dfg_add_device(g, &stream[rank]);
	for (uint32_t i = 0; i < t->n_ops; i++) {
		const struct trace_op *o = &t->ops[i];
		const char *name = trace_name(t, o->name);
		double ns = o->end_ns - o->start_ns;

		if (sscanf(name, "BW.layer%u", &tensor) == 1)
			r |= dfg_add_op(g, stream[o->rank], ns, 0,
					&backward[o->step][tensor][o->rank]);
		else if (sscanf(name, "Comm.%u.RECV~>0_0_%u_0", &tensor, &hop) == 2)
			r |= dfg_add_op(g, DFG_PARALLEL, ns, 0,
					&recv[o->step][tensor][hop][o->rank]);
	}
	for (uint32_t s = 0; s < STEPS; s++)
		for (tensor = 0; tensor < TENSORS; tensor++)
			for (uint32_t to = 0; to < RANKS; to++) {
				uint32_t from = (to + RANKS - 1) % RANKS;

				for (hop = 0; hop < HOPS; hop++)
					r |= dfg_add_edge(g,
							  hop ? recv[s][tensor][hop - 1][from]
							      : backward[s][tensor][from],
							  recv[s][tensor][hop][to], 0);
				if (tensor)
					r |= dfg_add_edge(g, recv[s][tensor - 1][HOPS - 1][from],
							  recv[s][tensor][0][to], 0) |
					     dfg_add_edge(g, backward[s][tensor - 1][to],
							  backward[s][tensor][to], 0);
				else if (s)
					r |= dfg_add_edge(g, recv[s - 1][TENSORS - 1][HOPS - 1][to],
							  backward[s][0][to], 0);
			}
	if (r || dfg_play(g, DFG_EVENT, &op) < 0)
		abort();
	end = dfg_end(g, NULL);
	dfg_free(g);
	return end;
}

static double over(const struct trace *t)
{
	double end = 0;

	for (uint32_t i = 0; i < t->n_ops; i++)
		end = fmax(end, t->ops[i].end_ns);
	return end;
}

/* @drift_ppm: 0: the clocks run alike, and the job takes 0.3 s; else 9 s. */
static void align(double noise, uint64_t seed, double drift_ppm, struct found *f)
{
	const struct ring_job job = {.n_hosts = HOSTS,
				     .per_host = RANKS / HOSTS,
				     .n_steps = STEPS,
				     .n_tensors = TENSORS,
				     .compute_ns = drift_ppm > 0 ? 2e8 : 2e6,
				     .hop_ns = 4e5,
				     .noise = noise,
				     .seed = seed};
	double ns[HOSTS], drift[HOSTS];
	struct clocks c;
	struct trace t = {0};
	struct err err;
	double took;

	ring_trace(&t, &job);
	took = over(&t);
	for (uint32_t h = 0; h < HOSTS; h++) {
		ns[h] = 40e6 * ((double)(rng_hash(seed + 1000, h) >> 11) * 0x1p-53 - 0.5);
		drift[h] =
			drift_ppm * 1e-6 * ((double)(rng_hash(seed + 2000, h) >> 11) * 0x1p-52 - 1);
	}
	if (skew_apply(&t, &(struct skew){ns, drift, 5e6, seed}) < 0)
		abort();
	f->raw_pct = fmin(f->raw_pct, 100 * fabs(replay(&t) / took - 1));
	if (align_find(&t, drift_ppm > 0, &c, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	for (uint32_t h = 1; h < HOSTS; h++) {
		f->widest_us = fmax(f->widest_us, (c.hosts[h].high_ns - c.hosts[h].low_ns) / 1e3);
		for (int i = 0; i < 2; i++) { /* at both ends of the trace */
			double at = i ? 2 * c.middle_ns : 0;
			double shown = at + ns[h] + drift[h] * at;

			f->worst_us = fmax(f->worst_us, fabs(clocks_time(&c, h, shown) -
							     (at + ns[0] + drift[0] * at)) /
								1e3);
		}
	}
	if (align_apply(&t, &c) < 0)
		abort();
	f->reversed += align_reversed(&t);
	f->aligned_pct = fmax(f->aligned_pct, 100 * fabs(replay(&t) / took - 1));
	clocks_deinit(&c);
	trace_deinit(&t);
}

static struct found suite(double noise, int n_seeds, double drift_ppm)
{
	struct found f = {.raw_pct = INFINITY};

	for (int seed = 0; seed < n_seeds; seed++)
		align(noise, (uint64_t)seed, drift_ppm, &f);
	return f;
}

int main(void)
{
	double begin = seconds();
	struct found f = suite(0.03, 20, 0);

	papers_open("003 dPRO");
	papers_row("BD3 20 seeds, 3 % noise: worst clock, us", NAN, f.worst_us, 0);
	papers_holds("BD3 is at most 50 us", f.worst_us <= 50);
	papers_row("BD3 the bounds alone, us wide at most", NAN, f.widest_us, 0);
	papers_row("BD3 messages received before they are sent", 0, (double)f.reversed, 0);
	papers_row("BD3 replay of the aligned trace, % off at most", NAN, f.aligned_pct, 0);
	papers_holds("BD3 that is below 5 %", f.aligned_pct < 5);
	papers_row("BD3 replay without alignment, % off at least", NAN, f.raw_pct, 0);
	papers_holds("BD3 that is 10 % or more", f.raw_pct >= 10);
	papers_row("BD3 a problem with its replays, s", NAN, (seconds() - begin) / 20, 0);
	f = suite(0.10, 10, 0);
	papers_row("BD3 10 seeds, 10 % noise: worst clock, us", NAN, f.worst_us, 0);
	f = suite(0.20, 10, 0);
	papers_row("BD3 10 seeds, 20 % noise: worst clock, us", NAN, f.worst_us, 0);
	f = suite(0.03, 5, 100);
	papers_row("clocks that drift by up to 100 ppm, 9 s: worst clock, us", NAN, f.worst_us, 0);
	papers_holds("drift: worst clock at most 100 us", f.worst_us <= 100);
	return papers_close();
}
