/* Ops that share links, message by message: against a slow, obvious model; alone as sim_run() says.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/sim-set.h"
#include "engine/sim.h"
#include "rng.h"

#define OPS_MAX 6
#define RANKS_MAX 12
#define LINKS 40
#define CONNS_MAX 256
#define MESSAGES_MAX 64

/* A world of cables: each rank has one out, one in, and some pairs a third one between. */
struct op {
	struct sched s;
	uint32_t at[RANKS_MAX]; /* of comm ranks, in the world */
	uint64_t seed;
	double flows;
};

struct game {
	struct op ops[OPS_MAX];
	struct sim_set_op set[OPS_MAX];
	struct sim_cost cost[OPS_MAX];
	double capacity[LINKS];
	uint32_t n, n_ranks;
};

static struct game game;

static int cost_of(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		   uint64_t bytes, struct nbox_delay *ret)
{
	const struct op *o = ctx;
	uint64_t h =
		(o->seed ^ (src * 31 + dst * 7 + lane * 3 + index)) * UINT64_C(0x9e3779b97f4a7c15);

	ret->latency_ns = (double)(h >> 60);
	ret->occupancy_ns = (double)bytes * o->flows * (double)(1 + (h >> 50 & 3));
	if ((h >> 40 & 15) == 0)
		ret->occupancy_ns = 0;
	return 0;
}

static int links_of(void *ctx, uint32_t src, uint32_t dst, uint16_t lane,
		    uint64_t ret_links[SIM_SET_LINKS], double ret_bytes_per_ns[SIM_SET_LINKS])
{
	const struct op *o = ctx;
	uint32_t a = o->at[src], b = o->at[dst];
	int n = 2 + (a / 3 != b / 3);

	(void)lane;
	ret_links[0] = a;
	ret_links[1] = RANKS_MAX + b;
	ret_links[2] = 2 * RANKS_MAX + a / 3;
	for (int i = 0; i < n; i++)
		ret_bytes_per_ns[i] = game.capacity[ret_links[i]];
	return n;
}

static void new_op(struct rng *r, uint32_t i, enum coll_kind kind, enum sched_algo algo,
		   uint64_t bytes)
{
	struct op *o = &game.ops[i];
	struct err err = {""};

	*o = (struct op){.s = {.kind = kind,
			       .algo = algo,
			       .n_ranks = game.n_ranks,
			       .ranks_per_node = 1,
			       .n_channels = 1,
			       .elem_bytes = 1,
			       .bytes = bytes,
			       .chunk_bytes = bytes / 4 + 1},
			 .seed = r ? rng_u64(r) : 0,
			 .flows = 1};
	for (uint32_t k = 0; k < RANKS_MAX; k++)
		o->at[k] = k;
	if (r) {
		o->s.n_ranks = 1 + (uint32_t)below(r, game.n_ranks);
		o->s.n_channels = 1 + (uint32_t)below(r, 2);
		o->s.root = (uint32_t)below(r, o->s.n_ranks);
		for (uint32_t k = game.n_ranks - 1; k > 0; k--) {
			uint32_t other = (uint32_t)below(r, k + 1), swap = o->at[k];

			o->at[k] = o->at[other];
			o->at[other] = swap;
		}
	}
	assert_int_equal(sched_init(&o->s, &err), 0);
	game.cost[i] = (struct sim_cost){.message = cost_of, .ctx = o};
	game.set[i] = (struct sim_set_op){.s = &o->s,
					  .cost = &game.cost[i],
					  .links = links_of,
					  .wire_factor = 1,
					  .after = SIM_SET_NONE};
	game.n = i + 1;
}

static struct sim_set_result run(void)
{
	struct sim_set_result got;
	struct err err = {""};

	if (sim_set_run(game.set, game.n, &got, &err))
		fail_msg("%s", err.text);
	return got;
}

