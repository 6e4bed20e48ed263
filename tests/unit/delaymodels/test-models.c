/* The models' closed forms against step-by-step execution of their algorithms,
 * and against formulas written down independently. */
#include "delay-test.h"
#include "rng.h"

#define EXACT 1e-12
#define MAX_RANKS 64

struct random_net {
	double alpha, bw; /* ns, bytes per ns */
	char params[128];
};

/* A decimal of three places, so that text and double say the same. */
static struct random_net draw_net(struct rng *rng)
{
	uint64_t alpha = rng_u64(rng) % 20000000, bw = 1 + rng_u64(rng) % 900000;
	struct random_net net = {.alpha = (double)alpha / 1000, .bw = (double)bw / 1000};

	snprintf(net.params, sizeof(net.params), "alpha=%lu.%03luns,bw=%lu.%03luGB/s",
		 (unsigned long)(alpha / 1000), (unsigned long)(alpha % 1000),
		 (unsigned long)(bw / 1000), (unsigned long)(bw % 1000));
	return net;
}

/* Every rank in every step sends to its right as soon as it has what the step
 * before gave it; n ranks, @steps steps, each with @bytes. */
static double run_ring(uint32_t n, uint32_t steps, double bytes, double alpha, double bw)
{
	double at[MAX_RANKS] = {0}, next[MAX_RANKS], last = 0;

	for (uint32_t s = 0; s < steps; s++) {
		for (uint32_t r = 0; r < n; r++)
			next[(r + 1) % n] = at[r] + bytes / bw + alpha;
		for (uint32_t r = 0; r < n; r++)
			at[r] = next[r];
	}
	for (uint32_t r = 0; r < n; r++)
		last = fmax(last, at[r]);
	return last;
}

/* Chunks one after another along a chain: a link is free again when the occupancy
 * of the one before is over, a chunk is there alpha later. */
static double run_chain(uint32_t n, uint64_t chunks, double chunk, double alpha, double bw)
{
	double link_free[MAX_RANKS] = {0}, at = 0;

	for (uint64_t c = 0; c < chunks; c++) {
		at = 0;
		for (uint32_t r = 0; r + 1 < n; r++) {
			link_free[r] = fmax(at, link_free[r]) + chunk / bw;
			at = link_free[r] + alpha;
		}
	}
	return at;
}

static void ring_takes_its_formula(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 10, 0);
	for (int i = 0; i < 300; i++) {
		struct random_net net = draw_net(&rng);
		uint32_t n = 2 + (uint32_t)(rng_u64(&rng) % 40);
		uint64_t bytes = rng_u64(&rng) >> (34 + rng_u64(&rng) % 30), chunks;
		char spec[200];
		struct nbox_op op;

		snprintf(spec, sizeof(spec), "ring:%s,chunk=64K", net.params);
		CHAIN d = test_must_open(spec, NULL, 0);

		op = test_op(NBOX_ALLREDUCE, n, 1, bytes);
		test_near(test_op_ns(d, &op),
			  run_ring(n, 2 * (n - 1), (double)bytes / n, net.alpha, net.bw), EXACT);
		op.kind = NBOX_ALLGATHER;
		test_near(test_op_ns(d, &op), run_ring(n, n - 1, (double)bytes, net.alpha, net.bw),
			  EXACT);
		op.kind = NBOX_REDUCESCATTER;
		test_near(test_op_ns(d, &op), run_ring(n, n - 1, (double)bytes, net.alpha, net.bw),
			  EXACT);
		bytes %= 10 << 20;
		chunks = bytes ? (bytes + 65535) / 65536 : 1;
		op = test_op(i % 2 ? NBOX_BROADCAST : NBOX_REDUCE, n, 1, bytes);
		test_near(test_op_ns(d, &op),
			  run_chain(n, chunks, (double)bytes / (double)chunks, net.alpha, net.bw),
			  EXACT);
	}
}

