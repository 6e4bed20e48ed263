/* The nccl scheduler, asked as the host asks it: what NCCL decides on machines that people have. */
#include "delay-test.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/solve-plan.h"
#include "rng.h"
#include "schedule/rails.h"
#include "schedule/schedule.h"

/* DGX H100 and A100, in raw bandwidths. */
static struct nbox_fabric dgx(uint32_t sm, uint32_t n_domains)
{
	return (struct nbox_fabric){
		.struct_size = sizeof(struct nbox_fabric),
		.n_domains = n_domains,
		.ranks_per_domain = 8,
		.most_ranks_per_domain = 8,
		.sm_min = sm,
		.sm_max = sm,
		.intra = NBOX_NVSWITCH,
		.cpu = sm >= 90 ? NBOX_INTEL : NBOX_AMD,
		.distance = NBOX_PXB,
		.has_nvls = sm >= 90,
		.has_gdr = 1,
		.n_nics = 8,
		.gpu_bytes_per_ns = sm >= 90 ? 450 : 300,
		.gpu_latency_ns = 0,
		.pcie_bytes_per_ns = sm >= 90 ? 64 : 32,
		.nic_bytes_per_ns = sm >= 90 ? 50 : 25,
		.net_latency_ns = 2000,
	};
}

static struct nbox_plan must_plan(const char *model, const struct nbox_fabric *f, uint32_t kind,
				  uint64_t bytes)
{
	struct nbox_op op =
		test_op(kind, f->n_domains * f->most_ranks_per_domain, f->n_domains, bytes);
	struct nbox_plan plan;
	struct err err = {""};
	CHAIN d = test_must_open(model, NULL, 0);

	op.algo = NBOX_ALGO_ANY;
	if (delay_plan(d, &op, f, &plan, &err) != 0)
		fail_msg("%s: %s", model, err.text);
	return plan;
}

