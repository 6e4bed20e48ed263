/* Predicted iterations of random tasks: by the order of events they are those of a graph of ops;
 * their critical paths have no gaps; what does not count changes nothing. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dfg/dfg.h"
#include "predict/blame.h"
#include "predict/path.h"
#include "rng.h"

#define RANKS 4
#define OPS 30
#define JOINS 8
#define TASKS 400

struct made {
	struct predict_rank ranks[RANKS];
	struct predict_op ops[RANKS * OPS];
	struct predict_kernel kernels[RANKS * OPS * 3];
	struct predict_host host;
	struct predict_task t;
};

static double us(struct rng *r, uint64_t below)
{
	return 1000 * (double)(rng_u64(r) % below);
}

/* Collectives come in the same order at all their ranks; some have a part of the ranks. */
static void make(struct made *m, uint64_t seed)
{
	struct rng r;
	uint32_t members[JOINS];

	rng_seed(&r, seed, 0);
	memset(m, 0, sizeof(*m));
	m->host = (struct predict_host){us(&r, 9), us(&r, 9), us(&r, 9),
					us(&r, 9), us(&r, 9), us(&r, 3)};
	m->t = (struct predict_task){.ranks = m->ranks,
				     .ops = m->ops,
				     .kernels = m->kernels,
				     .n_ranks = RANKS,
				     .n_joins = JOINS};
	for (uint32_t j = 0; j < JOINS; j++)
		members[j] = rng_u64(&r) % 3 ? 15 : 1 + (uint32_t)(rng_u64(&r) % 15);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		uint32_t next = 0, last = PREDICT_NONE;

		m->ranks[rank].first = m->t.n_ops;
		for (uint32_t i = 0; i < OPS; i++) {
			struct predict_op *op = &m->ops[m->t.n_ops++];

			while (next < JOINS && !(members[next] >> rank & 1))
				next++;
			*op = (struct predict_op){.first = m->t.n_kernels,
						  .n = (uint32_t)(rng_u64(&r) % 3),
						  .join = PREDICT_NONE,
						  .after = PREDICT_NONE,
						  .is_sync = rng_u64(&r) % 9 == 0,
						  .host = &m->host};
			if (next < JOINS && (rng_u64(&r) % 3 == 0 || i >= OPS - JOINS + next)) {
				op->join = next++;
				op->n++;
			}
			if (last != PREDICT_NONE && rng_u64(&r) % 3 == 0)
				op->after = last;
			for (uint32_t k = 0; k < op->n; k++)
				m->kernels[m->t.n_kernels++] =
					(struct predict_kernel){us(&r, 60), 0,
								op->join != PREDICT_NONE &&
										k + 1 == op->n
									? PREDICT_COLLECTIVE
									: PREDICT_COMPUTE,
								false};
			if (op->join != PREDICT_NONE)
				last = m->t.n_ops - 1;
		}
		m->ranks[rank].n = OPS;
	}
}

static struct predict play(const struct predict_task *t, enum predict_sync sync)
{
	struct predict p;
	uint32_t op;

	assert_int_equal(predict_play(t, sync, &p, &op), 0);
	return p;
}

/* --- as a graph --- */

struct graph {
	struct dfg *g;
	uint32_t joins[JOINS];
	double longest[JOINS];
};

static uint32_t node(struct graph *g, double ns)
{
	uint32_t n;

	assert_int_equal(dfg_add_op(g->g, DFG_PARALLEL, ns, 0, &n), 0);
	return n;
}

static void edge(struct graph *g, uint32_t before, uint32_t after, double lag)
{
	if (before != DFG_NONE)
		assert_int_equal(dfg_add_edge(g->g, before, after, lag), 0);
}

