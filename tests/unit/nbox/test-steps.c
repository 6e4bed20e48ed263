/* Steps of jobs that are made up here: for each the number of steps is known, and how long one
 * takes. */
#include <stdint.h>

#include "cmocka-all.h"
#include "rng.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nbox/report/steps.h"
#include "schedule/coll.h"

#define MB 1000000
#define US 1000
#define MS 1000000

/* A rank's ops as they are called: time passes by compute(); ops of a communicator come one after
 * the other; wait() lets compute wait for them. */
static const struct record_comm of = {.n_ranks = 64}, huge = {.n_ranks = UINT32_MAX};
static struct job {
	struct record_op *rows;
	uint64_t n, size, now_ns, comm_free_ns[4], op_ns;
	struct rng rng;
	double noise; /* of compute, at most */
	const struct record *rec;
	uint64_t polled_ns; /* an op behind another arrives so much after its end, at most */
} job;

static void job_start(uint64_t op_ns, double noise)
{
	free(job.rows);
	job = (struct job){.op_ns = op_ns, .noise = noise, .now_ns = MS};
	rng_seed(&job.rng, 3, 0);
}

static void compute(uint64_t ns)
{
	job.now_ns += (uint64_t)((double)ns * (1 + job.noise * (rng_uniform(&job.rng) - 0.5)));
}

static void call(uint32_t comm, enum coll_kind kind, uint64_t bytes)
{
	uint64_t at = job.now_ns, free_ns = job.comm_free_ns[comm];
	struct record_op *r;

	if (free_ns >= at)
		at = free_ns + (uint64_t)((double)job.polled_ns * rng_uniform(&job.rng));
	if (job.n == job.size) {
		job.size = job.size ? 2 * job.size : 1024;
		job.rows = realloc(job.rows, job.size * sizeof(*job.rows));
		assert_non_null(job.rows);
	}
	r = &job.rows[job.n];
	*r = (struct record_op){.number = job.n,
				.comm = comm,
				.of = &of,
				.kind = kind,
				.bytes = bytes,
				.virtual_arrive_ns = at,
				.virtual_end_ns = at + job.op_ns,
				.plain_arrive_ns = at};
	job.comm_free_ns[comm] = r->virtual_end_ns;
	job.n++;
}

static void wait_for(uint32_t comm)
{
	if (job.comm_free_ns[comm] > job.now_ns)
		job.now_ns = job.comm_free_ns[comm];
}

static void reduce_now(uint64_t bytes)
{
	call(0, COLL_ALLREDUCE, bytes);
	wait_for(0);
}

/* The steps that were found: @n of them, at most @missing fewer, each timed one @ns long (0: not
 * looked at). */
static void expect(const char *name, uint64_t n, uint64_t missing, uint64_t n_ops, uint64_t ns)
{
	struct steps s;
	double worst = job.noise + 1e-9;

	if (job.n)
		qsort(job.rows, job.n, sizeof(*job.rows), steps_order);
	assert_int_equal(steps_find(job.rec, job.rows, job.n, &s), 0);
	if (s.n > n || s.n + missing < n ||
	    (n && (s.n_ops != n_ops || s.n_timed + s.n_warm_up > s.n || s.n_timed == 0)))
		fail_msg("%s: %lu steps of %lu ops, %lu timed, %lu warm-up; wanted %lu of %lu; %s",
			 name, s.n, s.n_ops, s.n_timed, s.n_warm_up, n, n_ops, s.how);
	for (uint64_t i = s.n_warm_up; ns && i < s.n; i++) {
		const struct step *step = &s.list[i];
		double took = step->is_timed ? (double)(job.rows[step->end].virtual_arrive_ns -
							job.rows[step->first].virtual_arrive_ns)
					     : (double)ns;

		if (took < (double)ns * (1 - worst) || took > (double)ns * (1 + worst))
			fail_msg("%s: step %lu takes %.0f ns, wanted %lu", name, i, took, ns);
	}
	steps_deinit(&s);
}

static void ddp_start(void)
{
	for (int i = 0; i < 5; i++)
		call(0, i ? COLL_BROADCAST : COLL_ALLGATHER, 8 + 100 * (uint64_t)i);
	compute(50 * MS);
}

