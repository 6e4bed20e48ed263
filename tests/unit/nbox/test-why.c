/* nbox why on records whose times are known to the nanosecond: a data-parallel job of 128 ranks, of
 * which one is real. Closed forms, and the run re-timed, say what must come out.
 *
 * An iteration computes a forward pass of 6 ms, backward passes of 4 ms with an all-reduce after
 * each, a last one without (by the job: 0 or 8 ms), and an update of 2 ms that waits for all of
 * them. An op takes 1 ms. */
#include "cmocka-all.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox/why/print.h"
#include "nbox/why/why.h"
#include "schedule/coll.h"

#define MS 1e6
#define RANKS 128
#define EPOCH UINT64_C(1000000000)
enum { COMPUTE = 1, OPS, LAYERS_MAX = 5, DEPS = 2 };

static const char *models;

struct job {
	uint32_t n_iterations, n_layers;
	double first, backward, last, update; /* ms; first: with the forward pass */
	bool is_pair;                         /* the last layer's computation takes no time */
};
static const struct job ddp = {12, 4, 10, 4, 0, 2, false}, hidden = {12, 4, 10, 4, 8, 2, false},
			pair = {12, 5, 10, 4, 0, 2, true};

struct made {
	struct recorded r;
	struct record_dep *deps; /* owned */
	uint64_t name, order;
};

static struct record_member real[] = {{0, 0}};
static struct record_comm world = {
	.number = 1, .n_ranks = RANKS, .stride = 1, .n_real = 1, .real = real};

/* What stands last on a stream. */
struct last {
	uint64_t name;
	uint64_t time; /* an op's: its end */
};

static uint32_t add_dep(struct record_dep *to, uint32_t n, const struct last *last, bool is_same)
{
	if (last->name)
		to[n++] = (struct record_dep){.name = last->name, .is_same_stream = is_same};
	return n;
}

/* A point on the compute stream, @ms after what it waits for; with @for_ops after all ops, too. */
static void add_point(struct made *m, double ms, bool for_ops, struct last *compute,
		      const struct last *ops)
{
	struct record *rec = &m->r.run.rec;
	struct record_point *p = &rec->points[rec->n_points++];
	struct record_dep *deps = &m->deps[DEPS * m->order];
	uint64_t from = for_ops && ops->time > compute->time ? ops->time : compute->time;
	uint32_t n = add_dep(deps, 0, compute, true);

	n = for_ops ? add_dep(deps, n, ops, false) : n;
	*p = (struct record_point){.name = ++m->name,
				   .time_ns = from + (uint64_t)(ms * MS),
				   .stream = COMPUTE,
				   .order = m->order++,
				   .n_deps = n,
				   .deps = deps};
	*compute = (struct last){p->name, p->time_ns};
}

/* In the recorded run ops took no time. */
static void add_op(struct made *m, uint32_t layer, const struct last *compute, struct last *ops)
{
	struct record *rec = &m->r.run.rec;
	struct record_op *op = &rec->ops[rec->n_ops];
	struct record_dep *deps = &m->deps[DEPS * m->order];
	uint64_t at = compute->time > ops->time ? compute->time : ops->time;
	uint32_t n = add_dep(deps, 0, compute, false);

	n = add_dep(deps, n, ops, true);
	*op = (struct record_op){.number = rec->n_ops,
				 .seq = rec->n_ops,
				 .name = ++m->name,
				 .count = (UINT64_C(1) << 18) * (layer + 1),
				 .bytes = (UINT64_C(1) << 20) * (layer + 1),
				 .arrive_ns = at,
				 .start_ns = at,
				 .due_ns = at,
				 .release_ns = at,
				 .comm = world.number,
				 .stream = OPS,
				 .kind = COLL_ALLREDUCE,
				 .dtype = 7,
				 .order = m->order++,
				 .done_order = m->order,
				 .n_deps = n,
				 .deps = deps,
				 .of = rec->comms};
	rec->n_ops++;
	*ops = (struct last){op->name, at};
}

static void made_deinit(struct made *m)
{
	struct record *rec = &m->r.run.rec;

	rows_graph_deinit(&m->r.graph);
	free(rec->comms);
	free(rec->ops);
	free(rec->points);
	free(m->deps);
}