/* Without parameters: the cluster's hops; over several nodes the slower of each. */
static void ring_takes_the_clusters_slower_hop(void **state)
{
	CHAIN d = test_must_open("ring", NULL, 0);
	struct nbox_net odd = {9000, 100, 5000, 50}; /* inside is slower to begin */
	struct nbox_op op;

	(void)state;
	op = test_op(NBOX_ALLREDUCE, 8, 1, 1 << 20);
	test_near(test_op_ns(d, &op), 14 * (1000 + (1 << 17) / 400.0), EXACT);
	op = test_op(NBOX_ALLREDUCE, 16, 2, 1 << 20);
	test_near(test_op_ns(d, &op), 30 * (5000 + (1 << 16) / 50.0), EXACT);
	op.net = &odd;
	test_near(test_op_ns(d, &op), 30 * (9000 + (1 << 16) / 50.0), EXACT);
	op.n_nodes = 16; /* one rank a node: there is no inside */
	test_near(test_op_ns(d, &op), 30 * (5000 + (1 << 16) / 50.0), EXACT);
}

/* Two ranks, one chunk of S/2 a tree: each sends its half up in one tree, gets the
 * other's, and sends the sum down, by hand. */
static void a_tree_of_two_is_as_by_hand(void **state)
{
	CHAIN d = test_must_open("tree:alpha=3us,bw=20GB/s,chunk=1G", NULL, 0);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 2, 1, 1000000);
	double up = 500000 / 20.0 + 3000, down = up + 500000 / 20.0 + 3000;

	(void)state;
	test_near(test_op_ns(d, &op), down, EXACT);
	op.kind = NBOX_BROADCAST; /* both halves leave the root's one port */
	test_near(test_op_ns(d, &op), 1000000 / 20.0 + 3000, EXACT);
}

/* Eight nodes, one chunk of S/2 a tree: two children send to each of two levels' nodes, which takes
 * twice as long as the root's one child; then the same down. */
static void children_in_a_tree_share_a_port(void **state)
{
	CHAIN d = test_must_open("tree:alpha=3us,bw=20GB/s,chunk=1G", NULL, 0);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 8, 8, 1000000);
	double half = 500000 / 20.0;

	(void)state;
	test_near(test_op_ns(d, &op), 2 * (3 * 3000 + (2 + 2 + 1) * half), EXACT);
	op.kind = NBOX_BROADCAST;
	test_near(test_op_ns(d, &op), 3 * 3000 + (1 + 2 + 2) * half, EXACT);
}

static void tree_takes_its_formula(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11, 0);
	for (int i = 0; i < 300; i++) {
		struct random_net net = draw_net(&rng);
		uint32_t nodes = 1 + (uint32_t)(rng_u64(&rng) % 20);
		uint32_t per_node = 1 + (uint32_t)(rng_u64(&rng) % 8), n = nodes * per_node;
		uint64_t bytes = rng_u64(&rng) >> (34 + rng_u64(&rng) % 30);
		double half = (double)bytes / 2, m = fmin(65536, half), load, pass, depth, c;
		char spec[200];
		struct nbox_op op = test_op(NBOX_ALLREDUCE, n, nodes, bytes);

		snprintf(spec, sizeof(spec), "tree:%s,chunk=64K", net.params);
		CHAIN d = test_must_open(spec, NULL, 0);

		if (n == 1)
			continue;
		depth = ceil(log2(nodes));
		c = nodes > 2 ? 2 : 1; /* children that share a port */
		pass = (per_node - 1 + depth) * net.alpha +
		       (per_node - 1 + (depth > 0 ? 1 + c * (depth - 1) : 0)) * m / net.bw;
		load = n == 2 ? (double)bytes : 2 * (double)bytes;
		test_near(test_op_ns(d, &op), 2 * pass + (load - 2 * c * m) / net.bw, EXACT);
		/* no faster than the wire */
		assert_true(test_op_ns(d, &op) >=
			    2 * (double)(n - 1) / n * (double)bytes / net.bw * (1 - EXACT));
		op.kind = i % 2 ? NBOX_BROADCAST : NBOX_REDUCE;
		test_near(test_op_ns(d, &op), pass + ((double)bytes - c * m) / net.bw, EXACT);
		assert_true(test_op_ns(d, &op) >= (double)bytes / net.bw * (1 - EXACT));
	}
}

