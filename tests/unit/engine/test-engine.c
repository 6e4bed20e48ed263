/* The live engine against an obvious model that keeps a bool for each message. Borders have random
 * dependencies and release times, or those of real schedules; messages arrive at any time, in any
 * order that connections allow; several ops run at once. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "cmocka-all.h"
#include "engine/engine.h"
#include "rng.h"

#define MAX_OPS 4

struct expect { /* one op, as a slow model sees it */
	struct border *b;
	struct timing *t;
	struct engine_op *op;
	uint64_t start_ns, end_ns;
	bool *arrived, *sent; /* by bit */
	uint64_t *sent_at;    /* by bit of in messages */
	uint64_t ended_at;
	bool has_ended;
};

struct bench {
	struct engine *engine;
	struct expect ops[MAX_OPS];
	int n_ops;
	uint64_t now;
	uint64_t last_due;
};

static bool is_ready(const struct expect *x, uint32_t in, uint64_t index)
{
	const struct border *b = x->b;

	for (uint32_t i = b->dep_start[in]; i < b->dep_start[in + 1]; i++) {
		const struct border_conn *out = &b->out[b->dep[i].out];

		if (index >= b->dep[i].shift &&
		    !x->arrived[out->first_bit + index - b->dep[i].shift])
			return false;
	}
	return true;
}

static struct expect *find(struct bench *k, const struct engine_op *op)
{
	for (int i = 0; i < k->n_ops; i++)
		if (k->ops[i].op == op)
			return &k->ops[i];
	fail_msg("an op that nobody started");
	return NULL;
}

static void on_send(void *owner, struct engine_op *op, uint32_t in, uint64_t index, uint64_t due)
{
	struct bench *k = owner;
	struct expect *x = find(k, op);
	uint64_t bit = x->b->in[in].first_bit + index;
	double relative = timing_message_ns(x->t, in, index);

	assert_true(engine_op_tag(op) == x);
	assert_true(index < x->b->in[in].n_messages);
	assert_false(x->sent[bit]);                              /* exactly once */
	assert_true(index == 0 || x->sent[bit - 1]);             /* in order */
	assert_true(is_ready(x, in, index));                     /* after its predecessors */
	assert_true((double)(k->now - x->start_ns) >= relative); /* never early */
	assert_int_equal(due, x->start_ns + (uint64_t)ceil(relative));
	assert_true(due >= k->last_due); /* in time order */
	k->last_due = due;
	x->sent[bit] = true;
	x->sent_at[bit] = due;
}

static void on_end(void *owner, struct engine_op *op, uint64_t end_ns)
{
	struct bench *k = owner;
	struct expect *x = find(k, op);

	assert_false(x->has_ended);
	assert_true(k->now >= x->end_ns);
	assert_int_equal(end_ns, x->end_ns);
	for (uint64_t i = 0; x->b && i < x->b->n_in_messages; i++)
		assert_true(x->sent[i]);
	for (uint64_t i = 0; x->b && i < x->b->n_out_messages; i++)
		assert_true(x->arrived[i]);
	x->has_ended = true;
	x->ended_at = k->now;
}

static const struct engine_sink sink = {on_send, on_end};

static void random_border(struct rng *r, struct border *b)
{
	uint32_t i, d, n_deps = 0;

	*b = (struct border){.n_in = below(r, 6), .n_out = below(r, 6)};
	b->in = calloc(b->n_in + 1, sizeof(*b->in));
	b->out = calloc(b->n_out + 1, sizeof(*b->out));
	b->dep_start = calloc(b->n_in + 1, sizeof(*b->dep_start));
	b->dep = calloc(b->n_in * 3 + 1, sizeof(*b->dep));
	for (i = 0; i < b->n_out; i++) {
		b->out[i] = (struct border_conn){.src = i,
						 .dst = 100 + i,
						 .n_messages = 1 + below(r, 70),
						 .first_bit = b->n_out_messages};
		b->n_out_messages += b->out[i].n_messages;
	}
	for (i = 0; i < b->n_in; i++) {
		uint32_t n = b->n_out ? below(r, 4) : 0;

		b->in[i] = (struct border_conn){.src = 100 + i,
						.dst = i,
						.n_messages = 1 + below(r, 70),
						.first_bit = b->n_in_messages};
		b->n_in_messages += b->in[i].n_messages;
		b->dep_start[i] = n_deps;
		for (d = 0; d < n; d++) {
			uint32_t out = below(r, b->n_out);
			uint64_t least = b->in[i].n_messages > b->out[out].n_messages
						 ? b->in[i].n_messages - b->out[out].n_messages
						 : 0;

			/* whoever it waits for exists; a huge shift waits for nobody */
			b->dep[n_deps++] =
				(struct border_dep){out, below(r, 8) ? least + below(r, 10)
								     : UINT64_MAX - below(r, 2)};
		}
	}
	b->dep_start[b->n_in] = n_deps;
}