static void add_rank(struct graph *g, const struct made *m, uint32_t rank)
{
	const struct predict_host *h = &m->host;
	uint32_t host = node(g, 0), begin = node(g, 0), compute = begin, comm = begin;
	uint32_t awaited[OPS], n_awaited = 0;

	for (uint32_t i = m->ranks[rank].first; i < m->ranks[rank].first + OPS; i++) {
		const struct predict_op *op = &m->ops[i];
		uint32_t next = node(g, h->before + (op->n ? h->first : h->next));

		if (op->after != PREDICT_NONE && (op->join == PREDICT_NONE || op->n > 1))
			awaited[n_awaited++] = g->joins[m->ops[op->after].join];
		edge(g, host, next, 0);
		host = next;
		for (uint32_t k = op->first; k < op->first + op->n; k++) {
			bool is_comm = m->kernels[k].class == PREDICT_COLLECTIVE;
			uint32_t run = node(g, is_comm ? 0 : m->kernels[k].ns);

			edge(g, host, run, h->launch / 2);
			edge(g, compute, run, h->gap);
			for (uint32_t a = 0; a < n_awaited; a++)
				edge(g, awaited[a], run, h->gap);
			if (is_comm && op->after != PREDICT_NONE)
				edge(g, g->joins[m->ops[op->after].join], run, h->gap);
			if (is_comm) {
				edge(g, comm, run, h->gap);
				comm = g->joins[op->join];
				edge(g, run, comm, 0);
				g->longest[op->join] = fmax(g->longest[op->join], m->kernels[k].ns);
			} else {
				compute = run;
				n_awaited = 0;
			}
			next = node(g, h->launch + (k + 1 < op->first + op->n ? h->next : h->last));
			edge(g, host, next, 0);
			host = next;
		}
		if (op->is_sync) {
			next = node(g, 0);
			edge(g, host, next, 0);
			edge(g, compute, next, 0);
			for (uint32_t a = 0; a < n_awaited; a++)
				edge(g, awaited[a], next, 0);
			host = next;
		}
	}
}

static double graph_ns(const struct made *m)
{
	struct graph g = {.g = dfg_new()};
	uint32_t op;
	double ns;

	assert_non_null(g.g);
	for (uint32_t j = 0; j < JOINS; j++)
		g.joins[j] = node(&g, 0);
	for (uint32_t r = 0; r < RANKS; r++)
		add_rank(&g, m, r);
	for (uint32_t j = 0; j < JOINS; j++)
		dfg_set_ns(g.g, g.joins[j], g.longest[j]);
	assert_int_equal(dfg_play(g.g, DFG_EVENT, &op), 0);
	ns = dfg_end(g.g, NULL);
	dfg_free(g.g);
	return ns;
}

static void events_are_those_of_a_graph(void **state)
{
	struct made m;

	(void)state;
	for (uint64_t seed = 1; seed <= TASKS; seed++) {
		struct predict p;
		double want;

		make(&m, seed);
		p = play(&m.t, PREDICT_EVENT);
		want = graph_ns(&m);
		if (fabs(p.ns - want) > 1e-6 * want)
			fail_msg("seed %llu: %.3f us, as a graph %.3f", (unsigned long long)seed,
				 p.ns / 1e3, want / 1e3);
		predict_deinit(&p);
	}
}

/* --- what must hold --- */

static void check_path(const struct made *m, enum predict_sync sync, uint64_t seed)
{
	struct predict p = play(&m->t, sync);
	struct path_segment *path;
	double at = 0;
	uint32_t n;

	assert_true(p.ns >= p.baseline);
	assert_int_equal(path_find(&p, &path, &n), 0);
	for (uint32_t i = 0; i < n; i++) {
		if (fabs(path[i].begin - at) > 1e-6)
			fail_msg("seed %llu: a gap in the path at %.3f us",
				 (unsigned long long)seed, at / 1e3);
		assert_true(path[i].end > path[i].begin);
		at = path[i].end;
	}
	assert_true(fabs(at - p.ns) < 1e-6);
	free(path);
	for (uint32_t r = 0; r < RANKS; r++) {
		assert_true(p.ranks[r].exposed > -1e-6);
		assert_true(p.ranks[r].active < p.ns + 1e-6);
	}
	predict_deinit(&p);
}