/* Two hops, two costs; a latency term as in NCCL's own model at 0 bytes. */
static void tree_takes_the_clusters_hops(void **state)
{
	CHAIN d = test_must_open("tree", NULL, 0);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 64, 8, 0);
	double m = 512 << 10, s = 1 << 30;

	(void)state;
	test_near(test_op_ns(d, &op), 2 * (7 * 1000 + 3 * 5000), EXACT);
	op.bytes = 1 << 30;
	test_near(test_op_ns(d, &op),
		  2 * (7 * (1000 + m / 400) + 3 * 5000 + 5 * m / 50) + (2 * s - 4 * m) / 50, EXACT);
	op = test_op(NBOX_ALLREDUCE, 8, 1, 1 << 30); /* inside one node */
	test_near(test_op_ns(d, &op), 2 * 7 * (1000 + m / 400) + (2 * s - 2 * m) / 400, EXACT);
	op = test_op(NBOX_ALLREDUCE, 8, 8, 1 << 30); /* one rank a node */
	test_near(test_op_ns(d, &op), 2 * (3 * 5000 + 5 * m / 50) + (2 * s - 4 * m) / 50, EXACT);
}

static void alltoall_takes_its_formula(void **state)
{
	static const uint32_t direct[] = {NBOX_ALLTOALL, NBOX_ALLGATHER, NBOX_REDUCESCATTER,
					  NBOX_GATHER, NBOX_SCATTER};
	static const uint32_t twice[] = {NBOX_ALLREDUCE, NBOX_BROADCAST, NBOX_REDUCE};
	CHAIN d = test_must_open("alltoall", NULL, 0);
	CHAIN flat = test_must_open("alltoall:alpha=2us,bw=10GB/s", NULL, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(direct); i++) {
		struct nbox_op op = test_op(direct[i], 32, 4, 1 << 20);

		/* 7 peers inside at 400, 24 outside at 50 bytes a nanosecond */
		test_near(test_op_ns(d, &op), 5000 + 24 * (1 << 20) / 50.0, EXACT);
		test_near(test_op_ns(flat, &op), 2000 + 31 * (1 << 20) / 10.0, EXACT);
		op = test_op(direct[i], 8, 1, 1 << 20);
		test_near(test_op_ns(d, &op), 1000 + 7 * (1 << 20) / 400.0, EXACT);
		op = test_op(direct[i], 64, 2, 1 << 20); /* as many peers on either side */
		test_near(test_op_ns(d, &op), 5000 + 32 * (1 << 20) / 50.0, EXACT);
	}
	for (size_t i = 0; i < ARRAY_SIZE(twice); i++) {
		struct nbox_op op = test_op(twice[i], 32, 4, 1 << 20);

		test_near(test_op_ns(d, &op), 2 * (5000 + 24 * (1 << 15) / 50.0), EXACT);
		test_near(test_op_ns(flat, &op), 2 * (2000 + 31 * (1 << 15) / 10.0), EXACT);
	}
	struct nbox_op p2p = test_op(NBOX_SENDRECV, 32, 4, 1 << 20);

	test_near(test_op_ns(d, &p2p), 5000 + (1 << 20) / 50.0, EXACT);
	p2p = test_op(NBOX_SENDRECV, 8, 1, 1 << 20);
	test_near(test_op_ns(d, &p2p), 1000 + (1 << 20) / 400.0, EXACT);
}

