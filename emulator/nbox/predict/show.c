#include "nbox/predict/show.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define LINES_MAX 16 /* ranks, parts of the path, collectives */
#define ASKED_MAX 64 /* collectives whose culprits are asked what they cost */
#define NAME_WIDTH 60

void shown_deinit(struct shown *s)
{
	predict_deinit(&s->p);
	task_deinit(&s->task);
	free(s->path);
	free(s->blames);
}

static const char *name_of(const struct shown *s, uint32_t kernel)
{
	return kernel == PREDICT_NONE ? "host"
				      : trace_name(&s->q->trace, s->task.t.kernels[kernel].name);
}

/* Rank of the world: copies come behind those of the trace. */
static uint32_t world_rank(const struct shown *s, uint32_t rank)
{
	return rank < s->q->trace.n_ranks && request_ranks(s->q) == s->q->trace.n_ranks
		       ? s->q->trace.ranks[rank].rank
		       : rank;
}

/* --- the path, in parts --- */

/* Segments that are one part stand together. */
static int by_part(const void *a, const void *b, void *ctx)
{
	const struct path_segment *x = a, *y = b;
	const struct shown *s = ctx;
	uint32_t m, n;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->part != PATH_KERNEL)
		return 0;
	m = s->task.t.kernels[x->kernel].name;
	n = s->task.t.kernels[y->kernel].name;
	return m < n ? -1 : m > n;
}

