/* The nccl scheduler, asked as the host asks it: what NCCL decides on machines that people have. */
#include "delay-test.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/solve-plan.h"
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
	refused("nccl:version=2.4", NULL, NULL, "2.28.9");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_bytes_on_many_nodes_take_one_lane_of_a_tree_with_ll),
		cmocka_unit_test(many_bytes_take_all_rails),
		cmocka_unit_test(a_switch_that_reduces_takes_large_sums),
		cmocka_unit_test(the_environment_narrows_the_choice_and_a_parameter_comes_first),
		cmocka_unit_test(wrong_words_and_numbers_get_a_sentence),
		cmocka_unit_test(what_is_left_of_the_choice_may_be_nothing),
		cmocka_unit_test(every_candidate_has_a_cost_or_a_reason),
		cmocka_unit_test(peers_of_point_to_point_get_fewer_channels_as_ranks_grow),
		cmocka_unit_test(a_ring_of_512_ranks_sends_100_mib_in_2044_messages_a_channel),
		cmocka_unit_test(rooted_kinds_are_chains),
		cmocka_unit_test(one_rank_alone_sends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