/* Many of the times are equal. */
static void random_timing(struct rng *r, const struct border *b, struct timing *t)
{
	struct err err = {""};

	*t = (struct timing){.end_ns = below(r, 300)};
	assert_int_equal(timing_alloc(t, b, &err), 0);
	for (uint32_t c = 0; c < b->n_in; c++) {
		double now = below(r, 20), step = below(r, 3);
		bool is_linear = below(r, 2);

		for (uint64_t i = 0; i < b->in[c].n_messages; i++) {
			t->at[t->offset[c] + i] = fmin(now, t->end_ns);
			now += is_linear ? step : below(r, 2) ? below(r, 4) : rng_uniform(r);
		}
	}
}

static void border_free(struct border *b)
{
	free(b->in);
	free(b->out);
	free(b->dep_start);
	free(b->dep);
}

static void start_op(struct rng *r, struct bench *k, struct border *b, struct timing *t)
{
	struct expect *x = &k->ops[k->n_ops++];

	*x = (struct expect){.b = b, .t = t, .start_ns = k->now};
	x->end_ns = k->now + (uint64_t)ceil(t->end_ns) + below(r, 3);
	x->arrived = calloc(b->n_out_messages + 1, 1);
	x->sent = calloc(b->n_in_messages + 1, 1);
	x->sent_at = calloc(b->n_in_messages + 1, sizeof(uint64_t));
	assert_int_equal(engine_start(k->engine, b, t, x->start_ns, x->end_ns, x, &x->op), 0);
}

static void deliver(struct bench *k, struct expect *x, uint32_t out)
{
	struct err err = {""};
	uint64_t index = 0;

	while (index < x->b->out[out].n_messages && x->arrived[x->b->out[out].first_bit + index])
		index++;
	if (index == x->b->out[out].n_messages) /* one too many is refused, and changes nothing */
		assert_int_equal(engine_arrived(k->engine, x->op, out, index, &err),
				 ENGINE_UNEXPECTED);
	else {
		assert_int_equal(engine_arrived(k->engine, x->op, out, index + 1, &err),
				 ENGINE_UNEXPECTED);
		assert_non_null(strstr(err.text, "expected was message"));
		x->arrived[x->b->out[out].first_bit + index] = true;
		assert_int_equal(engine_arrived(k->engine, x->op, out, index, &err), 0);
	}
}

static bool all_over(const struct bench *k)
{
	for (int i = 0; i < k->n_ops; i++)
		if (!k->ops[i].has_ended)
			return false;
	return true;
}

static void advance(struct bench *k)
{
	uint64_t next;

	k->last_due = 0;
	next = engine_advance(k->engine, k->now);
	assert_true(next > k->now);
	for (int i = 0; i < k->n_ops; i++) { /* nothing due was left behind */
		const struct expect *x = &k->ops[i];

		for (uint32_t c = 0; !x->has_ended && c < x->b->n_in; c++) {
			for (uint64_t m = 0; m < x->b->in[c].n_messages; m++) {
				uint64_t due =
					x->start_ns + (uint64_t)ceil(timing_message_ns(x->t, c, m));

				if (x->sent[x->b->in[c].first_bit + m])
					continue;
				if (is_ready(x, c, m))
					assert_true(due > k->now && next <= due);
				break;
			}
		}
	}
}

static void run_random(struct rng *r, uint32_t n_ops)
{
	struct border border[MAX_OPS];
	struct timing timing[MAX_OPS];
	struct bench k = {.now = 1000};
	uint32_t i, rounds = 0;

	assert_int_equal(engine_new(&sink, &k, &k.engine), 0);
	for (i = 0; i < n_ops; i++) {
		random_border(r, &border[i]);
		random_timing(r, &border[i], &timing[i]);
		start_op(r, &k, &border[i], &timing[i]);
		k.now += below(r, 2) * below(r, 50);
	}
	assert_int_equal(engine_n_live(k.engine), n_ops);
	while (!all_over(&k)) {
		assert_true(rounds++ < 100000);
		for (i = below(r, 20); i > 0; i--) {
			struct expect *x = &k.ops[below(r, n_ops)];

			if (!x->has_ended && x->b->n_out)
				deliver(&k, x, below(r, x->b->n_out));
		}
		k.now += below(r, 3) ? 0 : below(r, 40);
		if (below(r, 2))
			advance(&k);
	}
	assert_int_equal(engine_n_live(k.engine), 0);
	assert_int_equal(engine_advance(k.engine, UINT64_MAX - 1), UINT64_MAX);
	for (i = 0; i < n_ops; i++) {
		timing_deinit(&timing[i]);
		border_free(&border[i]);
		free(k.ops[i].arrived);
		free(k.ops[i].sent);
		free(k.ops[i].sent_at);
	}
	engine_free(k.engine);
}