static double alone(uint32_t i)
{
	struct sim_result got;
	struct err err = {""};

	if (sim_run(&game.ops[i].s, &game.cost[i], NULL, NULL, &got, &err))
		fail_msg("%s", err.text);
	return got.end_ns;
}

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * fmax(fabs(a), fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

/* --- the slow model ------------------------------------------------------------------ */

struct slow_conn {
	struct sched_conn c;
	uint32_t op;
	uint64_t n_sent, n_left, n_here; /* n_here: at n_here's time */
	double left[MESSAGES_MAX], latency[MESSAGES_MAX], bytes[MESSAGES_MAX], work[MESSAGES_MAX],
		here[MESSAGES_MAX];
	double speed;
	uint64_t links[SIM_SET_LINKS];
	double capacity[SIM_SET_LINKS];
	int n_links;
};

static struct slow_conn conns[CONNS_MAX];
static uint32_t n_conns;

static struct slow_conn *find(uint32_t op, uint32_t src, uint32_t dst, uint16_t lane)
{
	for (uint32_t i = 0; i < n_conns; i++)
		if (conns[i].op == op && conns[i].c.src == src && conns[i].c.dst == dst &&
		    conns[i].c.lane == lane)
			return &conns[i];
	fail_msg("no connection from %u to %u, lane %u", src, dst, lane);
	return NULL;
}

static double load_on(const struct slow_conn *c, uint64_t link)
{
	for (int k = 0; k < c->n_links; k++)
		if (c->links[k] == link)
			return c->bytes[c->n_left] / c->work[c->n_left] / c->capacity[k];
	return 0;
}

static bool sends(const struct slow_conn *c)
{
	return c->n_left < c->n_sent;
}

static double op_load(uint32_t op, uint64_t link)
{
	double sum = 0;

	for (uint32_t i = 0; i < n_conns; i++)
		if (conns[i].op == op && sends(&conns[i]))
			sum += load_on(&conns[i], link);
	return sum;
}

/* What a link where @level is everybody's rate leaves over. */
static double level_of(const bool *has, uint64_t link)
{
	double taken = 0, rising = 0;
	uint32_t n_ops = 0;

	for (uint32_t o = 0; o < game.n; o++)
		n_ops += op_load(o, link) > 0;
	for (uint32_t i = 0; i < n_conns && n_ops > 1; i++) {
		struct slow_conn *c = &conns[i];
		double load;

		if (!sends(c))
			continue;
		load = load_on(c, link) / fmax(1, op_load(c->op, link));
		if (has[i])
			taken += load * c->speed;
		else
			rising += load * c->work[c->n_left] / c->bytes[c->n_left];
	}
	return rising > 0 ? (1 - taken) / rising : INFINITY;
}

static void slow_speeds(void)
{
	bool has[CONNS_MAX] = {0};

	for (;;) {
		double lowest = INFINITY;
		uint32_t who = CONNS_MAX;

		for (uint32_t i = 0; i < n_conns; i++) {
			struct slow_conn *c = &conns[i];
			double level;

			if (has[i] || !sends(c))
				continue;
			level = c->bytes[c->n_left] / c->work[c->n_left];
			for (int k = 0; k < c->n_links; k++)
				level = fmin(level, level_of(has, c->links[k]));
			if (level < lowest) {
				lowest = level;
				who = i;
			}
		}
		if (who == CONNS_MAX)
			return;
		has[who] = true;
		conns[who].speed = lowest * conns[who].work[conns[who].n_left] /
				   conns[who].bytes[conns[who].n_left];
	}
}

/* All steps whose receives are here. Return: whether there were any. */
static bool play(uint32_t op, uint64_t step[RANKS_MAX][8])
{
	const struct sched *s = &game.ops[op].s;
	bool moved = false;

	for (uint32_t r = 0; r < s->n_ranks; r++)
		for (uint32_t t = 0; t < sched_n_threads(s, r); t++) {
			struct sched_step st;
			bool can = step[r][t] < sched_n_steps(s, r, t);

			if (!can)
				continue;
			sched_step(s, r, t, step[r][t], &st);
			for (uint32_t i = 0; i < st.n_recv; i++)
				can = can &&
				      find(op, st.recv[i], r, st.recv_lane)->n_here > st.recv_index;
			for (uint32_t i = 0; can && i < st.n_send; i++) {
				struct slow_conn *c = find(op, r, st.send[i], st.send_lane);
				struct nbox_delay d;

				assert_true(c->n_sent < MESSAGES_MAX);
				cost_of(&game.ops[op], r, st.send[i], st.send_lane, st.send_index,
					st.bytes, &d);
				c->left[c->n_sent] = c->work[c->n_sent] = d.occupancy_ns;
				c->bytes[c->n_sent] = (double)st.bytes;
				c->latency[c->n_sent++] = d.latency_ns;
			}
			step[r][t] += can;
			moved |= can;
		}
	return moved;
}

/* Everything that happens without time passing. Return: whether anything did. */
static bool happen(double now)
{
	bool moved = false;

	for (uint32_t i = 0; i < n_conns; i++) {
		struct slow_conn *c = &conns[i];

		for (; sends(c) && c->left[c->n_left] <= 1e-11 * now; c->n_left++) {
			c->here[c->n_left] = now + c->latency[c->n_left];
			if (c->n_left)
				c->here[c->n_left] =
					fmax(c->here[c->n_left], c->here[c->n_left - 1]);
			moved = true;
		}
		for (; c->n_here < c->n_left && c->here[c->n_here] <= now; c->n_here++)
			moved = true;
	}
	return moved;
}

static void add_conns(uint32_t op)
{
	const struct sched *s = &game.ops[op].s;

	for (uint32_t r = 0; r < s->n_ranks; r++) {
		struct sched_conn *of_rank;
		uint32_t n_in, n_out;

		assert_int_equal(sched_conns(s, r, &of_rank, &n_in, &n_out), 0);
		for (uint32_t i = n_in; i < n_in + n_out; i++) {
			struct slow_conn *c = &conns[n_conns++];

			assert_true(n_conns <= CONNS_MAX);
			*c = (struct slow_conn){.c = of_rank[i], .op = op};
			c->n_links = links_of(&game.ops[op], c->c.src, c->c.dst, c->c.lane,
					      c->links, c->capacity);
		}
		free(of_rank);
	}
}

static bool is_over(uint32_t op)
{
	for (uint32_t i = 0; i < n_conns; i++)
		if (conns[i].op == op && conns[i].n_here < conns[i].c.n_messages)
			return false;
	return true;
}

static void slow_ends(double *end)
{
	static uint64_t step[OPS_MAX][RANKS_MAX][8];
	double now = 0;

	n_conns = 0;
	memset(step, 0, sizeof(step));
	for (uint32_t o = 0; o < game.n; o++) {
		add_conns(o);
		end[o] = -1;
	}
	for (;;) {
		double next = INFINITY;
		bool moved = true;

		while (moved) {
			moved = happen(now);
			for (uint32_t o = 0; o < game.n; o++) {
				const struct sim_set_op *op = &game.set[o];
				double begin = op->after == SIM_SET_NONE ? op->start_ns
					       : end[op->after] < 0
						       ? INFINITY
						       : fmax(op->start_ns, end[op->after]);

				if (begin > now) {
					next = fmin(next, begin);
					continue;
				}
				moved |= play(o, step[o]);
				if (end[o] < 0 && is_over(o)) {
					end[o] = now;
					moved = true;
				}
			}
		}
		slow_speeds();
		for (uint32_t i = 0; i < n_conns; i++) {
			if (sends(&conns[i]))
				next = fmin(next,
					    now + conns[i].left[conns[i].n_left] / conns[i].speed);
			if (conns[i].n_here < conns[i].n_left)
				next = fmin(next, conns[i].here[conns[i].n_here]);
		}
		if (isinf(next))
			return;
		for (uint32_t i = 0; i < n_conns; i++)
			if (sends(&conns[i]))
				conns[i].left[conns[i].n_left] -= (next - now) * conns[i].speed;
		now = next;
	}
}

/* --- what must hold --------------------------------------------------------------------- */

static void sets_take_the_time_of_the_slow_model(void **state)
{
	static const struct {
		enum coll_kind kind;
		enum sched_algo algo;
	} kinds[] = {{COLL_ALLREDUCE, SCHED_RING},
		     {COLL_ALLREDUCE, SCHED_TREE},
		     {COLL_ALLGATHER, SCHED_RING},
		     {COLL_REDUCESCATTER, SCHED_RING},
		     {COLL_BROADCAST, SCHED_CHAIN}};
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 14);
	for (int i = 0; i < 150; i++) {
		double slow[OPS_MAX], bytes[LINKS] = {0};
		uint32_t n = 1 + (uint32_t)below(&r, OPS_MAX);
		struct sim_set_result got;

		game = (struct game){.n_ranks = 2 + (uint32_t)below(&r, 5)};
		for (uint32_t l = 0; l < LINKS; l++)
			game.capacity[l] = 1 + (double)below(&r, 4) / 2;
		for (uint32_t o = 0; o < n; o++) {
			uint32_t k = (uint32_t)below(&r, 5);

			new_op(&r, o, kinds[k].kind, kinds[k].algo, below(&r, 400));
			game.set[o].start_ns = (double)below(&r, 300);
			if (o && below(&r, 3) == 0)
				game.set[o].after = (uint32_t)below(&r, o);
		}
		slow_ends(slow);
		got = run();
		for (uint32_t o = 0; o < n; o++)
			assert_near(game.set[o].end_ns, slow[o]);
		/* all bytes cross all their links, and no link carries more than it can */
		for (uint32_t c = 0; c < n_conns; c++) {
			got.n_messages -= conns[c].c.n_messages;
			for (uint64_t m = 0; m < conns[c].n_sent; m++)
				for (int k = 0; k < conns[c].n_links; k++)
					bytes[conns[c].links[k]] +=
						conns[c].work[m] > 0 ? conns[c].bytes[m] : 0;
		}
		assert_int_equal(got.n_messages, 0);
		for (uint32_t l = 0; l < LINKS; l++)
			assert_true(bytes[l] / game.capacity[l] <= got.end_ns * (1 + 1e-9));
	}
}

