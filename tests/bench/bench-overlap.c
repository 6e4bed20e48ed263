/* Ops that share the network, judged: as a fluid against a simulation of all their messages;
 * max-min rates against a slow water-filling; what they cost.
 *
 * bench-overlap [--json FILE] [--verbose] [PART...]     shares, rates, messages, costs, iteration
 */
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/solve.h"
#include "overlap-bench.h"

double bench_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void bench_fail(const char *what)
{
	fprintf(stderr, "bench-overlap: %s\n", what);
	exit(1);
}

/* The plug-ins of this build: beside tests/ in the build folder. */
static const char *models_dir(void)
{
	static char dir[PATH_MAX];
	char exe[PATH_MAX - 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		bench_fail("cannot find its own folder");
	exe[n] = '\0';
	for (int i = 0; i < 3 && strrchr(exe, '/'); i++)
		*strrchr(exe, '/') = '\0';
	snprintf(dir, sizeof(dir), "%s/delaymodels", exe);
	return dir;
}

struct bench_world bench_world(const char *preset, uint32_t nodes, enum fabric_network_kind kind,
			       double oversubscription)
{
	const char *dirs[] = {models_dir(), NULL};
	struct bench_world w = {.t = {.n_nodes = nodes}};
	struct err err = {""};

	if (fabric_preset(preset, nodes, 0, &w.f, &err))
		bench_fail(err.text);
	w.f->network.kind = kind;
	w.f->network.oversubscription = oversubscription;
	w.f->network.nodes_per_leaf = nodes > 64 ? 32 : 4;
	w.f->network.hop_latency_ns = 300;
	w.t.gpus_per_node = w.f->gpus_per_node;
	w.t.intra = w.t.inter = (struct hop_cost){1000, 50};
	if (delay_open("nccl", NULL, NULL, 0, &w.t, dirs, 0, &w.d, &err))
		bench_fail(err.text);
	delay_set_fabric(w.d, w.f);
	return w;
}

void bench_world_end(struct bench_world *w)
{
	delay_free(w->d);
	fabric_free(w->f);
}

void bench_usage(const struct bench_world *w, struct bench_op *o, const struct usage_images *images)
{
	struct err err = {""};

	if (usage_of_op(&o->s, &w->t, &o->m, w->d, 0, images, &o->usage, &err))
		bench_fail(err.text);
}

bool bench_op(const struct bench_world *w, struct bench_op *ret, enum coll_kind kind,
	      uint64_t bytes, const struct membership *m)
{
	struct timing timing = {0};
	struct err err = {""};

	*ret = (struct bench_op){.s = {.kind = kind,
				       .algo = sched_default_algo(kind),
				       .n_ranks = m->n_ranks,
				       .ranks_per_node = 1,
				       .n_channels = 1,
				       .elem_bytes = 4,
				       .bytes = bytes / 4 * 4},
				 .m = *m};
	if (sched_init(&ret->s, &err) ||
	    solve(&ret->s, &w->t, &ret->m, w->d, NULL, 0, 0, &timing, &err))
		bench_fail(err.text);
	ret->solo_ns = timing.end_ns;
	bench_usage(w, ret, NULL);
	return timing.plan.whole_ns < 0;
}

void bench_note(struct bench_score *s, double v)
{
	if (s->n == s->capacity) {
		s->capacity = s->capacity ? 2 * s->capacity : 256;
		s->values = realloc(s->values, s->capacity * sizeof(*s->values));
		if (!s->values)
			bench_fail("no memory");
	}
	s->values[s->n++] = v;
}

static int by_size(const void *a, const void *b)
{
	double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

	return (x > y) - (x < y);
}

double bench_at(struct bench_score *s, double at)
{
	if (!s->n)
		return NAN;
	qsort(s->values, s->n, sizeof(*s->values), by_size);
	return s->values[(uint32_t)(at * (s->n - 1))];
}

void bench_free(struct bench_score *s)
{
	free(s->values);
	*s = (struct bench_score){0};
}

void bench_row(struct bench_output *out, const char *format, ...)
{
	va_list args;

	if (!out->json)
		return;
	fprintf(out->json, out->has_rows ? ",\n  " : "\n  ");
	out->has_rows = true;
	va_start(args, format);
	vfprintf(out->json, format, args);
	va_end(args);
}

void bench_cost_row(struct bench_output *out, const char *what, struct bench_score *s)
{
	printf("%-44s %10.2f %10.2f %10.2f\n", what, bench_at(s, 0.5), bench_at(s, 0.99),
	       bench_at(s, 1));
	bench_row(out,
		  "{\"what\": \"%s\", \"median_us\": %.3f, \"p99_us\": %.3f, \"worst_us\": %.3f}",
		  what, bench_at(s, 0.5), bench_at(s, 0.99), bench_at(s, 1));
}

static const struct {
	const char *name;
	void (*run)(struct bench_output *out);
} parts[] = {{"shares", bench_shares},
	     {"rates", bench_rates},
	     {"messages", bench_messages},
	     {"costs", bench_costs},
	     {"iteration", bench_iteration}};

int main(int argc, char **argv)
{
	bool is_wanted[ARRAY_SIZE(parts)] = {0}, is_any = false;
	struct bench_output out = {0};

	for (int i = 1; i < argc; i++) {
		bool is_known = false;

		for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
			if (strcmp(argv[i], parts[p].name) == 0)
				is_wanted[p] = is_any = is_known = true;
		if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
			out.json = fopen(argv[++i], "w");
			if (!out.json)
				bench_fail("cannot write the file of --json");
			fprintf(out.json, "{\"name\": \"overlap\", \"rows\": [");
		} else if (strcmp(argv[i], "--verbose") == 0) {
			out.is_verbose = true;
		} else if (!is_known) {
			bench_fail("usage: bench-overlap [--json FILE] [--verbose] "
				   "[shares|rates|messages|costs|iteration]");
		}
	}
	for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
		if (is_wanted[p] || !is_any)
			parts[p].run(&out);
	if (out.json) {
		fprintf(out.json, "\n]}\n");
		fclose(out.json);
	}
	return 0;
}