static void the_engine_releases_what_a_plain_model_releases(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 2);
	for (int i = 0; i < 600; i++)
		run_random(&r, 1 + below(&r, MAX_OPS));
}

/* Two connections out, three in; six arrivals at the same moment, in all orders that
 * the connections allow: the same messages at the same due times. */
static void the_order_of_arrivals_at_one_moment_does_not_matter(void **state)
{
	struct border_conn out[2] = {{.n_messages = 3}, {.n_messages = 3, .first_bit = 3}};
	struct border_conn in[3] = {{.n_messages = 3},
				    {.n_messages = 3, .first_bit = 3},
				    {.n_messages = 3, .first_bit = 6}};
	uint32_t dep_start[4] = {0, 1, 2, 4};
	struct border_dep dep[4] = {{0, 0}, {1, 1}, {0, 0}, {1, 0}};
	struct border b = {in, out, 3, 2, dep_start, dep, 9, 6, 0};
	double at[9] = {10, 10, 10, 10, 15, 20, 0.25, 0.75, 1.25};
	uint64_t offset[4] = {0, 3, 6, 9};
	struct timing t = {.end_ns = 40, .at = at, .offset = offset, .n_in = 3};
	uint64_t expected[9];
	struct rng r;
	int n_orders = 0;

	(void)state;
	rng_seed(&r, 1, 1);
	for (int order = 0; order < 64; order++) {
		struct bench k = {.now = 100};
		struct expect *x = &k.ops[0];

		if (__builtin_popcount((unsigned)order) != 3)
			continue;
		assert_int_equal(engine_new(&sink, &k, &k.engine), 0);
		start_op(&r, &k, &b, &t);
		for (int i = 0; i < 6; i++)
			deliver(&k, x, order >> i & 1);
		for (k.now = 100; !x->has_ended; k.now++)
			advance(&k);
		if (n_orders++ == 0)
			memcpy(expected, x->sent_at, sizeof(expected));
		assert_memory_equal(expected, x->sent_at, sizeof(expected));
		free(x->arrived);
		free(x->sent);
		free(x->sent_at);
		engine_free(k.engine);
	}
	assert_int_equal(n_orders, 20);
}

/* Three ops with everything due at once are served in turns. */
struct turns {
	char text[64];
	int n;
};

static void turn_send(void *owner, struct engine_op *op, uint32_t in, uint64_t index, uint64_t due)
{
	struct turns *t = owner;

	(void)in;
	(void)index;
	(void)due;
	t->text[t->n++] = *(const char *)engine_op_tag(op);
}

static void turn_end(void *owner, struct engine_op *op, uint64_t end_ns)
{
	(void)owner;
	(void)op;
	(void)end_ns;
}