static int by_length(const void *a, const void *b)
{
	const struct path_segment *x = a, *y = b;
	double m = x->end - x->begin, n = y->end - y->begin;

	return m != n ? (m > n ? -1 : 1) : x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void merge_path(struct shown *s)
{
	uint32_t kept = 0;

	qsort_r(s->path, s->n_path, sizeof(*s->path), by_part, s);
	for (uint32_t i = 0; i < s->n_path; i++) {
		struct path_segment *last = &s->path[kept ? kept - 1 : 0];

		if (kept && by_part(last, &s->path[i], s) == 0)
			last->end += s->path[i].end - s->path[i].begin;
		else
			s->path[kept++] = s->path[i];
	}
	s->n_path = kept;
	qsort(s->path, kept, sizeof(*s->path), by_length);
}

int shown_make(const struct predict_request *q, bool has_blames, struct shown *ret, struct err *err)
{
	struct shown s = {.q = q, .iteration = (q->n_iterations - 1) / 2};
	int r = request_play_one(q, s.iteration, &s.task, &s.p, err);

	if (r < 0)
		return r;
	r = path_find(&s.p, &s.path, &s.n_path);
	if (r == 0 && has_blames)
		r = blame_find(&s.task.t, q->sync, &s.p, ASKED_MAX, &s.blames, &s.n_blames);
	if (r < 0) {
		shown_deinit(&s);
		return err_set(err, ENOMEM, "out of memory");
	}
	merge_path(&s);
	*ret = s;
	return 0;
}

/* --- text --- */

struct means {
	double ns, baseline_ns, traced_ns;
};

static struct means means_of(const struct predict_request *q)
{
	struct means m = {.ns = 0};

	for (uint32_t i = 0; i < q->n_iterations; i++) {
		m.ns += q->iterations[i].ns / q->n_iterations;
		m.baseline_ns += q->iterations[i].baseline_ns / q->n_iterations;
		m.traced_ns += q->iterations[i].traced_ns / q->n_iterations;
	}
	return m;
}

static double off_pct(double ns, double from)
{
	return from > 0 ? 100 * (ns / from - 1) : 0;
}

static void print_means(const struct shown *s, FILE *to)
{
	const struct predict_request *q = s->q;
	struct means m = means_of(q);

	fprintf(to, "predicted  %12.3f ms", m.ns / 1e6);
	if (q->n_iterations > 1)
		fprintf(to, "  the mean of %u iterations, %.3f to %.3f", q->n_iterations,
			q->iterations[0].ns / 1e6, q->iterations[q->n_iterations - 1].ns / 1e6);
	if (q->n_partial)
		fprintf(to, "; %u that %s not whole left out", q->n_partial,
			q->n_partial > 1 ? "are" : "is");
	if (q->n_warm_up)
		fprintf(to, "; %u left out as warm-up", q->n_warm_up);
	fprintf(to, "\ntraced     %12.3f ms  the prediction is %+.2f %% off it\n",
		m.traced_ns / 1e6, off_pct(m.ns, m.traced_ns));
	fprintf(to, "baseline   %12.3f ms  the longest stream's kernels, %+.2f %% off the traced\n",
		m.baseline_ns / 1e6, off_pct(m.baseline_ns, m.traced_ns));
}

static void print_ranks(const struct shown *s, FILE *to)
{
	uint32_t n = s->task.t.n_ranks;

	fprintf(to, "%6s%12s%14s%12s%12s%12s%12s%12s\n", "rank", "host, ms", "compute", "comm",
		"lookup", "copy", "active", "exposed");
	for (uint32_t r = 0; r < n && r < LINES_MAX; r++) {
		const struct predict_front *f = &s->p.ranks[r];

		fprintf(to, "%6u%12.3f%14.3f%12.3f%12.3f%12.3f%12.3f%12.3f%s\n", world_rank(s, r),
			f->host / 1e6, f->compute / 1e6, f->comm / 1e6,
			f->sum[PREDICT_LOOKUP] / 1e6, f->sum[PREDICT_COPY] / 1e6, f->active / 1e6,
			f->exposed / 1e6, r == s->p.last ? "  <- ends last" : "");
	}
	if (n > LINES_MAX)
		fprintf(to, "   ... and %u ranks more\n", n - LINES_MAX);
}

static const char *const part_names[] = {[PATH_KERNEL] = "",
					 [PATH_GAP] = "gaps between kernels",
					 [PATH_LAUNCH] = "launches, until they run",
					 [PATH_HOST] = "the host"};

static void print_path(const struct shown *s, FILE *to)
{
	double rest = 0;

	for (uint32_t i = 0; i < s->n_path; i++) {
		const struct path_segment *seg = &s->path[i];
		double ns = seg->end - seg->begin;

		if (i >= LINES_MAX) {
			rest += ns;
			continue;
		}
		fprintf(to, "%s%12.3f ms%7.1f %%  %.*s, rank %u\n",
			i ? "               " : "critical path  ", ns / 1e6, 100 * ns / s->p.ns,
			NAME_WIDTH,
			seg->part == PATH_KERNEL ? name_of(s, seg->kernel) : part_names[seg->part],
			world_rank(s, seg->rank));
	}
	if (rest > 0)
		fprintf(to, "               %12.3f ms%7.1f %%  the rest\n", rest / 1e6,
			100 * rest / s->p.ns);
}

void shown_print(const struct shown *s, FILE *to)
{
	const struct predict_iteration *it = &s->q->iterations[s->iteration];

	request_print(s->q, s->task.has_host, to);
	print_means(s, to);
	if (s->q->n_iterations > 1)
		fprintf(to, "iteration %u, the one in the middle: %.3f ms\n", it->step,
			it->ns / 1e6);
	print_ranks(s, to);
	print_path(s, to);
}

static enum predict_class imbalance_class(const struct shown *s)
{
	for (uint32_t r = 0; r < s->task.t.n_ranks; r++)
		if (s->p.ranks[r].sum[PREDICT_LOOKUP] > 0)
			return PREDICT_LOOKUP;
	return PREDICT_COMPUTE;
}

static const char *collective_name(const struct shown *s, const struct blame *b)
{
	return b->join == PREDICT_NONE ? "all its messages"
				       : name_of(s, predict_kernel_of(&s->task.t.ops[b->op]));
}

void shown_print_blames(const struct shown *s, FILE *to)
{
	enum predict_class class = imbalance_class(s);
	double waits = 0;

	request_print(s->q, s->task.has_host, to);
	for (uint32_t i = 0; i < s->n_blames; i++)
		waits += s->blames[i].wait_sum;
	fprintf(to, "%10s%9s%14s%14s%12s%12s%10s%10s%12s  %s\n", "won, ms", "culprit", "waits, ms",
		"longest", "lookup", "compute", "copy", "host", "median", "collective");
	for (uint32_t i = 0; i < s->n_blames && i < LINES_MAX; i++) {
		const struct blame *b = &s->blames[i];

		if (isnan(b->won))
			break;
		fprintf(to, "%10.3f%9u%14.3f%14.3f%12.3f%12.3f%10.3f%10.3f%12.3f  %.*s\n",
			b->won / 1e6, world_rank(s, b->rank), b->wait_sum / 1e6, b->wait_max / 1e6,
			b->stretch.sum[PREDICT_LOOKUP] / 1e6, b->stretch.sum[PREDICT_COMPUTE] / 1e6,
			b->stretch.sum[PREDICT_COPY] / 1e6, b->stretch.host / 1e6, b->median / 1e6,
			NAME_WIDTH, collective_name(s, b));
	}
	if (request_ranks(s->q) == 1)
		fprintf(to,
			"one rank was recorded, which waits for nobody: nbox run --real 0-7, or a trace "
			"of each rank\n");
	fprintf(to,
		"won: how much sooner the iteration of %.3f ms is over if the culprit's kernels before the collective take the\n"
		"ranks' median, predicted again. Where they wait for a message, all kernels of the culprit and of ranks as slow (its stage) take the median.\n"
		"All waits together are %.3f ms: a sum over ranks, which nobody can win.\n"
		"exposed communication %.1f %% of the iteration, at the rank that has least; imbalance of %s %.1f %%\n",
		s->p.ns / 1e6, waits / 1e6, 100 * blame_comm(&s->task.t, &s->p),
		class == PREDICT_LOOKUP ? "look-ups" : "computation",
		100 * blame_imbalance(&s->task.t, &s->p, class));
}

/* --- JSON --- */

static json_t *front_json(const struct shown *s, uint32_t rank)
{
	const struct predict_front *f = &s->p.ranks[rank];

	return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "rank",
			 (int)world_rank(s, rank), "host_ms", f->host / 1e6, "compute_ms",
			 f->compute / 1e6, "comm_ms", f->comm / 1e6, "lookup_ms",
			 f->sum[PREDICT_LOOKUP] / 1e6, "copy_ms", f->sum[PREDICT_COPY] / 1e6,
			 "active_ms", f->active / 1e6, "exposed_ms", f->exposed / 1e6);
}