static void refused(const char *model, const char *name, const char *value, const char *part)
{
	struct delay_chain *d = NULL;
	struct err err;
	int r;

	if (name)
		setenv(name, value, 1);
	r = test_open(model, NULL, 0, &d, &err);
	if (name)
		unsetenv(name);
	if (r == 0)
		fail_msg("%s was taken with %s=%s", model, name ? name : "", name ? value : "");
	if (!strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
}

static void few_bytes_on_many_nodes_take_one_lane_of_a_tree_with_ll(void **state)
{
	struct nbox_fabric f = dgx(90, 64);
	struct nbox_plan p = must_plan("nccl", &f, NBOX_ALLREDUCE, 8);

	(void)state;
	assert_int_equal(p.algo, NBOX_TREE);
	assert_int_equal(p.proto, NBOX_LL);
	assert_int_equal(p.n_lanes, 1);
	test_near(p.wire_factor, 2, 1e-9);
	test_near(p.base_ns, 6800, 1e-9);
	test_near(p.step_ns[NBOX_INTER], 3000, 1e-9);
	/* NCCL's own: 6.8 + 2 (7 x 0.6 + 6 x 5) us, and 8 bytes */
	test_near(p.estimate_ns, 75200, 1e-4);
}

static void many_bytes_take_all_rails(void **state)
{
	struct nbox_fabric f = dgx(80, 64);
	struct nbox_plan p = must_plan("nccl", &f, NBOX_ALLGATHER, 16 << 20);

	(void)state;
	assert_int_equal(p.algo, NBOX_RING);
	assert_int_equal(p.proto, NBOX_SIMPLE);
	assert_int_equal(p.n_lanes, 16);
	assert_int_equal(p.n_rails, 8);
	assert_int_equal(p.n_slices, 2);
	assert_int_equal(p.chunk_bytes, 2 << 20);
}

static void a_switch_that_reduces_takes_large_sums(void **state)
{
	struct nbox_fabric one = dgx(90, 1), many = dgx(90, 16);
	struct nbox_plan p = must_plan("nccl", &one, NBOX_ALLREDUCE, UINT64_C(1) << 30);

	(void)state;
	assert_int_equal(p.algo, NBOX_NVLS);
	/* measured on such machines: about 480 GB/s of bus bandwidth, less at 1 GiB */
	test_near(p.whole_ns, (double)(UINT64_C(1) << 30) * 1.75 / 480, 0.05);
	p = must_plan("nccl", &many, NBOX_ALLREDUCE, UINT64_C(1) << 30);
	assert_int_equal(p.algo, NBOX_NVLS_TREE);
}

static void the_environment_narrows_the_choice_and_a_parameter_comes_first(void **state)
{
	struct nbox_fabric f = dgx(90, 16);
	struct nbox_plan p;

	(void)state;
	setenv("NCCL_ALGO", "allreduce:ring", 1);
	setenv("NCCL_PROTO", "^LL,LL128", 1);
	p = must_plan("nccl", &f, NBOX_ALLREDUCE, 8);
	assert_int_equal(p.algo, NBOX_RING);
	assert_int_equal(p.proto, NBOX_SIMPLE);
	p = must_plan("nccl:algo=Tree,proto=ll", &f, NBOX_ALLREDUCE, 64 << 20);
	assert_int_equal(p.algo, NBOX_TREE);
	assert_int_equal(p.proto, NBOX_LL);
	unsetenv("NCCL_ALGO");
	unsetenv("NCCL_PROTO");
	setenv("NCCL_MAX_NCHANNELS", "4", 1);
	setenv("NCCL_BUFFSIZE", "1048576", 1);
	p = must_plan("nccl", &f, NBOX_ALLGATHER, 64 << 20);
	assert_int_equal(p.n_lanes, 4);
	assert_int_equal(p.chunk_bytes, 512 << 10);
	unsetenv("NCCL_MAX_NCHANNELS");
	unsetenv("NCCL_BUFFSIZE");
}

static void wrong_words_and_numbers_get_a_sentence(void **state)
{
	(void)state;
	refused("nccl:algo=rign", NULL, NULL, "'rign' is none of");
	refused("nccl:version=new", NULL, NULL, "2.28.9");
	refused("nccl:channels=65", NULL, NULL, "1 to 64");
	refused("nccl:tuner=/nowhere", NULL, NULL, "/nowhere");
	refused("nccl", "NCCL_ALGO", "ring;tree", "begin with a kind");
	refused("nccl", "NCCL_ALGO", "gather:ring", "'gather' is none of");
	refused("nccl", "NCCL_PROTO", "ring", "NCCL_PROTO: 'ring'");
	refused("nccl", "NCCL_BUFFSIZE", "4M", "whole number");
	refused("nccl", "NCCL_BUFFSIZE", "0", "8192");
	refused("nccl", "NCCL_THREAD_THRESHOLDS", "8 x", "six");
	refused("nccl", "NCCL_MIN_NCHANNELS", "-1", "from 0");
}

static void write_tuner(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void a_tuners_table_decides_where_it_has_a_line(void **state)
{
	struct nbox_fabric f = dgx(90, 4);
	char path[] = "/tmp/nbox-tuner-XXXXXX", model[64];
	int fd = mkstemp(path);
	struct nbox_plan p;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(model, sizeof(model), "nccl:tuner=%s", path);
	write_tuner(path, "# the example's columns\n"
			  "allreduce,0,65536,ring,simple,4,4,32,1,0\n"
			  "allreduce,0,65536,tree,simple,2,-1,-1,4,-1\n"
			  "allgather,0,4294967295,ring,ll128,-1,4,-1\r\n");
	p = must_plan(model, &f, NBOX_ALLREDUCE, 65536);
	assert_int_equal(p.algo, NBOX_RING);
	assert_int_equal(p.proto, NBOX_SIMPLE);
	assert_int_equal(p.n_lanes, 4);
	p = must_plan(model, &f, NBOX_ALLREDUCE, 65540); /* no line */
	assert_int_equal(p.algo, NBOX_TREE);
	assert_int_equal(p.proto, NBOX_LL);
	p = must_plan(model, &f, NBOX_ALLGATHER, 1 << 20);
	assert_int_equal(p.proto, NBOX_LL128);
	assert_int_equal(p.n_lanes, 16); /* NCCL's own */

	write_tuner(path, "allreduce,0,65536,ring,simple,4\n");
	refused(model, NULL, NULL, ":1: a line has 8 to 10 columns");
	write_tuner(path, "\nallreduce,0,1,rign,simple,4,-1,-1\n");
	refused(model, NULL, NULL, ":2: column 4 is 'rign', it must be tree|ring");
	write_tuner(path, "allreduce,0,x,ring,simple,4,-1,-1\n");
	refused(model, NULL, NULL, "column 3 is 'x'");
	write_tuner(path, "allreduce,0,1,ring,simple,0,-1,-1\n");
	refused(model, NULL, NULL, "1 to 64");
	unlink(path);
}

/* The weakest domain decides for all: 8 ranks in three of them, 4 in the last. */
static void uneven_domains_have_the_channels_of_the_smallest(void **state)
{
	struct nbox_fabric f = dgx(90, 4), small = dgx(90, 4);
	struct nbox_op op = test_op(NBOX_ALLGATHER, 28, 4, 64 << 20);
	struct nbox_plan p, even;
	struct err err = {""};
	CHAIN d = test_must_open("nccl:proto=simple", NULL, 0);

	(void)state;
	op.algo = NBOX_ALGO_ANY;
	f.ranks_per_domain = 0;
	small.ranks_per_domain = small.most_ranks_per_domain = small.n_nics = 4;
	assert_int_equal(delay_plan(d, &op, &f, &p, &err), 0);
	op.n_ranks = 16;
	assert_int_equal(delay_plan(d, &op, &small, &even, &err), 0);
	assert_int_equal(p.n_lanes, even.n_lanes);
}

/* Whatever a fabric may say, the host takes the plan. */
static void any_fabric_gets_a_plan(void **state)
{
	struct rng rng;
	struct err err = {""};
	CHAIN d = test_must_open("nccl", NULL, 0);

	(void)state;
	rng_seed(&rng, 13, 0);
	for (int i = 0; i < 20000; i++) {
		uint32_t local = 1 + (uint32_t)(rng_u64(&rng) % 72), n = 1 + rng_u64(&rng) % 300;
		static const uint32_t sms[] = {35, 60, 70, 75, 80, 86, 89, 90, 100, 103, 120};
		struct nbox_fabric f = {
			.struct_size = sizeof(f),
			.n_domains = n,
			.ranks_per_domain = rng_u64(&rng) % 3 ? local : 0,
			.most_ranks_per_domain = local,
			.sm_min = sms[rng_u64(&rng) % 11],
			.intra = rng_u64(&rng) % 3,
			.cpu = rng_u64(&rng) % 4,
			.distance = rng_u64(&rng) % 4,
			.has_nvls = rng_u64(&rng) % 2,
			.has_gdr = rng_u64(&rng) % 2,
			.n_nics = rng_u64(&rng) % 73,
			.gpu_bytes_per_ns = exp2((double)(rng_u64(&rng) % 40) - 20),
			.pcie_bytes_per_ns = exp2((double)(rng_u64(&rng) % 40) - 20),
			.nic_bytes_per_ns = exp2((double)(rng_u64(&rng) % 40) - 20),
			.net_latency_ns = (double)(rng_u64(&rng) % 100000),
		};
		struct nbox_op op = test_op(rng_u64(&rng) % 9, local * n, n,
					    4 * (rng_u64(&rng) >> (28 + rng_u64(&rng) % 36)));
		struct nbox_plan p;

		f.sm_max = f.sm_min;
		op.algo = NBOX_ALGO_ANY;
		if (delay_plan(d, &op, &f, &p, &err) != 0)
			fail_msg("%d: %s", i, err.text);
		assert_true(p.lane_bytes == 0 || p.algo > NBOX_CHAIN ||
			    p.lane_bytes * p.n_lanes >= op.bytes);
		assert_true(p.n_first <= p.n_lanes &&
			    (p.algo != NBOX_TREE || 2 * p.n_first >= p.n_lanes));
	}
}

static void a_version_decides_by_the_tables_of_its_time(void **state)
{
	static const char *const versions[][2] = {
		{"nccl", "NCCL 2.28.9, the default"},
		{"nccl:version=2.30.1", "NCCL 2.29.7, the nearest known to version=2.30.1"},
		{"nccl:version=2.28.3", "NCCL 2.28.3, as given"},
		{"nccl:version=2.26.2", "NCCL 2.27.7, the nearest known to version=2.26.2"},
		{"nccl:version=2.23", "NCCL 2.27.7, the nearest known to version=2.23"},
		{"nccl:version=2.21.5", "NCCL 2.21.5, as given"},
	};
	struct nbox_fabric f = dgx(80, 32);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 256, 32, 512 << 20);

	(void)state;
	op.algo = NBOX_ALGO_ANY;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		CHAIN d = test_must_open(versions[i][0], NULL, 0);
		struct err err = {""};
		struct nbox_plan p;

		assert_int_equal(delay_plan(d, &op, &f, &p, &err), 0);
		assert_string_equal(p.source, versions[i][1]);
		/* the old tables have twice the latency for trees */
		assert_int_equal(p.algo, i < 5 ? NBOX_TREE : NBOX_RING);
	}
}