/* Buckets of equal size but for the last one. @n: of them. */
static void ddp_step(int n, uint64_t last)
{
	compute(10 * MS);
	for (int i = 0; i < n; i++) {
		compute((uint64_t)(20 * MS / n));
		call(0, COLL_ALLREDUCE, i + 1 == n ? last : 25 * MB);
	}
	wait_for(0);
	compute(2 * MS);
}

static void steps_of_ddp_are_found_with_any_buckets(void **state)
{
	static const struct {
		uint64_t op_ns;
		int n;
		uint64_t last;
		double noise;
	} cases[] = {
		{US, 1, 5 * MB, 0},       {US, 2, 5 * MB, 0.2},      {US, 5, 8000, 0.2},
		{US, 10, 8000, 0.4},      {US, 40, 300, 0.2},        {MS, 10, 8000, 0},
		{40 * MS, 10, 8000, 0.2}, {40 * MS, 3, 2 * MB, 0.2},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++)
		for (int n_steps = 3; n_steps <= 60; n_steps += 19) {
			job_start(cases[c].op_ns, cases[c].noise);
			ddp_start();
			/* the first step's buckets are other ones: DDP makes them anew after it */
			call(0, COLL_ALLREDUCE, 30 * MB);
			call(0, COLL_ALLREDUCE, MB);
			call(0, COLL_BROADCAST, 16);
			for (int i = 0; i < n_steps; i++)
				ddp_step(cases[c].n, cases[c].last);
			call(0, COLL_ALLGATHER, 8);
			expect("ddp", (uint64_t)n_steps, 0, (uint64_t)cases[c].n, 0);
		}
}

/* Ops of one size that queue: next to no time is idle between them, and what is idle is noise. */
static void steps_of_a_job_that_communication_bounds_are_found(void **state)
{
	(void)state;
	for (int n = 2; n <= 32; n *= 2)
		for (int n_steps = 6; n_steps <= 60; n_steps += 27) {
			job_start(16 * MS, 0.1);
			job.polled_ns = 60 * US;
			for (int i = 0; i < n_steps; i++)
				ddp_step(n, 25 * MB);
			expect("bound by communication", (uint64_t)n_steps, 0, (uint64_t)n, 0);
		}
}

/* Like buckets, little of whose time lies between steps: an evaluation every eight steps of one
 * bucket would look the same. Their deps say that computation waits before each step's first one;
 * or before each. */
static void what_computation_waited_for_tells_buckets_from_steps(void **state)
{
	enum { N = 8, STEPS = 12 };
	struct record_point points[N * STEPS] = {0};
	struct record_dep deps[N * STEPS][4] = {0};
	const struct record rec = {.points = points, .n_points = N * STEPS};

	(void)state;
	for (uint64_t a_wait = N; a_wait; a_wait = a_wait == N) {
		job_start(US, 0.1);
		for (int i = 0; i < STEPS; i++)
			ddp_step(N, 25 * MB);
		job.rec = &rec;
		for (uint64_t i = 0; i < job.n; i++) {
			bool waits = i && i % a_wait == 0;
			struct record_dep *d = deps[i];

			/* point 2i + 1 behind the last one, and behind the last op; op 2i + 2 */
			d[0] = (struct record_dep){2 * i - 1, 1, 0};
			d[1] = (struct record_dep){2 * i, 0, 0};
			d[2] = (struct record_dep){2 * i, 1, 0};
			d[3] = (struct record_dep){2 * i + 1, 0, 0};
			points[i] = (struct record_point){.name = 2 * i + 1,
							  .order = 2 * i,
							  .deps = d,
							  .n_deps = 1 + waits};
			job.rows[i].name = 2 * i + 2;
			job.rows[i].order = 2 * i + 1;
			job.rows[i].deps = d + 2;
			job.rows[i].n_deps = 2;
		}
		expect("deps", a_wait == N ? STEPS : N * STEPS, 0, a_wait == N ? N : 1, 0);
	}
}

static void a_step_takes_the_time_between_its_first_op_and_the_next_ones(void **state)
{
	(void)state;
	job_start(US, 0);
	ddp_start();
	for (int i = 0; i < 20; i++)
		ddp_step(1, 5 * MB);
	expect("ddp of one bucket", 20, 0, 1, 32 * MS + US);
}