static json_t *blame_json(const struct shown *s, const struct blame *b)
{
	json_t *o = json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "collective",
			      collective_name(s, b), "culprit", (int)world_rank(s, b->rank),
			      "waits_ms", b->wait_sum / 1e6, "longest_wait_ms", b->wait_max / 1e6,
			      "lookup_ms", b->stretch.sum[PREDICT_LOOKUP] / 1e6, "compute_ms",
			      b->stretch.sum[PREDICT_COMPUTE] / 1e6, "copy_ms",
			      b->stretch.sum[PREDICT_COPY] / 1e6, "host_ms", b->stretch.host / 1e6,
			      "median_ms", b->median / 1e6);

	json_object_set_new(o, "won_ms", isnan(b->won) ? json_null() : json_real(b->won / 1e6));
	return o;
}

json_t *shown_json(const struct shown *s)
{
	struct means m = means_of(s->q);
	json_t *doc = json_pack("{s:f, s:f, s:f, s:f, s:s}", "predicted_ms", m.ns / 1e6,
				"traced_ms", m.traced_ns / 1e6, "error_pct",
				off_pct(m.ns, m.traced_ns), "baseline_ms", m.baseline_ns / 1e6,
				"sync", s->q->sync == PREDICT_PAPER ? "paper" : "event");
	json_t *iterations = json_array(), *ranks = json_array(), *path = json_array();

	for (uint32_t i = 0; i < s->q->n_iterations; i++) {
		const struct predict_iteration *it = &s->q->iterations[i];

		json_array_append_new(iterations,
				      json_pack("{s:o, s:f, s:f, s:f}", "step",
						it->step == TRACE_NONE ? json_null()
								       : json_integer(it->step),
						"predicted_ms", it->ns / 1e6, "traced_ms",
						it->traced_ns / 1e6, "baseline_ms",
						it->baseline_ns / 1e6));
	}
	for (uint32_t r = 0; r < s->task.t.n_ranks; r++)
		json_array_append_new(ranks, front_json(s, r));
	for (uint32_t i = 0; i < s->n_path; i++)
		json_array_append_new(path,
				      json_pack("{s:i, s:s, s:f}", "rank",
						(int)world_rank(s, s->path[i].rank), "part",
						s->path[i].part == PATH_KERNEL
							? name_of(s, s->path[i].kernel)
							: part_names[s->path[i].part],
						"ms", (s->path[i].end - s->path[i].begin) / 1e6));
	json_object_set_new(doc, "iterations", iterations);
	json_object_set_new(doc, "partial_iterations", json_integer(s->q->n_partial));
	json_object_set_new(doc, "warm_up_iterations", json_integer(s->q->n_warm_up));
	json_object_set_new(doc, "ranks", ranks);
	json_object_set_new(doc, "critical_path", path);
	if (s->blames) {
		json_t *blames = json_array();

		for (uint32_t i = 0; i < s->n_blames; i++)
			json_array_append_new(blames, blame_json(s, &s->blames[i]));
		json_object_set_new(doc, "blame", blames);
		json_object_set_new(doc, "exposed_share", json_real(blame_comm(&s->task.t, &s->p)));
		json_object_set_new(doc, "imbalance_share",
				    json_real(blame_imbalance(&s->task.t, &s->p,
							      imbalance_class(s))));
	}
	return doc;
}
