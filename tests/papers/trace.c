/* dPRO's alignment of clocks (paper 003, section 4.2), against a job whose clocks are known. */
#include "papers.h"

#include <time.h>

#include "ring-trace.h"
#include "trace/align.h"
#include "trace/skew.h"

#define HOSTS 4

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct found {
	double worst_us;   /* error of a clock, at any time of the trace */
	double widest_us;  /* bounds of a clock, without the variances */
	uint64_t reversed; /* messages that are received before they are sent */
};

/* @drift_ppm: 0: the clocks run alike, and the job takes 0.3 s; else 9 s. */
static void align(double noise, uint64_t seed, double drift_ppm, struct found *f)
{
	const struct ring_job job = {.n_hosts = HOSTS,
				     .per_host = 2,
				     .n_steps = 10,
				     .n_tensors = 4,
				     .compute_ns = drift_ppm > 0 ? 2e8 : 2e6,
				     .hop_ns = 4e5,
				     .noise = noise,
				     .seed = seed};
	double ns[HOSTS], drift[HOSTS];
	struct clocks c;
	struct trace t = {0};
	struct err err;

	ring_trace(&t, &job);
	for (uint32_t h = 0; h < HOSTS; h++) {
		ns[h] = 40e6 * ((double)(rng_hash(seed + 1000, h) >> 11) * 0x1p-53 - 0.5);
		drift[h] =
			drift_ppm * 1e-6 * ((double)(rng_hash(seed + 2000, h) >> 11) * 0x1p-52 - 1);
	}
	if (skew_apply(&t, &(struct skew){ns, drift, 5e6, seed}) < 0)
		abort();
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
	clocks_deinit(&c);
	trace_deinit(&t);
}

static struct found suite(double noise, int n_seeds, double drift_ppm)
{
	struct found f = {0};

	for (int seed = 0; seed < n_seeds; seed++)
		align(noise, (uint64_t)seed, drift_ppm, &f);
	return f;
}

int main(void)
{
	double begin = seconds();
	struct found f = suite(0.03, 20, 0);

	papers_open("003");
	papers_row("BD3 20 seeds, 3 % noise: worst clock, us", NAN, f.worst_us, 0);
	papers_holds("BD3 is at most 50 us", f.worst_us <= 50);
	papers_row("BD3 the bounds alone, us wide at most", NAN, f.widest_us, 0);
	papers_row("BD3 messages received before they are sent", 0, (double)f.reversed, 0);
	papers_row("BD3 a problem, s", NAN, (seconds() - begin) / 20, 0);
	f = suite(0.10, 10, 0);
	papers_row("BD3 10 seeds, 10 % noise: worst clock, us", NAN, f.worst_us, 0);
	f = suite(0.20, 10, 0);
	papers_row("BD3 10 seeds, 20 % noise: worst clock, us", NAN, f.worst_us, 0);
	f = suite(0.03, 5, 100);
	papers_row("clocks that drift by up to 100 ppm, 9 s: worst clock, us", NAN, f.worst_us, 0);
	papers_holds("drift: worst clock at most 100 us", f.worst_us <= 100);
	return papers_close();
}