static void alphabeta_costs_messages_by_hop(void **state)
{
	CHAIN d = test_must_open("alphabeta", NULL, 0);
	CHAIN own = test_must_open("alphabeta:alpha=3us,inter_alpha=7us,intra_bw=200GB/s", NULL, 0);
	struct nbox_op op = test_op(NBOX_ALLREDUCE, 16, 2, 1 << 20);
	struct nbox_message msg = test_message(0, 1, NBOX_INTRA, 1, 4000);
	struct nbox_delay delay = test_message_ns(d, &op, &msg);

	(void)state;
	assert_true(delay.latency_ns == 1000 && delay.occupancy_ns == 10);
	msg = test_message(0, 8, NBOX_INTER, 4, 5000);
	delay = test_message_ns(d, &op, &msg);
	assert_true(delay.latency_ns == 5000 && delay.occupancy_ns == 400);
	delay = test_message_ns(own, &op, &msg);
	assert_true(delay.latency_ns == 7000 && delay.occupancy_ns == 400);
	msg = test_message(0, 1, NBOX_INTRA, 1, 4000);
	delay = test_message_ns(own, &op, &msg);
	assert_true(delay.latency_ns == 3000 && delay.occupancy_ns == 20);
	msg.bytes = 0;
	delay = test_message_ns(own, &op, &msg);
	assert_true(delay.latency_ns == 3000 && delay.occupancy_ns == 0);
	msg = test_message(3, 3, NBOX_SELF, 1, 4000);
	delay = test_message_ns(own, &op, &msg);
	assert_true(delay.latency_ns == 0 && delay.occupancy_ns == 0);
	assert_false(delay_has_op(d));
	assert_true(delay_has_message(d) && delay_is_uniform(d) && delay_is_steady(d));
}

static void none_takes_no_time_and_const_its_own(void **state)
{
	CHAIN none = test_must_open("none", NULL, 0);
	CHAIN constant = test_must_open("const:time=1.5ms", NULL, 0);

	(void)state;
	for (uint32_t kind = 0; kind <= NBOX_SENDRECV; kind++) {
		struct nbox_op op = test_op(kind, 1 + 7 * kind, 1, (uint64_t)kind << 20);
		struct nbox_message msg = test_message(0, 1, NBOX_INTER, 3, 12345);
		struct nbox_delay delay = test_message_ns(none, &op, &msg);

		assert_true(test_op_ns(none, &op) == 0);
		assert_true(delay.latency_ns == 0 && delay.occupancy_ns == 0);
		assert_true(test_op_ns(constant, &op) == 1.5e6);
	}
	assert_true(delay_has_op(none) && delay_has_message(none));
	assert_true(delay_has_op(constant) && !delay_has_message(constant));
	assert_string_equal(delay_describe(constant), "const:time=1.5ms");
}

/* One rank needs no time; no bytes leave the latencies; what has no closed form
 * is said to have none, and has messages instead. */
static void ops_without_bytes_or_peers_have_answers(void **state)
{
	static const char *const names[] = {"ring", "tree", "alltoall"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHAIN d = test_must_open(names[i], NULL, 0);

		for (uint32_t kind = 0; kind <= NBOX_SENDRECV; kind++) {
			struct nbox_op alone = test_op(kind, 1, 1, 1 << 20);
			struct nbox_op empty = test_op(kind, 16, 2, 0);
			struct nbox_op huge = test_op(kind, 65536, 8192, UINT64_MAX);
			struct err err;
			double ns = -1;
			int r = delay_op(d, &empty, &ns, &err);

			assert_true(test_op_ns(d, &alone) == 0);
			if (r == 1) {
				assert_true(delay_has_message(d));
				continue;
			}
			assert_int_equal(r, 0);
			assert_true(ns >= 5000 && ns < 1e6);
			/* no overflow: a long time, or one that is refused as too long */
			r = delay_op(d, &huge, &ns, &err);
			if (r == 0)
				assert_true(isfinite(ns) && ns > 1e15);
			else
				assert_non_null(strstr(err.text, "more than 31 years"));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_takes_its_formula),
		cmocka_unit_test(ring_takes_the_clusters_slower_hop),
		cmocka_unit_test(tree_takes_its_formula),
		cmocka_unit_test(a_tree_of_two_is_as_by_hand),
		cmocka_unit_test(children_in_a_tree_share_a_port),
		cmocka_unit_test(tree_takes_the_clusters_hops),
		cmocka_unit_test(alltoall_takes_its_formula),
		cmocka_unit_test(alphabeta_costs_messages_by_hop),
		cmocka_unit_test(none_takes_no_time_and_const_its_own),
		cmocka_unit_test(ops_without_bytes_or_peers_have_answers),
	};

	return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