#define TEXTS(s) (&(struct delay_job){s, sizeof(s)})

static void a_job_tells_its_version_and_variables(void **state)
{
	struct nbox_fabric f = dgx(80, 32);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 256, 32, 512 << 20);
	const struct delay_job *job = TEXTS("2.21.5\0NCCL_ALGO=Ring\0NCCL_DEBUG=INFO");
	CHAIN d = test_must_open("nccl", NULL, 0);
	CHAIN given = test_must_open("nccl:version=2.28.9,algo=tree", NULL, 0);
	struct err err = {""};
	struct nbox_plan p;

	(void)state;
	setenv("NCCL_PROTO", "LL", 1); /* nbox's own, which is not the job's */
	op.algo = NBOX_ALGO_ANY;
	assert_null(delay_decided_by(d));
	assert_int_equal(delay_set_job(d, job, &err), 0);
	assert_int_equal(delay_plan(d, &op, &f, &p, &err), 0);
	assert_string_equal(delay_decided_by(d), "NCCL 2.21.5, the job's, NCCL_ALGO=Ring");
	assert_int_equal(p.algo, NBOX_RING);
	assert_int_not_equal(p.proto, NBOX_LL);
	assert_int_equal(delay_set_job(given, job, &err), 0);
	assert_int_equal(delay_plan(given, &op, &f, &p, &err), 0);
	assert_string_equal(delay_decided_by(given), "NCCL 2.28.9, as given, algo=tree");
	assert_int_equal(p.algo, NBOX_TREE);

	assert_null(delay_job_differs(d, TEXTS("2.21.5\0NCCL_DEBUG=WARN\0NCCL_ALGO=Ring")));
	assert_string_equal(delay_job_differs(d, TEXTS("2.21.5\0NCCL_ALGO=Tree")), "NCCL_ALGO");
	assert_string_equal(delay_job_differs(d, TEXTS("2.21.5")), "NCCL_ALGO");
	assert_string_equal(delay_job_differs(d, TEXTS("2.27.7\0NCCL_ALGO=Ring")), "NCCL");

	/* what cannot be changes nothing */
	assert_int_equal(delay_set_job(d, TEXTS("2.28.9\0NCCL_ALGO=round"), &err), -EINVAL);
	assert_non_null(strstr(err.text, "'round' is none of"));
	assert_int_equal(delay_plan(d, &op, &f, &p, &err), 0);
	assert_int_equal(p.algo, NBOX_RING);

	assert_int_equal(delay_set_job(d, TEXTS("2.30.1\0NCCL_CROSS_NIC=0"), &err), 0);
	assert_non_null(strstr(delay_warning(d), "NCCL_CROSS_NIC=0: not modelled"));
	assert_int_equal(delay_plan(d, &op, &f, &p, &err), 0);
	assert_string_equal(delay_decided_by(d),
			    "NCCL 2.29.7, the nearest known to the job's 2.30.1");
	unsetenv("NCCL_PROTO");
}

