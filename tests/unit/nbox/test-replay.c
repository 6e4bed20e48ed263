/* nbox replay: graphs of jobs made by hand, and what its options say. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "nbox/diagnose/diagnose.h"
#include "nbox/replay/alike.h"
#include "nbox/replay/result.h"
#include "nbox/replay/words.h"

enum { RANKS = 2 };
#define MS 1e6

/* Two ranks on nodes of their own; a byte a nanosecond, no latency. */
static void begin(struct job *j, uint32_t n_comms)
{
	*j = (struct job){.topology = {.n_nodes = RANKS,
				       .gpus_per_node = 1,
				       .intra = {0, 1},
				       .inter = {0, 1}},
			  .world = RANKS,
			  .n_ranks = RANKS,
			  .n_recorded = RANKS,
			  .n_comms = n_comms};
	j->ranks = calloc(RANKS, sizeof(*j->ranks));
	j->comms = calloc(n_comms, sizeof(*j->comms));
	assert_true(j->ranks && j->comms);
	for (uint32_t i = 0; i < RANKS; i++)
		j->ranks[i] = i;
	for (uint32_t i = 0; i < n_comms; i++) {
		j->comms[i] =
			(struct job_comm){.members = {RANKS, 0, 1, NULL}, .ranks_per_node = 1};
		j->comms[i].copies = calloc(RANKS, sizeof(uint32_t));
		assert_non_null(j->comms[i].copies);
		j->comms[i].copies[1] = 1;
	}
	assert_int_equal(job_add_row(j, &job_begin), 0);
}

/* After row @before: a rank computes, then comes to @op, or to none. Return: the row. */
static uint32_t add(struct job *j, uint32_t rank, uint32_t before, double ns, uint32_t op)
{
	const struct job_row row = {.rank = rank,
				    .stream = job_stream(j, rank, 7),
				    .name = JOB_NONE,
				    .op = op,
				    .ns = ns,
				    .plain_ns = ns};

	assert_int_equal(job_add_edge(j, before, j->n_rows, 0, 0), 0);
	assert_int_equal(job_add_row(j, &row), 0);
	return j->n_rows - 1;
}

static uint32_t add_op(struct job *j, uint32_t comm, uint32_t kind, uint64_t bytes)
{
	const struct job_op op = {.comm = comm,
				  .kind = kind,
				  .elem_bytes = 1,
				  .bytes = bytes,
				  .ns = -1,
				  .first_call = j->n_calls};

	assert_int_equal(job_add_op(j, &op), 0);
	return j->n_ops - 1;
}

static int end(struct job *j, struct play *p, double *ret_ns, struct err *err)
{
	struct costs costs;
	struct played played;
	int r;

	assert_int_equal(job_find_members(j), 0);
	assert_int_equal(costs_open(j, NULL, NULL, &costs, err), 0);
	p->job = j;
	p->costs = &costs;
	r = play(p, &played, err);
	if (r == 0) {
		*ret_ns = played.end_ns;
		played_deinit(&played);
	}
	costs_close(&costs);
	job_deinit(j);
	return r;
}

/* Rank 1 comes late; then a ring of two: half the bytes, twice. */
static void make_reduce(struct job *j)
{
	uint32_t op;

	begin(j, 1);
	op = add_op(j, 0, COLL_ALLREDUCE, 8000000);
	add(j, 0, 0, 1 * MS, op);
	add(j, 1, 0, 3 * MS, op);
}

static double reduce_with(const struct play_change *changes, uint32_t n)
{
	struct play p = {.changes = changes, .n_changes = n};
	struct err err = {""};
	struct job j;
	double ns;

	make_reduce(&j);
	assert_int_equal(end(&j, &p, &ns, &err), 0);
	return ns / MS;
}