static void an_op_alone_is_as_sim_run_says(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 15);
	for (int i = 0; i < 200; i++) {
		double end[2];

		game = (struct game){.n_ranks = RANKS_MAX};
		for (uint32_t l = 0; l < LINKS; l++)
			game.capacity[l] = 1e-3; /* the model knows other links */
		new_op(&r, 0, COLL_ALLREDUCE, below(&r, 2) ? SCHED_RING : SCHED_TREE, 1 << 14);
		end[0] = alone(0);
		run();
		assert_true(game.set[0].end_ns == end[0]);
		/* nor does one matter that is over before it begins: then its messages share */
		new_op(&r, 1, COLL_ALLGATHER, SCHED_RING, 1 << 10);
		end[1] = alone(1);
		game.set[1].after = 0;
		run();
		assert_near(game.set[0].end_ns, end[0]);
		assert_near(game.set[1].end_ns, end[0] + end[1]);
	}
}

static void ops_on_other_ranks_do_not_meet(void **state)
{
	struct rng r;
	double end[2];

	(void)state;
	rng_seed(&r, 2026, 16);
	game = (struct game){.n_ranks = 3};
	for (uint32_t l = 0; l < LINKS; l++)
		game.capacity[l] = 1;
	new_op(NULL, 0, COLL_ALLREDUCE, SCHED_RING, 3000);
	new_op(NULL, 1, COLL_ALLREDUCE, SCHED_RING, 3000);
	for (uint32_t k = 0; k < 3; k++)
		game.ops[1].at[k] = 3 + k;
	end[0] = alone(0);
	end[1] = alone(1);
	assert_int_equal(run().n_solved, 0);
	assert_true(game.set[0].end_ns == end[0] && game.set[1].end_ns == end[1]);
}