static void ops_take_turns_at_equal_times(void **state)
{
	const struct engine_sink turn_sink = {turn_send, turn_end};
	struct border_conn in[4] = {{.n_messages = 2},
				    {.n_messages = 2, .first_bit = 2},
				    {.n_messages = 2, .first_bit = 4},
				    {.n_messages = 2, .first_bit = 6}};
	uint32_t dep_start[5] = {0};
	struct border b = {.in = in, .n_in = 4, .dep_start = dep_start, .n_in_messages = 8};
	double zero[8] = {0};
	uint64_t offset[5] = {0, 2, 4, 6, 8};
	struct timing t = {.at = zero, .offset = offset, .n_in = 4};
	char names[] = "abc";
	struct turns turns = {.n = 0};
	struct engine_op *op;
	struct engine *e;

	(void)state;
	assert_int_equal(engine_new(&turn_sink, &turns, &e), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(engine_start(e, &b, &t, 5, 5, &names[i], &op), 0);
	assert_int_equal(engine_advance(e, 4), 5);
	assert_int_equal(turns.n, 0);
	assert_int_equal(engine_advance(e, 5), UINT64_MAX);
	assert_string_equal(turns.text, "abcabcabcabcabcabcabcabc");
	engine_free(e);
}

/* Of four messages due at 110, 120, 130 and 150, of an op that ends at 140. */
static void note_due(void *owner, struct engine_op *op, uint32_t in, uint64_t index, uint64_t due)
{
	uint64_t *at = owner;

	(void)op;
	(void)in;
	at[index] = due;
}

static void an_op_that_ends_later_sends_as_much_later_and_nothing_behind_its_end(void **state)
{
	const struct engine_sink due_sink = {note_due, turn_end};
	struct border_conn in = {.n_messages = 4};
	uint32_t dep_start[2] = {0};
	struct border b = {.in = &in, .n_in = 1, .dep_start = dep_start, .n_in_messages = 4};
	double at[4] = {10, 20, 30, 50};
	uint64_t offset[2] = {0, 4}, due[4] = {0};
	struct timing t = {.end_ns = 40, .at = at, .offset = offset, .n_in = 1};
	struct engine_op *op;
	struct engine *e;

	(void)state;
	assert_int_equal(engine_new(&due_sink, due, &e), 0);
	assert_int_equal(engine_start(e, &b, &t, 100, 140, NULL, &op), 0);
	assert_int_equal(engine_advance(e, 115), 120);
	engine_stretch(e, op, 115, 190); /* what is left takes three times as long */
	assert_int_equal(engine_advance(e, 159), 160);
	engine_stretch(e, op, 159, 190); /* nothing, but for what whole nanoseconds are wrong by */
	assert_int_equal(engine_advance(e, 162), 190);
	engine_stretch(e, op, 189, 289); /* a hundred times */
	assert_int_equal(engine_advance(e, 288), 289);
	assert_int_equal(engine_advance(e, 289), UINT64_MAX);
	assert_true(due[0] == 110 && due[1] == 130 && due[2] >= 160 && due[2] <= 162 &&
		    due[3] == 289);
	engine_free(e);
}

static void an_op_without_a_border_ends_at_its_time(void **state)
{
	struct timing t = {.end_ns = 10.25};
	struct bench k = {.now = 50, .n_ops = 1};
	struct expect *x = &k.ops[0];
	struct border none = {0};
	struct err err = {""};

	(void)state;
	x->b = &none;
	x->t = &t;
	x->end_ns = 61;
	assert_int_equal(engine_new(&sink, &k, &k.engine), 0);
	assert_int_equal(engine_start(k.engine, NULL, &t, 50, 61, x, &x->op), 0);
	assert_int_equal(engine_arrived(k.engine, x->op, 0, 0, &err), ENGINE_UNEXPECTED);
	assert_string_not_equal(err.text, "");
	k.now = 60;
	assert_int_equal(engine_advance(k.engine, k.now), 61);
	assert_false(x->has_ended);
	k.now = 61;
	assert_int_equal(engine_advance(k.engine, k.now), UINT64_MAX);
	assert_true(x->has_ended);
	assert_null(engine_free(k.engine));
	assert_null(engine_free(NULL));
}

static void cancelled_ops_send_and_end_nothing(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 3);
	for (int round = 0; round < 200; round++) {
		struct border border[3];
		struct timing timing[3];
		struct bench k = {.now = 10};
		int victim = (int)below(&r, 3);

		assert_int_equal(engine_new(&sink, &k, &k.engine), 0);
		for (int i = 0; i < 3; i++) {
			random_border(&r, &border[i]);
			random_timing(&r, &border[i], &timing[i]);
			start_op(&r, &k, &border[i], &timing[i]);
		}
		if (below(&r, 2))
			advance(&k);
		if (!k.ops[victim].has_ended) {
			engine_cancel(k.engine, k.ops[victim].op);
			k.ops[victim].op = NULL;
			k.ops[victim].has_ended = true;
		}
		for (int i = 0; i < 3; i++)
			for (uint32_t c = 0; !k.ops[i].has_ended && c < border[i].n_out; c++)
				for (uint64_t m = 0; m < border[i].out[c].n_messages; m++)
					deliver(&k, &k.ops[i], c);
		k.now = 100000;
		advance(&k);
		assert_true(all_over(&k));
		for (int i = 0; i < 3; i++) {
			timing_deinit(&timing[i]);
			border_free(&border[i]);
			free(k.ops[i].arrived);
			free(k.ops[i].sent);
			free(k.ops[i].sent_at);
		}
		engine_free(k.engine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_op_that_ends_later_sends_as_much_later_and_nothing_behind_its_end),
		cmocka_unit_test(an_op_without_a_border_ends_at_its_time),
		cmocka_unit_test(ops_take_turns_at_equal_times),
		cmocka_unit_test(the_order_of_arrivals_at_one_moment_does_not_matter),
		cmocka_unit_test(the_engine_releases_what_a_plain_model_releases),
		cmocka_unit_test(cancelled_ops_send_and_end_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