static void make(struct made *m, const struct job *j)
{
	size_t n = (size_t)j->n_iterations * (2 * LAYERS_MAX + 2);
	struct last compute = {0, EPOCH}, ops = {0, 0};
	struct record *rec;
	struct err err = {""};

	memset(m, 0, sizeof(*m));
	rec = &m->r.run.rec;
	rec->header = (struct record_header){.world_size = RANKS,
					     .n_nodes = RANKS,
					     .gpus_per_node = 1,
					     .n_real = 1};
	rec->comms = malloc(sizeof(world));
	rec->ops = calloc(n, sizeof(*rec->ops));
	rec->points = calloc(n, sizeof(*rec->points));
	m->deps = calloc(2 * DEPS * n, sizeof(*m->deps));
	assert_true(rec->comms && rec->ops && rec->points && m->deps);
	rec->comms[0] = world;
	rec->n_comms = 1;
	for (uint32_t i = 0; i < j->n_iterations; i++) {
		for (uint32_t k = 0; k < j->n_layers; k++) {
			bool has_none = j->is_pair && k + 1 == j->n_layers;

			add_point(m,
				  has_none ? 0
				  : k      ? j->backward
					   : j->first,
				  k == 0, &compute, &ops);
			add_op(m, k, &compute, &ops);
		}
		if (j->last > 0)
			add_point(m, j->last, false, &compute, &ops);
		if (j->update > 0)
			add_point(m, j->update, true, &compute, &ops);
	}
	snprintf(m->r.models, sizeof(m->r.models), "%s", models);
	assert_int_equal(rows_graph_make(rec, &m->r.graph, &err), 0);
}

static int make_config(void *ctx, struct config **ret, struct err *err)
{
	const char *what_if = ctx;
	struct config *c;

	(void)err;
	assert_int_equal(config_new(&c), 0);
	assert_int_equal(config_set(c, CONFIG_NODES, SOURCE_FILE, "128"), 0);
	assert_int_equal(config_set(c, CONFIG_GPUS_PER_NODE, SOURCE_FILE, "1"), 0);
	assert_int_equal(config_set(c, CONFIG_MODEL, SOURCE_FILE, "const:time=1ms"), 0);
	if (what_if)
		assert_int_equal(config_set(c, CONFIG_WHAT_IF, SOURCE_FILE, what_if), 0);
	*ret = c;
	return 0;
}

