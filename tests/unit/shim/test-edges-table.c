/* What lies behind a place in a stream: table.c against a slow model, which keeps for each stream
 * the set of all ops behind it, on random sequences of records, waits, ops and destroyed events and
 * streams. The ops that the table's names for a place lead to must be just those of the model; what
 * is told of points is checked by example. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "rng.h"
#include "shim/edges/table.h"
#include "wire/wire.h"

#define STREAMS 6
#define EVENTS 8
#define STEPS 120
#define NAMES (4 * STEPS)

/* A set of names. Points that get their names late are in no set that was made before. */
struct set {
	bool has[NAMES];
};

struct model_event {
	bool is_recorded;
	unsigned int stream;
	struct set behind;
};

static struct {
	struct table table;
	struct set behind[STREAMS]; /* ops that lie behind the stream's end */
	struct model_event events[EVENTS];
	struct set of[NAMES]; /* all that lies behind a name, by the names that it was given */
	bool is_op[NAMES];
	uint64_t call;
} g;

static void merge(struct set *a, const struct set *b)
{
	for (unsigned int i = 0; i < NAMES; i++)
		a->has[i] = a->has[i] || b->has[i];
}

static device_stream stream_handle(unsigned int i)
{
	return (device_stream)(uintptr_t)(0x1000 + 64 * i);
}

static device_event event_handle(unsigned int i)
{
	return (device_event)(uintptr_t)(0x9000 + 64 * i);
}

/* Streams 0 and 1 only have ops; the others compute, and have ops now and then. */
static struct table_stream *stream_of(unsigned int i)
{
	struct table_stream *s = table_stream(&g.table, stream_handle(i), 0, 0);

	assert_non_null(s);
	if (!s->number)
		s->number = ++g.table.n_streams;
	table_use(&g.table, s, 0);
	s->has_work = i > 1;
	return s;
}

/* All that lies behind a place that was told @b; the names themselves included. */
static struct set told(const struct behind *b)
{
	struct set all = {{false}};

	for (uint32_t i = 0; i < b->n; i++) {
		assert_in_range(b->edges[i].name, 1, NAMES - 1);
		all.has[b->edges[i].name] = true;
		merge(&all, &g.of[b->edges[i].name]);
	}
	return all;
}

/* Ops are those of the model; points depend on when they got their names. */
static void check_ops(const struct set *got, const struct set *want)
{
	for (unsigned int i = 1; i < NAMES; i++)
		if (g.is_op[i] && got->has[i] != want->has[i])
			fail_msg("op %u %s behind", i, want->has[i] ? "is not" : "is");
}

static void check_point(const struct table_point *p)
{
	const struct model_event *ev = NULL;

	for (unsigned int i = 0; i < EVENTS; i++)
		if (p->event == event_handle(i))
			ev = &g.events[i];
	assert_non_null(ev);
	g.of[p->name] = told(&p->behind);
	check_ops(&g.of[p->name], &ev->behind);
}

static void record(unsigned int ev, unsigned int s)
{
	table_record(&g.table, event_handle(ev), stream_of(s), ++g.call);
	g.events[ev] = (struct model_event){true, s, g.behind[s]};
}

static void wait_for(unsigned int s, unsigned int i)
{
	struct table_stream *stream = stream_of(s);
	struct table_event *ev = table_event(&g.table, event_handle(i));
	struct table_point points[2];
	unsigned int n;

	assert_true((ev != NULL) == g.events[i].is_recorded);
	if (!ev)
		return;
	n = table_wait(&g.table, stream, ev, points);
	for (unsigned int p = 0; p < n; p++)
		check_point(&points[p]);
	merge(&g.behind[s], &g.events[i].behind);
}

static void op(unsigned int i)
{
	struct table_stream *s = stream_of(i);
	struct edge e = {.at = ++g.table.at, .stream = s->number, .is_op = true};

	table_op(s);
	e.name = table_name(&g.table, 0);
	g.is_op[e.name] = true;
	g.of[e.name] = told(&s->behind);
	check_ops(&g.of[e.name], &g.behind[i]);
	behind_drop_before(&s->behind, e.at);
	behind_add(&s->behind, &e);
	g.behind[i].has[e.name] = true;
}

static void destroy(unsigned int i, bool is_stream)
{
	if (is_stream) {
		free(table_forget_stream(&g.table, stream_of(i)));
		memset(&g.behind[i], 0, sizeof(g.behind[i]));
		return;
	}
	table_forget_event(&g.table, event_handle(i));
	g.events[i].is_recorded = false;
}

static void forget_all(void)
{
	for (unsigned int i = 0; i < STREAMS; i++)
		table_forget_stream(&g.table, stream_of(i));
	for (unsigned int i = 0; i < EVENTS; i++)
		table_forget_event(&g.table, event_handle(i));
	while (g.table.graphs) {
		struct table_graph *next = g.table.graphs->next;

		free(g.table.graphs);
		g.table.graphs = next;
	}
	memset(&g, 0, sizeof(g));
}