static void what_is_left_of_the_choice_may_be_nothing(void **state)
{
	struct nbox_fabric f = dgx(80, 4);
	struct nbox_op op = test_op(NBOX_ALLGATHER, 32, 4, 8);
	struct nbox_plan plan;
	struct err err = {""};
	CHAIN d = test_must_open("nccl:algo=tree", NULL, 0);

	(void)state;
	op.algo = NBOX_ALGO_ANY;
	assert_int_equal(delay_plan(d, &op, &f, &plan, &err), -EINVAL);
	assert_non_null(strstr(err.text, "NCCL_ALGO"));
}

static void every_candidate_has_a_cost_or_a_reason(void **state)
{
	(void)state;
	for (uint32_t kind = NBOX_ALLREDUCE; kind <= NBOX_REDUCE; kind++)
		for (uint32_t n = 1; n <= 128; n *= 2)
			for (uint64_t bytes = 8; bytes <= UINT64_C(8) << 30; bytes *= 16) {
				struct nbox_fabric f = dgx(n % 3 ? 90 : 80, n);
				struct nbox_plan p = must_plan("nccl", &f, kind, bytes);
				double best = INFINITY;

				assert_int_not_equal(p.n_candidates, 0);
				for (uint32_t i = 0; i < p.n_candidates; i++) {
					const struct nbox_candidate *c = &p.candidates[i];

					assert_true((c->cost_ns >= 0) == (c->why_not == NULL));
					if (c->cost_ns >= 0)
						best = fmin(best, c->cost_ns);
				}
				test_near(p.estimate_ns, best, 1e-9);
			}
}

