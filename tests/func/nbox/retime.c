/* Feeds timelines with a run's record and nothing else, and compares what they say with what the
 * run had.
 *
 * retime RECORD FOLDER-OF-DELAY-MODELS */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/delay.h"
#include "engine/record-read.h"
#include "timeline/timeline.h"
#include "wire/wire.h"

#define WHAT_IFS_MAX 16

/* What nboxd took, one after the other. */
struct step {
	uint64_t order;
	bool is_done;                     /* nboxd learns when the op's gate has opened */
	const struct record_point *point; /* NULL: of an op */
	uint64_t op;                      /* index */
};

static struct {
	struct record rec;
	struct delay_chain *delay;
	struct timelines *timelines;
	uint64_t epoch_ns;
	struct timeline_node **nodes; /* owned list; by op */
	uint32_t *n_missing; /* owned list; by an op's number: ranks that do not wait yet */
	uint64_t n_compared, worst_ns; /* worst_ns: the largest difference of a time */
} g;

static int by_order(const void *pa, const void *pb)
{
	const struct step *a = pa, *b = pb;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return b->is_done - a->is_done;
}

/* --- what the record says of the run --------------------------------------------------------- */

/* "ring + slow:rank=3,compute=2" */
static int open_models(const char *dir, struct err *err)
{
	const char *dirs[] = {dir, NULL}, *what_ifs[WHAT_IFS_MAX];
	const struct record_header *h = &g.rec.header;
	const struct topology world = {.n_nodes = h->n_nodes, .gpus_per_node = h->gpus_per_node};
	char text[sizeof(h->model)], *next;
	size_t n = 0;

	memcpy(text, h->model, sizeof(text));
	for (char *at = text; (next = strstr(at, " + ")) && n < WHAT_IFS_MAX; at = next + 3) {
		*next = '\0';
		what_ifs[n++] = next + 3;
	}
	return delay_open("none", NULL, what_ifs, n, &world, dirs, h->seed, &g.delay, err);
}

static int segment(void *ctx, uint32_t world_rank, uint64_t number, double start, double ns,
		   double *ret_ns, struct err *err)
{
	return delay_segment(ctx, world_rank, number, start, ns, ret_ns, err);
}

static int make_timelines(struct err *err)
{
	const struct record_header *h = &g.rec.header;
	const struct topology world = {.n_nodes = h->n_nodes, .gpus_per_node = h->gpus_per_node};
	const struct timeline_what_if what_if = {.segment = delay_has_segments(g.delay) ? segment
											: NULL,
						 .ctx = g.delay};
	CLEANUP(freep) bool *is_real = calloc(h->world_size + 1, sizeof(*is_real));
	CLEANUP(freep) uint32_t *real = calloc(h->world_size + 1, sizeof(*real));
	size_t n = 0;

	if (!is_real || !real)
		return -ENOMEM;
	for (uint64_t i = 0; i < g.rec.n_comms; i++)
		for (uint32_t k = 0; k < g.rec.comms[i].n_real; k++)
			is_real[g.rec.comms[i].real[k].world_rank] = true;
	for (uint32_t i = 0; i < h->world_size; i++)
		if (is_real[i])
			real[n++] = i;
	if (n == 0)
		return err_set(err, EINVAL, "the record has no communicator");
	return timelines_new(&world, real, n, &what_if, &g.timelines);
}

static int take_steps(struct step **ret, uint64_t *ret_n)
{
	struct step *steps = calloc(2 * g.rec.n_ops + g.rec.n_points + 1, sizeof(*steps));
	uint64_t n = 0, max = 0;

	*ret = steps;
	g.nodes = calloc(g.rec.n_ops + 1, sizeof(struct timeline_node *));
	for (uint64_t i = 0; i < g.rec.n_ops; i++)
		max = g.rec.ops[i].number > max ? g.rec.ops[i].number : max;
	g.n_missing = calloc(max + 1, sizeof(*g.n_missing));
	if (!steps || !g.nodes || !g.n_missing)
		return -ENOMEM;
	for (uint64_t i = 0; i < g.rec.n_points; i++)
		steps[n++] =
			(struct step){.order = g.rec.points[i].order, .point = &g.rec.points[i]};
	for (uint64_t i = 0; i < g.rec.n_ops; i++) {
		const struct record_op *op = &g.rec.ops[i];

		g.n_missing[op->number]++;
		steps[n++] = (struct step){.order = op->order, .op = i};
		steps[n++] = (struct step){.order = op->done_order, .is_done = true, .op = i};
	}
	qsort(steps, n, sizeof(*steps), by_order);
	*ret_n = n;
	return 0;
}

/* --- the same again ----------------------------------------------------------------------------
 */