static void look(struct why *ret, const struct job *j, const char *what_if)
{
	CLEANUP(made_deinit) struct made m;
	struct why_config from = {.make = make_config, .ctx = (void *)(uintptr_t)what_if};
	struct err err = {""};
	double sum = 0;

	make(&m, j);
	if (why_make(&m.r, &from, ret, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(ret->has_steps);
	for (uint32_t i = 0; i < ret->n_parts; i++)
		sum += ret->parts[i].ns;
	assert_float_equal(sum, ret->iteration_ns, 0.5);
}

/* A mean iteration of the job in ms, re-timed. */
static double mean_ms(const struct job *j, const char *what_if)
{
	CLEANUP(made_deinit) struct made m;
	const char *const dirs[] = {models, NULL};
	struct config *c;
	struct replay in = {.graph = &m.r.graph, .dirs = dirs};
	struct replay_told told;
	struct record rec;
	struct err err = {""};
	uint64_t n;
	double ms;

	make(&m, j);
	make_config((void *)(uintptr_t)what_if, &c, &err);
	assert_int_equal(config_finish(c, &err), 0);
	in.config = c;
	assert_int_equal(replay_play(&in, &rec, &told, &err), 0);
	n = rec.n_ops - j->n_layers;
	ms = (double)(rec.ops[n].virtual_arrive_ns - rec.ops[0].virtual_arrive_ns) / MS /
	     (double)(n / j->n_layers);
	record_deinit(&rec);
	config_free(c);
	return ms;
}

static double part_ms(const struct why *w, enum why_kind kind)
{
	double ms = 0;

	for (uint32_t i = 0; i < w->n_parts; i++)
		ms += w->parts[i].kind == kind ? w->parts[i].ns / MS : 0;
	return ms;
}

static double won_ms(const struct why *w, const char *text)
{
	for (uint32_t i = 0; i < w->n_won; i++)
		if (strcmp(w->won[i].text, text) == 0)
			return w->won[i].ns / MS;
	fail_msg("nothing was re-timed for '%s'", text);
	return NAN;
}

#define NEAR(a, b) assert_float_equal(a, b, 1e-4)

static void path_has_computation_and_the_last_op(void **state)
{
	CLEANUP(why_deinit) struct why w = {.n_parts = 0};
	char text[256];

	(void)state;
	look(&w, &ddp, NULL);
	NEAR(w.iteration_ns / MS, 10 + 3 * 4 + 1 + 2);
	NEAR(part_ms(&w, WHY_COMPUTED), 24);
	NEAR(part_ms(&w, WHY_MODELLED), 1);
	assert_int_equal(w.n_late, 0);
	NEAR(w.exposed[0].ns / MS, 1);
	NEAR(won_ms(&w, "ops of world take no time"), 24);
	assert_string_equal(why_headline(&w, text, sizeof(text)),
			    "of 25 ms an iteration, 24 are computation, 1 are ops of world; if ops "
			    "of world take no time: 24 ms");
}

static void injected_delays_are_told_apart(void **state)
{
	CLEANUP(why_deinit) struct why w = {.n_parts = 0};

	(void)state;
	look(&w, &ddp, "add:op=allreduce,delay=2ms");
	NEAR(part_ms(&w, WHY_COMPUTED), 24);
	NEAR(part_ms(&w, WHY_MODELLED), 1);
	NEAR(part_ms(&w, WHY_INJECTED), 2);
	NEAR(won_ms(&w, "the what-if add:op=allreduce,delay=2ms is left out"), 25);
	NEAR(won_ms(&w, "ops of world take no time"), 24);
}

/* Synchronous data parallelism: an iteration is the slowest rank's computation and what it waits
 * for ops. */
static void straggler_is_named(void **state)
{
	CLEANUP(why_deinit) struct why w = {.n_parts = 0};

	(void)state;
	look(&w, &ddp, "slow:rank=17,compute=1.3");
	NEAR(w.iteration_ns / MS, 1.3 * 24 + 1);
	assert_int_equal(w.n_late, 1);
	assert_int_equal(w.late[0].rank, 17);
	NEAR(part_ms(&w, WHY_WAITED), 0);
	NEAR(part_ms(&w, WHY_COMPUTED), 24);
	NEAR(part_ms(&w, WHY_SLOWED), 0.3 * 24);
	NEAR(part_ms(&w, WHY_MODELLED), 1);
	for (uint32_t i = 0; i < w.n_parts; i++)
		if (w.parts[i].kind < WHY_MODELLED)
			assert_true(w.parts[i].own == 17 && w.parts[i].template == 0);
	NEAR(won_ms(&w, "rank 17 computes as long as its template"), 25);
	NEAR(won_ms(&w, "the what-if slow:rank=17,compute=1.3 is left out"), 25);
	NEAR(won_ms(&w, "ops of world take no time"), 1.3 * 24);
}

/* Without a what-if the path is no shorter than by what the what-if has on it. */
static void won_is_no_more_than_the_path_has(void **state)
{
	static const char *const what_ifs[] = {"jitter:on=compute,stddev=20%",
					       "slow:rank=17,compute=1.3", "slow:rank=0,compute=2",
					       "add:op=allreduce,delay=3ms", "jitter:stddev=50%"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(what_ifs); i++) {
		CLEANUP(why_deinit) struct why w = {.n_parts = 0};
		char text[128];

		look(&w, &ddp, what_ifs[i]);
		snprintf(text, sizeof(text), "the what-if %s is left out", what_ifs[i]);
		NEAR(won_ms(&w, text), 25);
		NEAR(part_ms(&w, WHY_WAITED) + part_ms(&w, WHY_OTHER) + part_ms(&w, WHY_HOST), 0);
		assert_true(w.iteration_ns / MS - part_ms(&w, WHY_SLOWED) -
				    part_ms(&w, WHY_INJECTED) <
			    25 + 1e-4);
	}
}

static void slow_real_rank_is_slowed(void **state)
{
	CLEANUP(why_deinit) struct why w = {.n_parts = 0};

	(void)state;
	look(&w, &ddp, "slow:rank=0,compute=1.3");
	NEAR(w.iteration_ns / MS, 1.3 * 24 + 1);
	NEAR(part_ms(&w, WHY_COMPUTED), 24);
	NEAR(part_ms(&w, WHY_SLOWED), 0.3 * 24);
}

/* Behind the last all-reduce lie 8 ms of computation, and each op has 4 ms before the next one
 * comes. */
static void hidden_ops_have_slack(void **state)
{
	CLEANUP(why_deinit) struct why w = {.n_parts = 0};
	double base = 10 + 3 * 4 + 8 + 2;

	(void)state;
	look(&w, &hidden, NULL);
	NEAR(w.iteration_ns / MS, base);
	assert_int_equal(w.n_slacks, 1);
	assert_float_equal(w.slacks[0].n, 4, 1e-9);
	/* all four, one behind the other, from the first one's arrival to the update: 4 (1 + d) =
	 * 20 */
	assert_float_equal(w.slacks[0].ns / MS, 4, base / 1000);
	NEAR(w.slacks[0].knee_ns / MS, 4);
	NEAR(mean_ms(&hidden, "add:op=allreduce,delay=3.9ms"), base);
	NEAR(mean_ms(&hidden, "add:op=allreduce,delay=6ms"), base + 4 * 2);
}

/* The last op shows at once; the others once they take longer than a layer. */
static void ops_that_show_have_a_knee(void **state)
{
	CLEANUP(why_deinit) struct why w = {.n_parts = 0};

	(void)state;
	look(&w, &ddp, NULL);
	assert_float_equal(w.slacks[0].ns, 0, 0);
	NEAR(w.slacks[0].knee_ns / MS, 3);
	NEAR(mean_ms(&ddp, "add:op=allreduce,delay=2.9ms"), 25 + 2.9);
	NEAR(mean_ms(&ddp, "add:op=allreduce,delay=5ms"), 25 + 3 + 4 * 2);
}

/* The last two come together, as buckets of a first layer and of what is before it do: 2 ms a ms
 * show from the start, and 5 behind the knee. */
static void a_knee_is_where_most_shows(void **state)
{
	CLEANUP(why_deinit) struct why w = {.n_parts = 0};
	double base = 10 + 3 * 4 + 2 + 2;

	(void)state;
	look(&w, &pair, NULL);
	NEAR(w.iteration_ns / MS, base);
	NEAR(w.slacks[0].knee_ns / MS, 3);
	NEAR(mean_ms(&pair, "add:op=allreduce,delay=2.9ms"), base + 2 * 2.9);
	NEAR(mean_ms(&pair, "add:op=allreduce,delay=4ms"), base + 2 * 3 + 5);
}

static void slack_holds_beside_a_straggler(void **state)
{
	CLEANUP(why_deinit) struct why w = {.n_parts = 0};

	(void)state;
	look(&w, &ddp, "slow:rank=17,compute=1.5");
	NEAR(w.slacks[0].knee_ns / MS, 1.5 * 4 - 1);
}

/* The mean of the maximum of @n normal values. */
static double mean_of_most(uint32_t n)
{
	const double step = 1e-3;
	double mean = 0;

	for (double x = 0; x < 9; x += step)
		mean += (1 - pow(0.5 * erfc(-x / sqrt(2)), n) - pow(0.5 * erfc(x / sqrt(2)), n)) *
			step;
	return mean;
}

static void jitter_costs_the_mean_of_the_maximum(void **state)
{
	const struct job one = {401, 1, 10, 0, 0, 0, false};
	double ms = mean_ms(&one, "jitter:on=compute,stddev=5%") - 11;
	double deviation = 0.43 * 0.5 / sqrt(400); /* of the maximum of 128, and of 400 of them */

	(void)state;
	assert_float_equal(ms, 0.5 * mean_of_most(RANKS), 3 * deviation);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_has_computation_and_the_last_op),
		cmocka_unit_test(injected_delays_are_told_apart),
		cmocka_unit_test(straggler_is_named),
		cmocka_unit_test(won_is_no_more_than_the_path_has),
		cmocka_unit_test(slow_real_rank_is_slowed),
		cmocka_unit_test(hidden_ops_have_slack),
		cmocka_unit_test(ops_that_show_have_a_knee),
		cmocka_unit_test(a_knee_is_where_most_shows),
		cmocka_unit_test(slack_holds_beside_a_straggler),
		cmocka_unit_test(jitter_costs_the_mean_of_the_maximum),
	};

	models = argc > 1 ? argv[1] : "delaymodels";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