static void peers_of_point_to_point_get_fewer_channels_as_ranks_grow(void **state)
{
	struct nbox_fabric two = dgx(90, 2), many = dgx(90, 64);
	struct nbox_plan p = must_plan("nccl", &two, NBOX_ALLTOALL, 1 << 20);

	(void)state;
	assert_int_equal(p.algo, NBOX_DIRECT);
	assert_int_equal(p.proto, NBOX_SIMPLE);
	assert_int_equal(p.n_lanes, 2);
	assert_int_equal(p.chunk_bytes, 128 << 10);
	p = must_plan("nccl", &many, NBOX_ALLTOALL, 1 << 20);
	assert_int_equal(p.n_lanes, 1);
	p = must_plan("nccl", &many, NBOX_SENDRECV, 1 << 10);
	assert_int_equal(p.chunk_bytes, 32 << 10);
}

static void a_ring_of_512_ranks_sends_100_mib_in_2044_messages_a_channel(void **state)
{
	struct nbox_fabric f = dgx(80, 64);
	struct nbox_plan p =
		must_plan("nccl:algo=ring,proto=simple", &f, NBOX_ALLREDUCE, 100 << 20);
	struct sched s, call = {.kind = COLL_ALLREDUCE,
				.n_ranks = 512,
				.ranks_per_node = 8,
				.n_channels = 1,
				.elem_bytes = 4,
				.bytes = 100 << 20};
	struct err err = {""};

	(void)state;
	assert_int_equal(p.n_lanes, 16);
	assert_int_equal(planned_schedule(&p, &call, 8, &s, &err), 0);
	for (uint16_t lane = 0; lane < 16; lane++) {
		uint32_t next = sched_next(&s, lane, 7);

		assert_int_equal(sched_conn_messages(&s, 7, next, lane), 2044);
		test_near((double)sched_message_bytes(&s, 7, next, lane, 0), 6400, 0.01);
	}
}