/* A value that is logged in every step, or in each tenth; before, after or amid the buckets. */
static void values_that_are_logged_do_not_disturb(void **state)
{
	(void)state;
	for (int every = 1; every <= 10; every += 9)
		for (int buckets = 1; buckets <= 4; buckets++)
			for (int where = 0; where < 3; where++) {
				job_start(100 * US, 0.3);
				ddp_start();
				for (int i = 0; i < 60; i++) {
					bool is_logged = (i + 1) % every == 0;

					if (is_logged && where == 0)
						reduce_now(4);
					ddp_step(buckets, 3 * MB);
					if (is_logged && where == 1)
						reduce_now(4);
					if (is_logged && where == 2) {
						call(0, COLL_ALLREDUCE, 4);
						call(0, COLL_ALLGATHER, 1);
					}
				}
				/* one before the tenth value leaves the last step alone, which
				 * repeats nothing */
				expect("values", 60, where == 0,
				       (uint64_t)(buckets + (every > 1    ? 0
							     : where == 2 ? 2
									  : 1)),
				       0);
			}
}

/* An evaluation every k steps: sums of two values, and a barrier; or no op at all. */
static void evaluations_between_steps_do_not_disturb(void **state)
{
	(void)state;
	for (uint64_t every = 4; every <= 20; every += 8)
		for (uint64_t ms = 20; ms <= 500; ms *= 5)
			for (int ops = 0; ops <= 3; ops++)
				for (int buckets = 1; buckets <= 3; buckets++) {
					uint64_t long_ms = ms > every * 60 ? every * 60 : ms;

					job_start(100 * US, 0.1);
					ddp_start();
					for (uint64_t i = 0; i < 60; i++) {
						ddp_step(buckets, 3 * MB);
						if ((i + 1) % every)
							continue;
						compute(long_ms * MS);
						for (int k = 0; k < ops; k++)
							reduce_now(k < 2 ? 8 : 4);
					}
					expect("evaluations", 60, 0, (uint64_t)buckets, 0);
				}
}

/* An evaluation that reduces as much as a table of metrics, once at its end or after each of its
 * batches. */
static void evaluations_that_reduce_metrics_do_not_disturb(void **state)
{
	(void)state;
	for (uint64_t every = 4; every <= 20; every += 8)
		for (uint64_t percent = 10; percent <= 300; percent += 29)
			for (uint64_t batches = 1; batches <= 10; batches += 3)
				for (int buckets = 1; buckets <= 3; buckets++) {
					job_start(100 * US, 0.1);
					ddp_start();
					for (uint64_t i = 0; i < 60; i++) {
						ddp_step(buckets, 3 * MB);
						for (uint64_t k = 0;
						     (i + 1) % every == 0 && k < batches; k++) {
							compute(every * 32 * MS * percent / 100 /
								batches);
							reduce_now(8000);
							reduce_now(4);
						}
					}
					expect("metrics", 60, 0, (uint64_t)buckets, 0);
				}
}

/* A backward pass of like buckets that begins with another one, and may end with another one. */
static void a_first_bucket_of_another_size_belongs_to_its_step(void **state)
{
	(void)state;
	for (int n = 2; n <= 16; n *= 2)
		for (int has_last = 0; has_last < 2; has_last++) {
			job_start(100 * US, 0.1);
			for (int i = 0; i < 30; i++) {
				compute(10 * MS);
				for (int k = 0; k < n + 1 + has_last; k++) {
					compute((uint64_t)(20 * MS / (n + 1 + has_last)));
					call(0, COLL_ALLREDUCE,
					     k == 0   ? MB
					     : k <= n ? 25 * MB
						      : 5 * MB);
				}
				wait_for(0);
				compute(2 * MS);
			}
			/* without the last, an evaluation between steps of one bucket looks alike
			 */
			expect("first bucket", has_last ? 30 : 0, 0, (uint64_t)n + 2, 0);
		}
}

static void fsdp_forward(int layers)
{
	call(0, COLL_ALLGATHER, 3 * MB);
	for (int i = 0; i < layers; i++) {
		call(0, COLL_ALLGATHER, 2 * MB);
		compute(MS);
	}
	wait_for(0);
}

static void fsdp_backward(int layers)
{
	for (int i = 0; i < layers; i++) {
		call(0, COLL_ALLGATHER, 2 * MB);
		compute(2 * MS);
		call(0, COLL_REDUCESCATTER, 2 * MB);
	}
	call(0, COLL_REDUCESCATTER, 3 * MB);
	wait_for(0);
	compute(MS);
}