static void a_place_has_behind_it_just_what_the_slow_model_says(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 400; seed++) {
		struct rng r;

		rng_seed(&r, 12, seed);
		for (unsigned int step = 0; step < STEPS; step++) {
			unsigned int s = (unsigned int)below(&r, STREAMS);
			unsigned int ev = (unsigned int)below(&r, EVENTS);

			switch (below(&r, 8)) {
			case 0:
			case 1:
			case 2:
				record(ev, s);
				break;
			case 3:
			case 4:
			case 5:
				wait_for(s, ev);
				break;
			case 6:
				op(below(&r, 3) ? s % 3 : s);
				break;
			default:
				if (below(&r, 4))
					destroy(ev, false);
				else if (!below(&r, 4))
					destroy(s, true);
			}
		}
		forget_all();
	}
}

/* --- the rest, by example ------------------------------------------------------------- */

static void a_host_that_waits_again_learns_nothing(void **state)
{
	struct table_point p[2];

	(void)state;
	op(0);
	assert_true(table_sync(&g.table, 0, &stream_of(0)->behind, false, &p[0]));
	assert_int_equal(p[0].behind.n, 1);
	assert_int_equal(p[0].host, 0);
	assert_false(table_sync(&g.table, 0, &stream_of(0)->behind, false, &p[1]));
	op(0);
	assert_false(table_sync(&g.table, 1, &(struct behind){0}, false, &p[1]));
	assert_true(table_sync(&g.table, 0, &stream_of(0)->behind, false, &p[1]));
	assert_int_equal(p[1].host, p[0].name);
	/* but for computation, where it had to wait */
	assert_true(table_sync(&g.table, 0, &stream_of(0)->behind, true, &p[0]));
	assert_int_equal(p[0].behind.n, 0);
	assert_int_equal(p[0].host, p[1].name);
	forget_all();
}

static void a_record_has_one_name_and_the_next_record_another(void **state)
{
	struct table_point p[2], q[2];

	(void)state;
	op(0);
	record(0, 2);
	assert_int_equal(table_wait(&g.table, stream_of(0), table_event(&g.table, event_handle(0)),
				    p),
			 1);
	assert_int_equal(table_wait(&g.table, stream_of(0), table_event(&g.table, event_handle(0)),
				    q),
			 0);
	record(0, 2);
	assert_int_equal(table_wait(&g.table, stream_of(0), table_event(&g.table, event_handle(0)),
				    q),
			 1);
	assert_int_not_equal(p[0].name, q[0].name);
	assert_int_equal(q[0].behind.n, 1);
	assert_int_equal(q[0].behind.edges[0].name, p[0].name);
	forget_all();
}

/* Records that nobody waits for do not part what lies between two points. */
static void a_point_has_the_first_work_since_the_point_before(void **state)
{
	struct table_point p[2];

	(void)state;
	op(0);
	table_work(stream_of(2), 10);
	record(0, 2);
	table_work(stream_of(2), 20);
	record(1, 2);
	table_work(stream_of(2), 30);
	table_wait(&g.table, stream_of(0), table_event(&g.table, event_handle(1)), p);
	assert_int_equal(p[0].work_ns, 10);
	record(0, 2);
	table_wait(&g.table, stream_of(0), table_event(&g.table, event_handle(0)), p);
	assert_int_equal(p[0].work_ns, 30);
	record(0, 2);
	table_wait(&g.table, stream_of(0), table_event(&g.table, event_handle(0)), p);
	assert_int_equal(p[0].work_ns, 0);
	forget_all();
}

/* An event recorded before another, of which a point was made first. */
static void a_point_made_late_lies_where_it_was_recorded(void **state)
{
	struct table_point p[2], q[2];
	const struct edge *own;

	(void)state;
	op(0);
	record(0, 2);
	record(1, 2);
	assert_int_equal(table_wait(&g.table, stream_of(0), table_event(&g.table, event_handle(1)),
				    p),
			 1);
	assert_int_equal(table_wait(&g.table, stream_of(0), table_event(&g.table, event_handle(0)),
				    q),
			 1);
	assert_int_equal(q[0].behind.n, 0);
	own = behind_own(&stream_of(2)->behind, stream_of(2)->number);
	assert_int_equal(own->name, p[0].name);
	own = behind_own(&stream_of(0)->behind, stream_of(2)->number);
	assert_int_equal(own->name, p[0].name);
	forget_all();
}

static void what_is_captured_knows_nothing_of_before_and_leaves_it_as_it_was(void **state)
{
	struct table_stream *s;
	struct table_point p[2];

	(void)state;
	op(2);
	s = stream_of(2);
	table_use(&g.table, s, 77);
	assert_int_equal(s->behind.n, 1); /* the launch of its graph */
	assert_false(s->behind.edges[0].is_op);
	table_record(&g.table, event_handle(0), s, ++g.call);
	s = stream_of(0);
	table_op(s);
	/* not captured yet: this event means nothing to it */
	assert_int_equal(table_wait(&g.table, s, table_event(&g.table, event_handle(0)), p), 0);
	table_use(&g.table, s, 77);
	assert_int_equal(table_wait(&g.table, s, table_event(&g.table, event_handle(0)), p), 1);
	assert_true(p[0].name & WIRE_NAME_CAPTURED);
	assert_int_equal(p[0].call_ns, 0);
	s = stream_of(2);
	assert_int_equal(s->behind.n, 1);
	assert_true(s->behind.edges[0].is_op);
	forget_all();
}