static void rooted_kinds_are_chains(void **state)
{
	struct nbox_fabric f = dgx(90, 8);

	(void)state;
	for (uint32_t kind = NBOX_BROADCAST; kind <= NBOX_REDUCE; kind++) {
		struct nbox_plan p = must_plan("nccl", &f, kind, 64 << 20);

		assert_int_equal(p.algo, NBOX_CHAIN);
		assert_int_equal(p.n_slices, 1);
		assert_true(p.whole_ns < 0);
	}
}

static void one_rank_alone_sends_nothing(void **state)
{
	struct nbox_fabric f = dgx(90, 1);
	struct nbox_plan p;

	(void)state;
	f.most_ranks_per_domain = f.ranks_per_domain = 1;
	p = must_plan("nccl", &f, NBOX_ALLREDUCE, 1 << 20);
	assert_int_equal(p.algo, NBOX_RING);
	assert_true(p.base_ns == 0);
}

static void a_network_without_order_has_simple_alone(void **state)
{
	struct nbox_fabric f = dgx(80, 2);
	struct nbox_plan p;

	(void)state;
	assert_int_equal(must_plan("nccl", &f, NBOX_ALLREDUCE, 8).proto, NBOX_LL);
	f.has_no_order = 1;
	p = must_plan("nccl", &f, NBOX_ALLREDUCE, 8);
	assert_int_equal(p.proto, NBOX_SIMPLE);
	f.n_domains = 1; /* inside a domain there is no such network */
	assert_true(must_plan("nccl", &f, NBOX_ALLREDUCE, 8).proto != NBOX_SIMPLE);
}

static void nvls_trees_join_small_domains_and_fill_before_they_flow(void **state)
{
	struct nbox_fabric f = dgx(90, 2);
	struct nbox_plan p = must_plan("nccl:algo=nvlstree", &f, NBOX_ALLREDUCE, 64 << 20);

	(void)state;
	/* measured on two nodes of H100: 466 us, and 17.3 ms of 4 GiB */
	test_near(p.whole_ns, 466.1e3, 0.1);
	p = must_plan("nccl:algo=nvlstree", &f, NBOX_ALLREDUCE, UINT64_C(4) << 30);
	test_near(p.whole_ns, 17262e3, 0.05);
	/* poor NICs: once, 1.5 times and twice the bytes leave the busiest domain */
	for (uint32_t n = 2; n < 6; n++) {
		f = dgx(90, n);
		f.nic_payload_bytes_per_ns = 5;
		p = must_plan("nccl:algo=nvlstree", &f, NBOX_ALLREDUCE, UINT64_C(4) << 30);
		test_near(p.whole_ns, (n < 4 ? n / 2. : 2) * (UINT64_C(4) << 30) / (8 * 5), 0.02);
	}
	f = dgx(100, 2);
	f.most_ranks_per_domain = f.ranks_per_domain = 64;
	assert_true(must_plan("nccl", &f, NBOX_ALLREDUCE, 256 << 20).algo <= NBOX_TREE);
}

static void lines_pass_on_inside_a_domain_and_chunks_do_not(void **state)
{
	struct nbox_fabric f = dgx(90, 16);

	(void)state;
	assert_int_equal(must_plan("nccl:algo=tree,proto=ll128", &f, NBOX_ALLREDUCE, 1 << 20)
				 .intra_line_bytes,
			 128);
	assert_int_equal(must_plan("nccl:algo=tree,proto=simple", &f, NBOX_ALLREDUCE, 1 << 20)
				 .intra_line_bytes,
			 0);
}

/* --- what the job's NCCL took ------------------------------------------------------- */

/* Its words are in the model: valid here until the next call. */
static struct nbox_plan taken_plan(const char *model, const struct nbox_fabric *f, uint32_t kind,
				   uint64_t bytes, uint32_t algo, uint32_t proto, uint32_t lanes)
{
	struct nbox_op op =
		test_op(kind, f->n_domains * f->most_ranks_per_domain, f->n_domains, bytes);
	static char source[256], why[128];
	struct nbox_plan plan;
	struct err err = {""};
	CHAIN d = test_must_open(model, NULL, 0);

	op.algo = NBOX_ALGO_ANY;
	op.took_algo = algo;
	op.took_proto = proto;
	op.took_lanes = lanes;
	if (delay_plan(d, &op, f, &plan, &err) != 0)
		fail_msg("%s: %s", model, err.text);
	if (plan.is_taken)
		assert_null(delay_decided_by(d));
	else
		assert_null(delay_taken_by(d));
	snprintf(source, sizeof(source), "%s", plan.source);
	snprintf(why, sizeof(why), "%s", plan.why_not_taken ? plan.why_not_taken : "");
	plan.source = source;
	plan.why_not_taken = why[0] ? why : NULL;
	return plan;
}