static void changes_are_what_they_say(void **state)
{
	char text[] = "comm=0.5,rank:1=2,op:allreduce=+1ms", wrong[] = "comm=1,net=2",
	     twice[] = "rank:0=2,rank:1=2,rank:1=3";
	struct play_change *list = NULL;
	uint32_t n = 0;
	struct err err = {""};

	(void)state;
	assert_float_equal(reduce_with(NULL, 0), 3 + 8, 1e-6);
	assert_int_equal(words_scale(text, &list, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_float_equal(reduce_with(list, 1), 3 + 4, 1e-6);
	assert_float_equal(reduce_with(list, 2), 6 + 4, 1e-6);
	assert_float_equal(reduce_with(list, 3), 6 + 4 + 1, 1e-6);
	n = 0;
	assert_int_equal(words_scale(wrong, &list, &n, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'net'"));
	n = 0;
	assert_int_equal(words_scale(twice, &list, &n, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rank:1 is given twice"));
	free(list);
}

static void a_send_goes_when_it_is_posted_and_arrives_when_both_are_there(void **state)
{
	struct play p = {.policy = PLAY_EVENT};
	struct err err = {""};
	uint32_t send, receive;
	struct job j;
	double ns;

	(void)state;
	begin(&j, 1);
	send = add_op(&j, 0, COLL_SENDRECV, 0);
	assert_int_equal(job_add_call(&j, &(struct job_call){1, true, 2000000}), 0);
	j.ops[send].n_calls = 1;
	receive = add_op(&j, 0, COLL_SENDRECV, 0);
	assert_int_equal(job_add_call(&j, &(struct job_call){0, false, 2000000}), 0);
	j.ops[receive].n_calls = 1;
	add(&j, 0, 0, 3 * MS, send);
	add(&j, 1, add(&j, 1, 0, 1 * MS, receive), 4 * MS, JOB_NONE);
	assert_int_equal(end(&j, &p, &ns, &err), 0);
	assert_float_equal(ns / MS, 3 + 2 + 4, 1e-6);
}

/* Each rank comes to the other's second op first. */
static void ranks_that_wait_for_each_other_are_named(void **state)
{
	struct play p = {.policy = PLAY_EVENT};
	struct err err = {""};
	uint32_t a, b;
	struct job j;
	double ns;

	(void)state;
	begin(&j, 2);
	a = add_op(&j, 0, COLL_ALLREDUCE, 64);
	b = add_op(&j, 1, COLL_ALLREDUCE, 64);
	add(&j, 0, add(&j, 0, 0, MS, a), MS, b);
	add(&j, 1, add(&j, 1, 0, MS, b), MS, a);
	assert_int_equal(end(&j, &p, &ns, &err), -ELOOP);
	assert_non_null(strstr(err.text, "wait for each other"));
	assert_non_null(strstr(err.text, "rank "));
}

static void a_straggler_is_found_with_what_it_costs(void **state)
{
	const struct diagnose_finding *f;
	struct diagnosis d;
	struct costs costs;
	struct err err = {""};
	struct job j;

	(void)state;
	make_reduce(&j);
	assert_int_equal(job_find_members(&j), 0);
	assert_int_equal(costs_open(&j, NULL, NULL, &costs, &err), 0);
	assert_int_equal(diagnose(&j, &costs, &d, &err), 0);
	f = &d.of[DIAGNOSE_STRAGGLER];
	assert_true(f->is_found);
	assert_non_null(strstr(f->evidence, "rank 1 computes 3.000 times"));
	assert_float_equal(f->won_ns / MS, 2, 1e-6);
	f = &d.of[DIAGNOSE_COMMUNICATION];
	assert_true(f->is_found);
	assert_float_equal(f->won_ns / MS, 8, 1e-6);
	assert_false(d.of[DIAGNOSE_SMALL].is_found || d.of[DIAGNOSE_QUEUEING].is_found);
	costs_close(&costs);
	job_deinit(&j);
}

/* The last send takes 2 ms, and its stage waits 1 ms for the one before it. */
static void stages_that_wait_for_each_other_are_a_cause(void **state)
{
	const struct diagnose_finding *f;
	struct diagnosis d;
	struct costs costs;
	struct err err = {""};
	uint32_t send, receive;
	struct job j;

	(void)state;
	begin(&j, 1);
	send = add_op(&j, 0, COLL_SENDRECV, 0);
	assert_int_equal(job_add_call(&j, &(struct job_call){1, true, 2000000}), 0);
	j.ops[send].n_calls = 1;
	receive = add_op(&j, 0, COLL_SENDRECV, 0);
	assert_int_equal(job_add_call(&j, &(struct job_call){0, false, 2000000}), 0);
	j.ops[receive].n_calls = 1;
	add(&j, 0, 0, 3 * MS, send);
	add(&j, 1, add(&j, 1, 0, 2 * MS, receive), 4 * MS, JOB_NONE);
	assert_int_equal(job_find_members(&j), 0);
	assert_int_equal(costs_open(&j, NULL, NULL, &costs, &err), 0);
	assert_int_equal(diagnose(&j, &costs, &d, &err), 0);
	f = &d.of[DIAGNOSE_PIPELINE];
	assert_true(f->is_found);
	assert_float_equal(f->won_ns / MS, 2 + 1, 1e-6);
	assert_non_null(strstr(f->evidence, "2.000 ms of that if messages"));
	costs_close(&costs);
	job_deinit(&j);
}

/* Pairs {0, 1}, {2, 3}, ... of eight ranks, of which 0 and 1 are real, and a communicator of all.
 */
static void find_alike(const uint32_t *slow, uint32_t n_slow, bool has_pairs, struct alike *ret)
{
	uint32_t real[] = {0, 1};
	const struct record_member members[] = {{0, 0}, {1, 1}};
	struct record_comm comms[] = {
		{.number = 1, .n_ranks = 8, .stride = 1, .n_real = 2, .real = members},
		{.number = 2, .n_ranks = 2, .stride = 1, .n_real = 2, .real = members}};
	const struct record rec = {.comms = comms, .n_comms = has_pairs ? 2 : 1};
	struct config *c = calloc(1, sizeof(*c));
	struct computed computed;
	struct err err = {""};

	assert_non_null(c);
	c->topology = (struct topology){.n_nodes = 4, .gpus_per_node = 2};
	c->world = 8;
	c->real = real;
	c->n_real = 2;
	assert_int_equal(computed_init(&computed, 8, &err), 0);
	for (uint64_t number = 1; number < 4; number++)
		for (uint32_t i = 0; i < n_slow; i++)
			assert_int_equal(computed_told(&computed, slow[i], number, MS, 2 * MS,
						       &err),
					 0);
	assert_int_equal(computed.n, 3); /* those alike share them */
	assert_int_equal(alike_find(&rec, c, &computed, ret), 0);
	computed_deinit(&computed);
	free(c);
}

/* Each of a node computes as slow as none of the others, so that numbers of lists and of templates
 * come in many pairs. */
static void no_two_ranks_are_taken_for_one(void **state)
{
	enum { NODE = 64, WORLD = 2 * NODE };
	const struct record rec = {.n_comms = 0};
	struct config *c = calloc(1, sizeof(*c));
	uint32_t real[NODE];
	struct computed computed;
	struct err err = {""};
	struct alike a;

	(void)state;
	assert_non_null(c);
	for (uint32_t i = 0; i < NODE; i++)
		real[i] = i;
	c->topology = (struct topology){.n_nodes = 2, .gpus_per_node = NODE};
	c->world = WORLD;
	c->real = real;
	c->n_real = NODE;
	assert_int_equal(computed_init(&computed, WORLD, &err), 0);
	for (uint32_t i = NODE; i < WORLD; i++)
		assert_int_equal(computed_told(&computed, i, 1, MS, 2 * MS + i, &err), 0);
	assert_int_equal(alike_find(&rec, c, &computed, &a), 0);
	assert_int_equal(a.n_apart, NODE);
	alike_deinit(&a);
	computed_deinit(&computed);
	free(c);
}

static void ranks_are_told_apart_by_what_they_compute_and_whom_they_wait_for(void **state)
{
	const uint32_t one[] = {5}, two[] = {3, 7}, real[] = {0};
	struct alike a;

	(void)state;
	find_alike(one, 1, false, &a);
	assert_int_equal(a.n_apart, 1);
	assert_int_equal(a.apart[0], 5);
	assert_int_equal(a.as[7], 1);
	alike_deinit(&a);
	find_alike(one, 1, true, &a); /* 4 has ops with 5 */
	assert_int_equal(a.n_apart, 2);
	assert_int_equal(a.apart[0], 4);
	assert_int_equal(a.as[6], 0);
	alike_deinit(&a);
	find_alike(two, 2, true, &a); /* {2, 3} stand for {6, 7} */
	assert_int_equal(a.n_apart, 2);
	assert_int_equal(a.as[6], 2);
	assert_int_equal(a.as[7], 3);
	alike_deinit(&a);
	find_alike(real, 1, true, &a); /* those that copy it do not do as it does */
	assert_int_equal(a.n_apart, 2);
	assert_int_equal(a.as[4], 2);
	assert_int_equal(a.as[5], 3);
	alike_deinit(&a);
}

static void algorithms_have_names(void **state)
{
	struct err err = {""};
	uint32_t n_servers;
	int algo = -1;

	(void)state;
	assert_int_equal(words_algo("tree", &algo, &n_servers, &err), 0);
	assert_int_equal(algo, SCHED_TREE);
	assert_int_equal(words_algo("ps:servers=3", &algo, &n_servers, &err), 0);
	assert_int_equal(n_servers, 3);
	assert_int_equal(words_algo("ps:servers=0", &algo, &n_servers, &err), -EINVAL);
	assert_int_equal(words_algo("direct", &algo, &n_servers, &err), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_are_what_they_say),
		cmocka_unit_test(a_send_goes_when_it_is_posted_and_arrives_when_both_are_there),
		cmocka_unit_test(ranks_that_wait_for_each_other_are_named),
		cmocka_unit_test(a_straggler_is_found_with_what_it_costs),
		cmocka_unit_test(stages_that_wait_for_each_other_are_a_cause),
		cmocka_unit_test(no_two_ranks_are_taken_for_one),
		cmocka_unit_test(ranks_are_told_apart_by_what_they_compute_and_whom_they_wait_for),
		cmocka_unit_test(algorithms_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