/* Also with a norm of the gradients, gradient accumulation, evaluations (which gather, too). */
static void steps_of_fsdp_are_found(void **state)
{
	(void)state;
	for (uint64_t op_ns = US; op_ns <= 10 * MS; op_ns *= 100)
		for (int layers = 1; layers <= 32; layers += 31) {
			uint64_t n_ops = 2 + 3 * (uint64_t)layers;

			job_start(op_ns, 0.2);
			for (int i = 0; i < 12; i++) {
				fsdp_forward(layers);
				fsdp_backward(layers);
			}
			expect("fsdp", 12, 0, n_ops, 0);
			job_start(op_ns, 0.2);
			for (int i = 0; i < 12; i++) {
				fsdp_forward(layers);
				fsdp_backward(layers);
				reduce_now(4);
			}
			expect("fsdp with a norm", 12, 0, n_ops + 1, 0);
			job_start(op_ns, 0.2);
			for (int i = 0; i < 32; i++) {
				fsdp_forward(layers);
				fsdp_backward(layers);
				if (i % 4 == 3)
					reduce_now(4);
			}
			expect("fsdp, 4 backward passes an update", 32, 0, n_ops, 0);
			job_start(op_ns, 0.2);
			for (int i = 0; i < 32; i++) {
				fsdp_forward(layers);
				fsdp_backward(layers);
				for (int k = 0; i % 8 == 7 && k < 3; k++)
					fsdp_forward(layers);
			}
			expect("fsdp with evaluations", 32, 0, n_ops, 0);
		}
}

/* A stage in the middle: communicator 1 carries what is sent, 0 the gradients, if any. */
static void pipeline_step(int micro_batches, bool has_gradients)
{
	for (int i = 0; i < 2; i++) {
		compute(MS);
		call(1, COLL_SENDRECV, MB);
		wait_for(1);
	}
	for (int i = 2; i < micro_batches; i++)
		for (int k = 0; k < 2; k++) {
			compute((uint64_t)(MS + k * MS));
			call(1, COLL_SENDRECV, k ? 2 * MB : MB);
			wait_for(1);
		}
	for (int i = 0; i < 2; i++) {
		compute(2 * MS);
		call(1, COLL_SENDRECV, 2 * MB);
		wait_for(1);
	}
	for (int i = 0; has_gradients && i < 3; i++)
		call(0, COLL_ALLREDUCE, 25 * MB);
	wait_for(0);
	compute(MS);
}

static void steps_of_pipelines_are_found(void **state)
{
	(void)state;
	for (int micro_batches = 4; micro_batches <= 64; micro_batches *= 4)
		for (int has_gradients = 0; has_gradients < 2; has_gradients++) {
			job_start(100 * US, 0.2);
			for (int i = 0; i < 16; i++)
				pipeline_step(micro_batches, has_gradients);
			expect("pipeline", 16, 0, (uint64_t)(2 * micro_batches + 3 * has_gradients),
			       0);
			job_start(100 * US, 0.2);
			for (int i = 0; i < 16; i++) {
				pipeline_step(micro_batches, has_gradients);
				reduce_now(4);
			}
			expect("pipeline with a loss", 16, 0,
			       (uint64_t)(2 * micro_batches + 3 * has_gradients + 1), 0);
		}
}

/* Tensor parallelism: as many reductions in the forward pass as in the backward pass, all of one
 * size. */
static void a_forward_pass_that_reduces_is_no_step(void **state)
{
	(void)state;
	for (uint64_t op_ns = US; op_ns <= 10 * MS; op_ns *= 100)
		for (int has_gradients = 0; has_gradients < 2; has_gradients++) {
			job_start(op_ns, 0.2);
			for (int i = 0; i < 10; i++) {
				for (int k = 0; k < 64; k++) {
					compute((uint64_t)(k < 32 ? MS : 2 * MS));
					call(1, COLL_ALLREDUCE, 8 * MB);
					wait_for(1);
				}
				call(1, COLL_ALLREDUCE, 16000);
				wait_for(1);
				for (int k = 0; has_gradients && k < 4; k++)
					call(0, COLL_ALLREDUCE, 200 * MB);
				wait_for(0);
				compute(3 * MS);
			}
			expect("tensor parallelism", 10, 0, (uint64_t)(65 + 4 * has_gradients), 0);
		}
}

/* Tensor parallelism reduces far more than the gradients' communicator, or the pipeline's sends, in
 * micro-batches; alone, its times tell the passes. */