static void what_nccl_took_is_planned(void **state)
{
	struct nbox_fabric f = dgx(90, 64);

	(void)state;
	for (uint32_t algo = NBOX_RING; algo <= NBOX_TREE; algo++)
		for (uint32_t proto = NBOX_LL; proto <= NBOX_SIMPLE; proto++)
			for (uint64_t bytes = 8; bytes <= 256 << 20; bytes *= 32) {
				struct nbox_plan p = taken_plan("nccl", &f, NBOX_ALLREDUCE, bytes,
								algo, proto, 5);

				assert_true(p.is_taken && !p.why_not_taken);
				assert_string_equal(p.source, "NCCL itself");
				assert_int_equal(p.algo, algo);
				assert_int_equal(p.proto, proto);
				assert_int_equal(p.n_lanes, bytes < 100000 ? p.n_lanes : 5);
				assert_true(p.n_candidates > 3);
				if (proto != NBOX_SIMPLE)
					assert_true(p.lane_bytes_per_ns[NBOX_INTER] > 0);
			}
	assert_int_equal(taken_plan("nccl", &f, NBOX_BROADCAST, 64, NBOX_RING, NBOX_LL128, 1).algo,
			 NBOX_CHAIN);
}

/* Told its own choice the model makes the plan that it would have made. */
static void its_own_choice_is_the_same_plan(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 64; n *= 4)
		for (uint32_t kind = NBOX_ALLREDUCE; kind <= NBOX_REDUCE; kind++)
			for (uint64_t bytes = 4; bytes <= 64 << 20; bytes = bytes * 3 + 4) {
				struct nbox_fabric f = dgx(90, n);
				struct nbox_plan p = must_plan("nccl:algo=ring+tree", &f, kind,
							       bytes),
						 q;
				uint32_t algo = p.algo == NBOX_CHAIN ? NBOX_RING : p.algo;

				q = taken_plan("nccl", &f, kind, bytes, algo, p.proto, p.n_lanes);
				assert_true(q.is_taken);
				assert_int_equal(q.algo, p.algo);
				assert_int_equal(q.proto, p.proto);
				assert_int_equal(q.n_lanes, p.n_lanes);
				assert_int_equal(q.n_first, p.n_first);
				assert_int_equal(q.lane_bytes, p.lane_bytes);
				assert_int_equal(q.chunk_bytes, p.chunk_bytes);
				assert_int_equal(q.n_slices, p.n_slices);
				assert_memory_equal(q.step_ns, p.step_ns, sizeof(q.step_ns));
				assert_memory_equal(q.lane_bytes_per_ns, p.lane_bytes_per_ns,
						    sizeof(q.lane_bytes_per_ns));
			}
}