static void paths_have_no_gaps(void **state)
{
	struct made m;

	(void)state;
	for (uint64_t seed = 1; seed <= TASKS; seed++) {
		make(&m, seed);
		check_path(&m, PREDICT_EVENT, seed);
		check_path(&m, PREDICT_PAPER, seed);
	}
}

static void the_order_of_ranks_changes_nothing(void **state)
{
	struct made m;

	(void)state;
	for (uint64_t seed = 1; seed <= TASKS; seed++) {
		for (enum predict_sync sync = PREDICT_EVENT; sync <= PREDICT_PAPER; sync++) {
			struct predict a, b;

			make(&m, seed);
			a = play(&m.t, sync);
			for (uint32_t r = 0; r < RANKS / 2; r++) {
				struct predict_rank other = m.ranks[r];

				m.ranks[r] = m.ranks[RANKS - 1 - r];
				m.ranks[RANKS - 1 - r] = other;
			}
			b = play(&m.t, sync);
			assert_true(a.ns == b.ns && a.baseline == b.baseline);
			predict_deinit(&a);
			predict_deinit(&b);
		}
	}
}

/* A kernel that becomes longer: as much later at most, nothing at all where it has slack; what is
 * won by a culprit is what a play without its excess says. */
static void jitter_below_the_slack_changes_nothing(void **state)
{
	struct made m;

	(void)state;
	for (uint64_t seed = 1; seed <= TASKS; seed++) {
		struct predict a, b;
		struct rng r;
		uint32_t k;
		double slack;

		make(&m, seed);
		rng_seed(&r, seed, 1);
		k = (uint32_t)(rng_u64(&r) % m.t.n_kernels);
		a = play(&m.t, PREDICT_EVENT);
		m.kernels[k].ns += 1e6;
		b = play(&m.t, PREDICT_EVENT);
		assert_true(b.ns >= a.ns && b.ns <= a.ns + 1e6 + 1e-6);
		slack = 1e6 - (b.ns - a.ns);
		predict_deinit(&b);
		m.kernels[k].ns += slack / 2 - 1e6;
		b = play(&m.t, PREDICT_EVENT);
		assert_true(fabs(b.ns - a.ns) < 1e-6);
		predict_deinit(&b);
		predict_deinit(&a);
	}
}

static void the_blame_is_what_would_be_won(void **state)
{
	struct blame *found;
	struct made m;
	uint32_t n;

	(void)state;
	for (uint64_t seed = 1; seed <= TASKS / 4; seed++) {
		struct predict p;

		make(&m, seed);
		p = play(&m.t, PREDICT_EVENT);
		assert_int_equal(blame_find(&m.t, PREDICT_EVENT, &p, JOINS, &found, &n), 0);
		for (uint32_t i = 0; i < n; i++) {
			double excess = -found[i].median;

			for (int c = 0; c < PREDICT_COLLECTIVE; c++)
				excess += found[i].stretch.sum[c];
			assert_true(found[i].won >= -1e-6);
			assert_true(found[i].won <= fmax(excess, 0) + 1e-6);
			assert_true(!i || found[i].won <= found[i - 1].won);
			assert_true(found[i].wait_sum >= found[i].wait_max);
		}
		free(found);
		predict_deinit(&p);
	}
}

/* --- messages --- */