static void reductions_of_tensor_parallelism_are_parts_of_steps(void **state)
{
	static const char *const names[] = {"alone", "gradients", "pipeline", "sharded"};

	(void)state;
	for (int beside = 0; beside < 4; beside++)
		for (int micro = 1; micro <= (beside ? 8 : 1); micro *= 8) {
			uint64_t n_ops = 24 * (uint64_t)micro;

			job_start(100 * US, 0.2);
			for (int i = 0; i < 10 * 24 * micro; i++) {
				int k = i % 24;
				bool is_last = i / 24 % micro == micro - 1;

				if (k % 12 == 0 && beside == 2)
					call(2, COLL_SENDRECV, MB), wait_for(2);
				if (k % 2 == 0 && beside == 3)
					call(2, k < 12 ? COLL_ALLGATHER : COLL_REDUCESCATTER, MB);
				compute((uint64_t)(k < 12 ? MS : 2 * MS));
				call(1, COLL_ALLREDUCE, 32 * MB);
				wait_for(1);
				if (k % 8 == 7 && is_last && (beside == 1 || beside == 2))
					call(0, COLL_ALLREDUCE, k < 23 ? MB : 2 * MB);
				if (k < 23)
					continue;
				wait_for(0);
				compute((uint64_t)(is_last ? 2 * MS : 0));
			}
			n_ops += beside == 1 ? 3 : beside == 2 ? 2 * (uint64_t)micro + 3 : 0;
			/* of sharded parameters each backward pass is a step */
			if (beside == 3)
				expect(names[beside], 10 * (uint64_t)micro, 0, 36, 0);
			else
				expect(names[beside], 10, 0, n_ops, 0);
		}
}

/* Ops of two communicators that overtake each other, another way in each step. */
static void communicators_may_overtake_each_other(void **state)
{
	(void)state;
	job_start(500 * US, 0.9);
	for (int i = 0; i < 30; i++) {
		for (int k = 0; k < 8; k++) {
			compute(MS);
			call(1, COLL_ALLGATHER, 3 * MB);
			compute(MS);
			call(0, COLL_REDUCESCATTER, (uint64_t)(k < 7 ? 2 : 4) * MB);
		}
		wait_for(0);
		wait_for(1);
		compute(5 * MS);
	}
	expect("overtaking", 30, 0, 16, 0);
}

/* Gradients reduced one by one when all are there, in layers that are alike, and nothing else. */
static void gradients_reduced_one_by_one_are_one_step(void **state)
{
	(void)state;
	for (int has_log = 0; has_log < 2; has_log++)
		for (int kinds = 1; kinds <= 2; kinds++) {
			job_start(200 * US, 0.2);
			for (int i = 0; i < 20; i++) {
				compute(30 * MS);
				for (int k = 0; k < 12; k++)
					reduce_now(k % kinds ? 4000 : MB);
				if (has_log)
					reduce_now(4);
			}
			expect("one by one", 20, 1, (uint64_t)(12 + has_log), 0);
		}
}

static void warm_up_is_left_out(void **state)
{
	static const struct record retimed = {.header = {.retimed_of = "base", .n_warm_up = 5}};
	struct steps s;

	(void)state;
	job_start(US, 0);
	for (int i = 0; i < 3; i++) { /* caches are cold */
		compute((uint64_t)(300 - 80 * i) * MS);
		ddp_step(2, MB);
	}
	for (int i = 0; i < 20; i++)
		ddp_step(2, MB);
	assert_int_equal(steps_find(NULL, job.rows, job.n, &s), 0);
	assert_int_equal(s.n, 23);
	assert_int_equal(s.n_warm_up, 2); /* the time before the first is not in it */
	assert_int_equal(s.n_timed, 20);
	steps_deinit(&s);

	/* a re-timing leaves out as many as the recorded run did */
	assert_int_equal(steps_find(&retimed, job.rows, job.n, &s), 0);
	assert_int_equal(s.n_warm_up, 5);
	steps_deinit(&s);

	for (size_t i = 0; i < job.n; i++) /* what made the first ones long is a what-if */
		job.rows[i].plain_arrive_ns = i * MS;
	assert_int_equal(steps_find(NULL, job.rows, job.n, &s), 0);
	assert_int_equal(s.n_warm_up, 0);
	steps_deinit(&s);
}