static int graph_handle; /* of its address, and those of more */

/* Captures a place on stream 2, an op on stream 0 behind it, and the wait of 2 for that. */
static void capture(uint64_t id, const void *handle, struct table_point ret[3])
{
	struct table_stream *m = stream_of(2), *c = stream_of(0);

	table_use(&g.table, m, id);
	table_record(&g.table, event_handle(0), m, 0);
	table_use(&g.table, c, id);
	table_op(c);
	assert_int_equal(table_wait(&g.table, c, table_event(&g.table, event_handle(0)), ret), 1);
	behind_drop_before(&c->behind, ++g.table.at);
	behind_add(&c->behind, &(struct edge){.name = table_name(&g.table, id),
					      .at = g.table.at,
					      .stream = c->number,
					      .is_op = true});
	table_record(&g.table, event_handle(1), c, 0);
	table_wait(&g.table, m, table_event(&g.table, event_handle(1)), ret + 1);
	table_captured(&g.table, m, id, handle);
	table_use(&g.table, m, 0);
	table_use(&g.table, c, 0);
}

static uint32_t launch(const void *exec, unsigned int stream, struct table_point *ret)
{
	record(5, stream);
	table_launch(&g.table, table_event(&g.table, event_handle(5)), table_graph(&g.table, exec),
		     ret);
	return ret->launch;
}

static void a_graph_lies_between_what_is_before_and_after_its_launch(void **state)
{
	const void *graph = &graph_handle, *exec = &graph_handle + 1;
	struct table_point captured[3], *first = captured, p;
	struct table_stream *s;
	const struct edge *own;
	uint64_t before;

	(void)state;
	capture(77, graph, captured);
	assert_int_equal(first->behind.n, 1); /* the launch */
	table_copy_graph(&g.table, exec, graph);
	table_copy_graph(&g.table, graph, NULL);
	assert_null(table_graph(&g.table, graph));
	op(3);
	before = g.table.name;
	assert_int_equal(launch(exec, 3, &p), 1);
	assert_int_equal(p.name, first->behind.edges[0].name);
	assert_int_equal(p.behind.n, 1);
	assert_int_equal(p.behind.edges[0].name, before);
	assert_int_not_equal(p.call_ns, 0);
	/* its own stream's place, and the op beside it, which no other stream of the job's has */
	s = stream_of(3);
	assert_int_equal(s->behind.n, 2);
	own = behind_own(&s->behind, s->number);
	assert_int_equal(own->name, first->name);
	assert_null(behind_own(&s->behind, stream_of(0)->number));
	/* the next one has these behind it, and takes their place */
	assert_int_equal(launch(exec, 3, &p), 2);
	assert_int_equal(p.behind.n, 2);
	assert_int_equal(behind_own(&p.behind, s->number)->name, first->name);
	assert_int_equal(stream_of(3)->behind.n, 2);
	table_copy_graph(&g.table, exec, NULL);
	forget_all();
}

static void a_graph_without_ops_is_none(void **state)
{
	struct table_stream *s;

	(void)state;
	op(2);
	for (uint64_t id = 77; id < 79; id++) {
		s = stream_of(2);
		table_use(&g.table, s, id);
		table_captured(&g.table, s, id, &graph_handle);
		assert_null(table_graph(&g.table, &graph_handle));
		assert_null(g.table.graphs);
	}
	/* a capture that nothing was seen of is not taken for the one before it */
	table_captured(&g.table, s, 80, &graph_handle);
	assert_null(table_graph(&g.table, &graph_handle));
	forget_all();
}

static void with_too_many_streams_the_oldest_is_left_out(void **state)
{
	struct behind b = {0};

	(void)state;
	for (uint32_t i = 1; i <= BEHIND_MAX + 3; i++)
		behind_add(&b, &(struct edge){.name = i, .at = i, .stream = i});
	assert_int_equal(b.n, BEHIND_MAX);
	for (uint32_t i = 1; i <= BEHIND_MAX + 3; i++)
		assert_int_equal(behind_own(&b, i) != NULL, i > 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_has_behind_it_just_what_the_slow_model_says),
		cmocka_unit_test(a_host_that_waits_again_learns_nothing),
		cmocka_unit_test(a_record_has_one_name_and_the_next_record_another),
		cmocka_unit_test(a_point_has_the_first_work_since_the_point_before),
		cmocka_unit_test(a_point_made_late_lies_where_it_was_recorded),
		cmocka_unit_test(what_is_captured_knows_nothing_of_before_and_leaves_it_as_it_was),
		cmocka_unit_test(a_graph_lies_between_what_is_before_and_after_its_launch),
		cmocka_unit_test(a_graph_without_ops_is_none),
		cmocka_unit_test(with_too_many_streams_the_oldest_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
