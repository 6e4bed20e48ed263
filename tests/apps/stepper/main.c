/* A training job's skeleton: it reads what a job computes and communicates (job.h), and does that
 * in the order of the frameworks (plan.h) with NCCL and the CUDA runtime API alone. Computation
 * sleeps. README.md is for users.
 *
 *   RANK=r WORLD_SIZE=n stepper ddp.job [options]      (options.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "stepper/job.h"
#include "stepper/options.h"
#include "stepper/pace.h"
#include "stepper/place.h"
#include "stepper/plan.h"
#include "stepper/run.h"

#define MAX_JOB_BYTES (1 << 20)

struct stepper {
	struct options options;
	struct job job;
	struct pace pace;
	struct place place;
	struct plan plan;
	double *iteration_ms, *exposed_ms;
};

static int number_from_env(const char *name, uint32_t otherwise, uint32_t *ret, struct err *err)
{
	const char *text = getenv(name);
	uint64_t n = otherwise;

	if (text && *text && units_count(text, &n, err) < 0)
		return err_prefix(err, -EINVAL, "%s", name);
	if (n > 1 << 24)
		return err_set(err, EINVAL, "%s=%s is too large", name, text);
	*ret = (uint32_t)n;
	return 0;
}

static int read_job(struct stepper *s, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	size_t n;
	int r = file_read(s->options.job, MAX_JOB_BYTES, &text, &n, err);

	if (r == -EFBIG)
		return err_set(err, EFBIG, "%s has more than %d bytes: is it a job?",
			       s->options.job, MAX_JOB_BYTES);
	if (r < 0)
		return r;
	if (strlen(text) != n)
		return err_set(err, EINVAL, "%s is no text", s->options.job);
	r = job_parse(s->options.job, text, &s->job, err);
	if (r < 0)
		return r;
	r = job_fit(&s->job, s->pace.world, err);
	return r < 0 ? err_prefix(err, r, "%s", s->options.job) : 0;
}

static int read_pace(struct stepper *s, struct err *err)
{
	int r = 0;

	s->pace.n_layers = s->job.n_layers;
	s->pace.seed = s->options.seed;
	for (size_t i = 0; r == 0 && i < s->options.n_slow; i++)
		if ((r = pace_add_slow(&s->pace, s->options.slow[i], err)) < 0)
			return err_prefix(err, r, "--slow");
	if (s->options.jitter && (r = pace_set_jitter(&s->pace, s->options.jitter, err)) < 0)
		return err_prefix(err, r, "--jitter");
	return 0;
}

static int prepare(struct stepper *s, uint32_t *ret_local_rank, struct err *err)
{
	int r = number_from_env("RANK", 0, &s->pace.rank, err);

	if (r == 0)
		r = number_from_env("WORLD_SIZE", 1, &s->pace.world, err);
	if (r == 0)
		r = number_from_env("LOCAL_RANK", s->pace.rank, ret_local_rank, err);
	if (r == 0 && s->pace.rank >= s->pace.world)
		r = err_set(err, EINVAL, "RANK=%u is not below WORLD_SIZE=%u", s->pace.rank,
			    s->pace.world);
	if (r == 0)
		r = read_job(s, err);
	if (r == 0)
		r = read_pace(s, err);
	if (r < 0)
		return r;
	place_find(&s->job, s->pace.rank, &s->place);
	s->iteration_ms = calloc(s->options.iterations, sizeof(double));
	s->exposed_ms = calloc(s->options.iterations, sizeof(double));
	if (!s->iteration_ms || !s->exposed_ms || plan_make(&s->job, &s->place, &s->plan) < 0)
		return err_set(err, ENOMEM, "no memory");
	return 0;
}

/* --- the result ------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of sorted numbers, between neighbours in proportion. */
static double quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t below = (size_t)at, above = below + 1 < n ? below + 1 : below;

	return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

static int write_json(const struct stepper *s, const double *sorted, double exposed)
{
	size_t n = s->options.iterations;
	FILE *f = fopen(s->options.json, "w");

	if (!f)
		return -errno;
	fprintf(f,
		"{\"world\": %u, \"ops\": %zu, \"iteration_ms\": %.4f, \"q1_ms\": %.4f, "
		"\"q3_ms\": %.4f, \"exposed_ms\": %.4f, \"iterations\": [",
		s->pace.world, s->plan.n_ops, quantile(sorted, n, 0.5), quantile(sorted, n, 0.25),
		quantile(sorted, n, 0.75), exposed);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%.4f", i ? ", " : "", s->iteration_ms[i]);
	fprintf(f, "]}\n");
	return file_close(f);
}

/* Return: the exit code. */
static int report(struct stepper *s)
{
	size_t n = s->options.iterations;
	CLEANUP(freep) double *sorted = malloc(n * sizeof(double));
	double exposed;
	int r;

	if (!sorted) {
		fprintf(stderr, "stepper: no memory\n");
		return 1;
	}
	memcpy(sorted, s->iteration_ms, n * sizeof(double));
	qsort(sorted, n, sizeof(double), by_size);
	qsort(s->exposed_ms, n, sizeof(double), by_size);
	exposed = quantile(s->exposed_ms, n, 0.5);
	printf("%s on %u rank%s, %zu iteration%s: %.2f ms (quartiles %.2f and %.2f), exposed %.2f "
	       "ms\n",
	       s->options.job, s->pace.world, s->pace.world > 1 ? "s" : "", n, n > 1 ? "s" : "",
	       quantile(sorted, n, 0.5), quantile(sorted, n, 0.25), quantile(sorted, n, 0.75),
	       exposed);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "stepper: cannot print the result: %s\n", strerror(errno));
		return 1;
	}
	if (!s->options.json)
		return 0;
	r = write_json(s, sorted, exposed);
	if (r < 0)
		fprintf(stderr, "stepper: cannot write %s: %s\n", s->options.json, strerror(-r));
	return r < 0;
}

static void measure(struct stepper *s, uint32_t local_rank)
{
	struct run *run = run_new(&s->place, &s->plan, &s->pace, (int)local_rank,
				  s->options.id_file, s->options.is_graph);
	uint32_t warmup = s->options.warmup;
	struct run_times times;

	for (uint32_t i = 0; i < warmup + s->options.iterations; i++) {
		times = run_iteration(run, i);
		if (i < warmup)
			continue;
		s->iteration_ms[i - warmup] = times.iteration_ms;
		s->exposed_ms[i - warmup] = times.exposed_ms;
	}
	run_free(run);
}

int main(int argc, char **argv)
{
	struct stepper s = {0};
	struct err err = {""};
	uint32_t local_rank;
	int r = options_take(argc, argv, &s.options, &err), status = 0;

	if (r == OPTIONS_HELP) {
		fputs(options_usage, stdout);
		return 0;
	}
	if (r == 0)
		r = prepare(&s, &local_rank, &err);
	if (r == 0) {
		measure(&s, local_rank);
		status = s.pace.rank == 0 ? report(&s) : 0;
	} else {
		fprintf(stderr, "stepper: %s\n", err.text);
		status = 2;
	}
	plan_deinit(&s.plan);
	job_deinit(&s.job);
	free(s.iteration_ms);
	free(s.exposed_ms);
	return status;
}