/* Two ranks, two ops each: computation of @us, then an exchange with @ends. */
static void make_pair(struct made *m, const double *us, const struct predict_end *ends,
		      uint32_t n_ends)
{
	memset(m, 0, sizeof(*m));
	m->t = (struct predict_task){.ranks = m->ranks,
				     .ops = m->ops,
				     .kernels = m->kernels,
				     .ends = ends,
				     .n_ranks = 2,
				     .n_ops = 4,
				     .n_kernels = 4,
				     .n_ends = 2 * n_ends};
	for (uint32_t r = 0; r < 2; r++) {
		m->ranks[r] = (struct predict_rank){.first = 2 * r, .n = 2};
		for (uint32_t i = 2 * r; i < 2 * r + 2; i++) {
			m->ops[i] = (struct predict_op){.first = i,
							.n = 1,
							.join = PREDICT_NONE,
							.after = PREDICT_NONE,
							.host = &m->host};
			m->kernels[i].class = i % 2 ? PREDICT_COLLECTIVE : PREDICT_COMPUTE;
			m->kernels[i].ns = i % 2 ? 0 : 1000 * us[r];
		}
		m->ops[2 * r + 1].first_end = n_ends * r;
		m->ops[2 * r + 1].n_ends = n_ends;
	}
}

/* When the exchanges of both ranks are over, in us. */
static void check_pair(struct made *m, const struct predict_message *messages, uint32_t n,
		       double end0, double end1)
{
	struct predict p;

	m->t.messages = messages;
	m->t.n_messages = n;
	p = play(&m->t, PREDICT_EVENT);
	if (fabs(p.kernels[1].end / 1e3 - end0) > 1e-9 ||
	    fabs(p.kernels[3].end / 1e3 - end1) > 1e-9)
		fail_msg("over at %g and %g us, not %g and %g", p.kernels[1].end / 1e3,
			 p.kernels[3].end / 1e3, end0, end1);
	predict_deinit(&p);
}

static void messages_keep_their_receivers_waiting(void **state)
{
	const struct predict_end one[] = {{0, true}, {0, false}};
	const struct predict_end both[] = {{0, true}, {1, false}, {0, false}, {1, true}};
	struct made m;

	(void)state;
	make_pair(&m, (double[]){10, 2}, one, 1); /* the sender is late, and waits for nobody */
	check_pair(&m, &(struct predict_message){5000, 1}, 1, 10, 15);
	make_pair(&m, (double[]){2, 10}, one, 1); /* the message is there */
	check_pair(&m, &(struct predict_message){5000, 1}, 1, 2, 10);
	/* of what does not fit its buffers the sender waits for the receiver: 2 of 8 us go before
	 * that, 2 in its buffers */
	check_pair(&m, &(struct predict_message){8000, .25}, 1, 14, 16);
	make_pair(&m, (double[]){10, 2}, both, 2); /* groups that do both wait for each other */
	check_pair(&m, (struct predict_message[]){{5000, 1}, {9000, 1}}, 2, 11, 15);
}

static void collectives_that_wait_for_each_other_are_refused(void **state)
{
	struct made m;
	struct predict p;
	uint32_t op, first = PREDICT_NONE;

	(void)state;
	make(&m, 1);
	/* rank 1 has two of all ranks the other way round */
	for (uint32_t i = m.ranks[1].first; i < m.ranks[1].first + OPS; i++) {
		if (m.ops[i].join == PREDICT_NONE)
			continue;
		if (first != PREDICT_NONE) {
			uint32_t join = m.ops[i].join;

			m.ops[i].join = m.ops[first].join;
			m.ops[first].join = join;
			break;
		}
		first = i;
	}
	assert_int_equal(predict_play(&m.t, PREDICT_EVENT, &p, &op), -ELOOP);
	assert_true(op < m.t.n_ops && m.ops[op].join != PREDICT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_those_of_a_graph),
		cmocka_unit_test(paths_have_no_gaps),
		cmocka_unit_test(the_order_of_ranks_changes_nothing),
		cmocka_unit_test(jitter_below_the_slack_changes_nothing),
		cmocka_unit_test(the_blame_is_what_would_be_won),
		cmocka_unit_test(messages_keep_their_receivers_waiting),
		cmocka_unit_test(collectives_that_wait_for_each_other_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