static void compare(const char *what, uint32_t rank, uint64_t name, uint64_t got, uint64_t want)
{
	uint64_t off = got > want ? got - want : want - got;

	if (off > 1)
		printf("%s of %llu at rank %u: %llu, in the run %llu: %lld\n", what,
		       (unsigned long long)name, rank, (unsigned long long)got,
		       (unsigned long long)want, (long long)(got - want));
	g.worst_ns = off > g.worst_ns ? off : g.worst_ns;
	g.n_compared++;
}

static void take_deps(const struct record_dep *deps, uint32_t n, struct timeline_dep *ret)
{
	for (uint32_t i = 0; i < n && i < WIRE_DEPS_MAX; i++)
		ret[i] = (struct timeline_dep){deps[i].name, deps[i].is_same_stream};
}

static int play_point(const struct record_point *p, struct err *err)
{
	struct timeline_dep deps[WIRE_DEPS_MAX];
	const struct timeline_point point = {
		.name = p->name,
		.time_ns = p->time_ns,
		.call_ns = p->call_ns,
		.work_ns = p->work_ns,
		.host = p->host,
		.deps = deps,
		.n_deps = p->n_deps,
		.is_host = p->kind == RECORD_POINT_HOST,
	};
	struct timeline_times t;
	int r;

	take_deps(p->deps, p->n_deps, deps);
	r = timelines_point(g.timelines, p->world_rank, &point, &t, err);
	if (r < 0)
		return r;
	compare("virtual time", p->world_rank, p->name, t.time_ns, p->virtual_ns);
	compare("plain time", p->world_rank, p->name, t.plain_ns, p->plain_ns);
	compare("exposed time", p->world_rank, p->name, t.exposed_ns, p->exposed_ns);
	compare("host bound", p->world_rank, p->name, t.is_host_bound, p->is_host_bound);
	return 0;
}

static int end(uint64_t i)
{
	const struct record_op *op = &g.rec.ops[i];

	return timeline_end_all(g.nodes[i], (double)(int64_t)(op->virtual_end_ns - g.epoch_ns),
				(double)(int64_t)(op->plain_end_ns - g.epoch_ns));
}

static int play_arrival(uint64_t at, struct err *err)
{
	const struct record_op *op = &g.rec.ops[at];
	struct timeline_dep deps[WIRE_DEPS_MAX];
	const struct timeline_point point = {
		.name = op->name,
		.time_ns = op->arrive_ns,
		.call_ns = op->call_ns,
		.work_ns = op->work_ns,
		.host = op->host,
		.deps = deps,
		.n_deps = op->n_deps,
	};
	struct timeline_times t;
	int r;

	take_deps(op->deps, op->n_deps, deps);
	r = timelines_arrive(g.timelines, op->world_rank, &point, &g.nodes[at], &t, err);
	if (r < 0)
		return r;
	compare("virtual arrival", op->world_rank, op->name, t.time_ns, op->virtual_arrive_ns);
	compare("plain arrival", op->world_rank, op->name, t.plain_ns, op->plain_arrive_ns);
	compare("exposed time", op->world_rank, op->name, t.exposed_ns, op->exposed_ns);
	if (--g.n_missing[op->number] > 0)
		return 0;
	for (uint64_t i = 0; i < g.rec.n_ops && r == 0; i++)
		r = g.rec.ops[i].number == op->number && g.nodes[i] ? end(i) : 0;
	return r;
}

/* Of several ends the latest counts: a root's op may be over before the others have arrived. */
static int play_done(uint64_t i)
{
	int r = end(i);

	timeline_opened(g.nodes[i], g.rec.ops[i].release_ns);
	timeline_node_release(g.nodes[i]);
	g.nodes[i] = NULL;
	return r;
}

static int play(const struct step *s, struct err *err)
{
	if (!g.epoch_ns)
		g.epoch_ns = s->point ? s->point->time_ns : g.rec.ops[s->op].arrive_ns;
	if (s->point)
		return play_point(s->point, err);
	return s->is_done ? play_done(s->op) : play_arrival(s->op, err);
}

int main(int argc, char **argv)
{
	CLEANUP(freep) struct step *steps = NULL;
	struct err err = {"out of memory"};
	uint64_t n = 0;
	int r;

	if (argc != 3)
		return 2;
	r = record_load(argv[1], &g.rec, &err);
	if (r == 0)
		r = open_models(argv[2], &err);
	if (r == 0)
		r = make_timelines(&err);
	if (r == 0)
		r = take_steps(&steps, &n);
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = play(&steps[i], &err);
	if (r < 0)
		printf("%s\n", err.text);
	else
		printf("%llu points, %llu ops, %llu times, off by at most %llu ns\n",
		       (unsigned long long)g.rec.n_points, (unsigned long long)g.rec.n_ops,
		       (unsigned long long)g.n_compared, (unsigned long long)g.worst_ns);
	free(g.nodes);
	free(g.n_missing);
	timelines_free(g.timelines);
	delay_free(g.delay);
	record_deinit(&g.rec);
	return r < 0 || g.worst_ns > 1;
}
