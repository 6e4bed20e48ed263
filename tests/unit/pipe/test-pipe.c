/* Pipelines of unequal stages, at random: does each schedule keep what it promises? */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "pipe/pipe.h"
#include "rng.h"

#define STAGES 9

static double number(struct rng *rng)
{
	return 1 + (double)below(rng, 40);
}

static struct pipe_job random_job(struct rng *rng, struct pipe_stage *stages)
{
	struct pipe_job job = {
		.stages = stages,
		.n_stages = 1 + (uint32_t)below(rng, STAGES),
		.n_micro = 1 + (uint32_t)below(rng, 30),
		.schedule = (enum pipe_schedule)below(rng, PIPE_SCHEDULES),
		.overlap = (enum pipe_overlap)below(rng, PIPE_OVERLAPS),
		.pieces = (uint32_t)below(rng, 4),
	};

	for (uint32_t i = 0; i < job.n_stages; i++) {
		stages[i] = (struct pipe_stage){
			.forward_ns = number(rng),
			.backward_ns = 40 + number(rng),
			.weights_ns = number(rng),
			.to_next_ns = number(rng),
			.to_previous_ns = number(rng),
		};
	}
	if (job.overlap == PIPE_BOTH && job.schedule == PIPE_EAGER)
		job.overlap = PIPE_SENDER;
	return job;
}

static const struct pipe_op *find(const struct pipe_times *t, enum pipe_kind kind, uint32_t stage,
				  uint32_t micro)
{
	for (size_t i = 0; i < t->n_ops; i++)
		if (t->ops[i].kind == kind && t->ops[i].stage == stage && t->ops[i].micro == micro)
			return &t->ops[i];
	return NULL;
}

/* Of each pass: what it needs is there, and the stage computes nothing else meanwhile. */
static void check_waits(const struct pipe_job *job, const struct pipe_times *t)
{
	for (size_t i = 0; i < t->n_ops; i++) {
		const struct pipe_op *o = &t->ops[i], *got = NULL;

		if (o->kind == PIPE_FORWARD && o->stage > 0)
			got = find(t, PIPE_TO_NEXT, o->stage - 1, o->micro);
		else if (o->kind == PIPE_BACKWARD && o->stage + 1 < job->n_stages)
			got = find(t, PIPE_TO_PREVIOUS, o->stage + 1, o->micro);
		else if (o->kind == PIPE_BACKWARD)
			got = find(t, PIPE_FORWARD, o->stage, o->micro);
		else if (o->kind == PIPE_TO_NEXT)
			got = find(t, PIPE_FORWARD, o->stage, o->micro);
		else if (o->kind != PIPE_FORWARD)
			got = find(t, PIPE_BACKWARD, o->stage, o->micro);
		assert_true(!got || got->end <= o->start);
		for (size_t j = 0; j < i; j++) {
			const struct pipe_op *other = &t->ops[j];
			bool is_blocked = job->overlap != PIPE_NOBODY;

			if (other->stage == o->stage &&
			    ((o->kind <= PIPE_WEIGHTS && other->kind <= PIPE_WEIGHTS) ||
			     is_blocked))
				assert_true(other->end <= o->start || o->end <= other->start);
			if (job->overlap == PIPE_BOTH && other->kind == PIPE_TO_NEXT &&
			    o->stage == other->stage + 1)
				assert_true(other->end <= o->start || o->end <= other->start);
		}
	}
}

/* Micro-batches whose forward pass has begun and whose backward pass is not over. */
static void check_peaks(const struct pipe_job *job, const struct pipe_times *t)
{
	for (uint32_t s = 0; s < job->n_stages; s++) {
		uint32_t most = 0;

		for (uint32_t i = 0; i < job->n_micro; i++) {
			double at = find(t, PIPE_FORWARD, s, i)->start;
			uint32_t live = i + 1;

			for (uint32_t k = 0; k <= i; k++)
				live -= find(t, PIPE_BACKWARD, s, k)->end <= at;
			most = live > most ? live : most;
		}
		assert_int_equal(most, pipe_peak(job, s));
	}
}