static int cable_cost(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
		      uint64_t bytes, struct nbox_delay *ret)
{
	(void)ctx;
	(void)src;
	(void)dst;
	(void)lane;
	(void)index;
	*ret = (struct nbox_delay){.occupancy_ns = (double)bytes};
	return 0;
}

/* Equal ops on one cable: @n of them take n times as long, and one that begins when half of the
 * other is done ends 1.5 times later than alone. */
static void equal_ops_share_a_cable_evenly(void **state)
{
	double solo;

	(void)state;
	game = (struct game){.n_ranks = 4};
	for (uint32_t l = 0; l < LINKS; l++)
		game.capacity[l] = 1;
	for (uint32_t i = 0; i < 3; i++) {
		new_op(NULL, i, COLL_ALLREDUCE, SCHED_RING, 4000);
		game.cost[i].message = cable_cost;
		solo = alone(i);
		run();
		for (uint32_t k = 0; k <= i; k++)
			assert_near(game.set[k].end_ns, (i + 1) * solo);
	}
	game.n = 2;
	game.set[1].start_ns = solo / 2;
	run();
	assert_near(game.set[0].end_ns, 1.5 * solo);
	assert_near(game.set[1].end_ns, 2 * solo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_take_the_time_of_the_slow_model),
		cmocka_unit_test(an_op_alone_is_as_sim_run_says),
		cmocka_unit_test(ops_on_other_ranks_do_not_meet),
		cmocka_unit_test(equal_ops_share_a_cable_evenly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