static void what_the_rules_call_impossible_is_planned_all_the_same(void **state)
{
	struct nbox_fabric f = dgx(90, 16);
	struct nbox_plan p;

	(void)state;
	f.distance = NBOX_SYS; /* no LL128 there, by the rules */
	p = taken_plan("nccl", &f, NBOX_ALLREDUCE, 1 << 20, NBOX_TREE, NBOX_LL128, 4);
	assert_true(p.is_taken && p.proto == NBOX_LL128);
	assert_true(p.estimate_ns < 0);
	/* a variable counts as NCCL reads it */
	setenv("NCCL_ALGO", "Ring", 1);
	assert_true(taken_plan("nccl", &f, NBOX_ALLREDUCE, 8, NBOX_TREE, NBOX_LL, 1).algo ==
		    NBOX_TREE);
	unsetenv("NCCL_ALGO");
	/* of these nothing is known */
	p = taken_plan("nccl", &f, NBOX_ALLREDUCE, 8, NBOX_COLLNET, NBOX_SIMPLE, 1);
	assert_true(!p.is_taken);
	assert_string_equal(p.why_not_taken, "it knows nothing of its times");
	assert_false(taken_plan("nccl", &f, NBOX_ALLGATHER, 8, NBOX_TREE, NBOX_LL, 1).is_taken);
	assert_false(taken_plan("nccl", &f, NBOX_ALLREDUCE, 8, NBOX_ALGO_ANY, NBOX_LL, 1).is_taken);
	assert_false(taken_plan("nccl", &f, NBOX_ALLREDUCE, 8, NBOX_RING, 3, 1).is_taken);
}

static void a_parameter_goes_before_what_nccl_took(void **state)
{
	static const struct {
		const char *model, *why; /* NULL: it is taken */
	} cases[] = {
		{"nccl:algo=ring", "its algo=, or --algo, asks for another algorithm"},
		{"nccl:algo=ring+tree", NULL},
		{"nccl:proto=simple", "its proto= asks for another protocol"},
		{"nccl:proto=^simple", NULL},
		{"nccl:version=2.21.5", "its version= or tuner= asks for what other rules say"},
		{"nccl:channels=2", NULL},
	};
	struct nbox_fabric f = dgx(90, 16);
	struct nbox_plan p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		p = taken_plan(cases[i].model, &f, NBOX_ALLREDUCE, 1 << 20, NBOX_TREE, NBOX_LL, 7);
		assert_int_equal(p.is_taken, !cases[i].why);
		if (cases[i].why)
			assert_string_equal(p.why_not_taken, cases[i].why);
	}
	assert_int_equal(p.n_lanes, 2);
	assert_string_equal(p.source, "NCCL itself, but for the channels");
	/* nobody asks of sends and receives */
	p = taken_plan("nccl", &f, NBOX_SENDRECV, 1 << 20, NBOX_TREE, NBOX_LL, 7);
	assert_true(!p.is_taken && !p.why_not_taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_bytes_on_many_nodes_take_one_lane_of_a_tree_with_ll),
		cmocka_unit_test(many_bytes_take_all_rails),
		cmocka_unit_test(a_switch_that_reduces_takes_large_sums),
		cmocka_unit_test(the_environment_narrows_the_choice_and_a_parameter_comes_first),
		cmocka_unit_test(wrong_words_and_numbers_get_a_sentence),
		cmocka_unit_test(a_tuners_table_decides_where_it_has_a_line),
		cmocka_unit_test(uneven_domains_have_the_channels_of_the_smallest),
		cmocka_unit_test(any_fabric_gets_a_plan),
		cmocka_unit_test(a_version_decides_by_the_tables_of_its_time),
		cmocka_unit_test(a_job_tells_its_version_and_variables),
		cmocka_unit_test(what_is_left_of_the_choice_may_be_nothing),
		cmocka_unit_test(every_candidate_has_a_cost_or_a_reason),
		cmocka_unit_test(peers_of_point_to_point_get_fewer_channels_as_ranks_grow),
		cmocka_unit_test(a_ring_of_512_ranks_sends_100_mib_in_2044_messages_a_channel),
		cmocka_unit_test(rooted_kinds_are_chains),
		cmocka_unit_test(one_rank_alone_sends_nothing),
		cmocka_unit_test(a_network_without_order_has_simple_alone),
		cmocka_unit_test(nvls_trees_join_small_domains_and_fill_before_they_flow),
		cmocka_unit_test(lines_pass_on_inside_a_domain_and_chunks_do_not),
		cmocka_unit_test(what_nccl_took_is_planned),
		cmocka_unit_test(its_own_choice_is_the_same_plan),
		cmocka_unit_test(what_the_rules_call_impossible_is_planned_all_the_same),
		cmocka_unit_test(a_parameter_goes_before_what_nccl_took),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