/* Never a wrong number: what is no training has no steps. */
static void what_is_no_training_has_no_steps(void **state)
{
	(void)state;
	job_start(US, 0);
	expect("no ops", 0, 0, 0, 0);
	ddp_start();
	expect("a start that was aborted", 0, 0, 0, 0);
	job_start(US, 0);
	for (int i = 0; i < 22; i++)
		call(0, COLL_BROADCAST, 256);
	expect("broadcasts", 0, 0, 0, 0);
	ddp_step(3, MB);
	ddp_step(3, MB);
	expect("two steps", 0, 0, 0, 0);
	job_start(US, 0);
	for (uint64_t size = 8; size <= 64 * MB; size *= 2)
		for (int i = 0; i < 25; i++)
			reduce_now(size);
	expect("a benchmark of many sizes", 0, 0, 0, 0);
	job_start(US, 0);
	for (uint64_t i = 0; i < 500; i++)
		reduce_now(4 * (1 + rng_u64(&job.rng) % 100000));
	expect("sizes by chance", 0, 0, 0, 0);
	/* buckets of one size in groups that are not alike: a step is a group, but no group repeats
	 */
	job_start(US, 0);
	for (int i = 0; i < 12; i++)
		ddp_step(3 + i, 8000);
	expect("groups of other sizes", 0, 0, 0, 0);
}

/* Rows of a file that somebody made up: any communicator, any size. */
static void rows_that_somebody_made_up_do_no_harm(void **state)
{
	struct rng rng;
	struct record_op rows[64];

	(void)state;
	rng_seed(&rng, 5, 0);
	for (int round = 0; round < 2000; round++) {
		uint64_t n = rng_u64(&rng) % 64, at = 0;
		struct steps s;

		for (uint64_t i = 0; i < n; i++) {
			at += rng_u64(&rng) % 3 ? rng_u64(&rng) % 1000 : rng_u64(&rng) >> 8;
			rows[i] = (struct record_op){.comm = rng_u64(&rng) % 2 ? 0 : UINT32_MAX,
						     .kind = rng_u64(&rng) % COLL_KINDS,
						     .bytes = rng_u64(&rng) % 2 ? UINT64_MAX : 1,
						     .of = &huge,
						     .virtual_arrive_ns = at,
						     .virtual_end_ns = rng_u64(&rng)};
		}
		qsort(rows, n, sizeof(*rows), steps_order);
		assert_int_equal(steps_find(NULL, rows, n, &s), 0);
		for (uint64_t i = 0; i < s.n; i++)
			assert_true(s.list[i].first < s.list[i].end && s.list[i].end <= n &&
				    (!s.list[i].is_timed || s.list[i].end < n));
		steps_deinit(&s);
	}
}

/* A million steps: seconds at most, also under a sanitizer. */
static void a_million_steps_take_seconds(void **state)
{
	(void)state;
	job_start(US, 0.2);
	for (int i = 0; i < 200000; i++) {
		ddp_step(5, MB);
		if (i % 100 == 99)
			reduce_now(4);
	}
	expect("long", 200000, 0, 5, 0);
	free(job.rows);
	job = (struct job){0};
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_of_ddp_are_found_with_any_buckets),
		cmocka_unit_test(steps_of_a_job_that_communication_bounds_are_found),
		cmocka_unit_test(what_computation_waited_for_tells_buckets_from_steps),
		cmocka_unit_test(a_step_takes_the_time_between_its_first_op_and_the_next_ones),
		cmocka_unit_test(values_that_are_logged_do_not_disturb),
		cmocka_unit_test(evaluations_between_steps_do_not_disturb),
		cmocka_unit_test(evaluations_that_reduce_metrics_do_not_disturb),
		cmocka_unit_test(a_first_bucket_of_another_size_belongs_to_its_step),
		cmocka_unit_test(steps_of_fsdp_are_found),
		cmocka_unit_test(steps_of_pipelines_are_found),
		cmocka_unit_test(a_forward_pass_that_reduces_is_no_step),
		cmocka_unit_test(reductions_of_tensor_parallelism_are_parts_of_steps),
		cmocka_unit_test(communicators_may_overtake_each_other),
		cmocka_unit_test(gradients_reduced_one_by_one_are_one_step),
		cmocka_unit_test(warm_up_is_left_out),
		cmocka_unit_test(what_is_no_training_has_no_steps),
		cmocka_unit_test(rows_that_somebody_made_up_do_no_harm),
		cmocka_unit_test(a_million_steps_take_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