static void test_promises(void **state)
{
	struct pipe_stage stages[STAGES];
	struct rng rng;
	struct pipe_times t;

	(void)state;
	rng_seed(&rng, 1, 0);
	for (int round = 0; round < 150; round++) {
		struct pipe_job job = random_job(&rng, stages);
		struct err err;

		assert_int_equal(pipe_check(&job, &err), 0);
		assert_int_equal(pipe_play(&job, &t), 0);
		check_waits(&job, &t);
		check_peaks(&job, &t);
		pipe_times_deinit(&t);
	}
}

static double end_of(const struct pipe_job *job, uint32_t n_micro, double *ret_period)
{
	struct pipe_job longer = *job;
	struct pipe_times t;

	longer.n_micro = n_micro;
	assert_int_equal(pipe_play(&longer, &t), 0);
	pipe_times_deinit(&t);
	*ret_period = t.period_ns;
	return t.end_ns;
}

/* 2520 is a multiple of the micro-batches on any circle of up to 5 stages, 1 to 9. */
static void test_period(void **state)
{
	struct pipe_stage stages[STAGES];
	struct rng rng;
	double period;

	(void)state;
	rng_seed(&rng, 2, 0);
	for (int round = 0; round < 12; round++) {
		struct pipe_job job = random_job(&rng, stages);
		double early, late;

		job.n_stages = job.n_stages < 5 ? job.n_stages : 5;
		early = end_of(&job, 3000, &period);
		late = end_of(&job, 3000 + 2520, &period);
		assert_float_equal((late - early) / 2520, period, 1e-6 * period);
	}
}

static void test_slowest_messages(void **state)
{
	/* eager hides 2c <= f+b; what is left, 2(n-1)c, may be 3 % */
	struct pipe_stage stages[4];
	struct pipe_job job = {.stages = stages,
			       .n_stages = 4,
			       .n_micro = 997,
			       .schedule = PIPE_EAGER};
	double factor, signal;

	(void)state;
	for (int i = 0; i < 4; i++)
		stages[i] = (struct pipe_stage){.forward_ns = 1,
						.backward_ns = 2,
						.to_next_ns = 1,
						.to_previous_ns = 1};
	assert_int_equal(pipe_signal(&job, &signal), 0);
	assert_float_equal(signal, 3000, 1e-9);
	assert_int_equal(pipe_slowest_messages(&job, 0.97, 1.4, &factor), 0);
	assert_float_equal(factor, 1.4, 1e-9);
	job.n_micro = 17; /* 60 / 0.97 = 61.86 */
	assert_int_equal(pipe_slowest_messages(&job, 0.97, 10, &factor), 0);
	assert_float_equal(factor, (60 / 0.97 - 60) / 6, 1e-7);
}

static void test_delayed(void **state)
{
	struct pipe_stage stages[2] = {{1, 4, 2, 1, 1}, {1, 4, 2, 1, 0.9}};
	struct pipe_job job = {.stages = stages, .n_stages = 2, .n_micro = 4, .pieces = 4};

	(void)state;
	assert_float_equal(pipe_delayed(&job, 0), 0, 0); /* it sends nothing back */
	assert_float_equal(pipe_delayed(&job, 1), 1, 0);
	stages[1].to_previous_ns = 1.01;
	assert_float_equal(pipe_delayed(&job, 1), 1.5, 0);
	stages[1].to_previous_ns = 9; /* all there is */
	assert_float_equal(pipe_delayed(&job, 1), 2, 0);
}

static void test_refused(void **state)
{
	struct pipe_stage stages[2] = {{1, 2, 3, 1, 1}, {1, 2, 3, 1, 1}};
	struct pipe_job job = {.stages = stages, .n_stages = 2, .n_micro = 4};
	struct err err;

	(void)state;
	assert_int_equal(pipe_check(&job, &err), -EINVAL);
	stages[0].weights_ns = stages[1].weights_ns = 0;
	assert_int_equal(pipe_check(&job, &err), 0);
	job.schedule = PIPE_EAGER;
	job.overlap = PIPE_BOTH;
	assert_int_equal(pipe_check(&job, &err), -EINVAL);
	job.overlap = PIPE_NOBODY;
	job.n_micro = 0;
	assert_int_equal(pipe_check(&job, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promises),         cmocka_unit_test(test_period),
		cmocka_unit_test(test_slowest_messages), cmocka_unit_test(test_delayed),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
