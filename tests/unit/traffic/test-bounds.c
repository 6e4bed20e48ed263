/* What workers that are broken or hostile may say of NCCL's messages: none of it makes nboxd keep
 * memory without bound, and what is kept is free when the communicator has ended. */
#include "told.h"

#include <errno.h>
#include <string.h>

#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"
#include "wire/wire.h"

#define P2P WIRE_SEQ_P2P
#define DIRECT WIRE_NCCL_DIRECT
#define MANY 100000 /* far more than TOLD_MAX_BYTES have room for */
#define SECOND 4u   /* of a tree of three nodes: a rank of node 0's neighbour */

static int flow_on(uint32_t channel, uint32_t n_channels)
{
	struct traffic_at at = {0, 1, 2, (uint16_t)channel};
	struct traffic_flow f = {true, PLUGIN_RING, PLUGIN_LL, n_channels, 10, 64, false};

	return traffic_flow(told.c, &at, &f, &err);
}

static void nccl_has_no_more_channels(void **state)
{
	(void)state;
	OPEN(2);
	OK(flow_on(63, 64));
	refused(flow_on(64, 64), "channel 64, rank 1 -> 2: that or 64 channels are more");
	OPEN(2);
	refused(flow_on(0, 65), "65 channels are more than NCCL has, 64");
	OPEN(2);
	refused(flow_on(UINT16_MAX, 1), "more than NCCL has");
}

static void messages_are_few_enough_to_count(void **state)
{
	(void)state;
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, WIRE_FLOW_MESSAGES_MAX));
	refused(arrive(0, 1, 2, UINT64_MAX, 0, 0), "message 18446744073709551615 of 67108864");
	OPEN(2);
	refused(flow(0, 1, 2, true, PLUGIN_RING, WIRE_FLOW_MESSAGES_MAX + 1), "too many or none");
	OPEN(2);
	refused(flow(0, 1, 2, true, PLUGIN_RING, UINT64_MAX), "too many or none");
}

static void receives_are_posted_a_few_ahead(void **state)
{
	(void)state;
	OPEN(2);
	OK(call(0, 0, COLL_ALLREDUCE, 0));
	OK(flow(0, 0, 5, false, PLUGIN_RING, 1000));
	OK(want(0, 0, 5, 63));
	OK(want(0, 0, 5, 0));
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_sent, 1);
	OK(want(0, 0, 5, 64));
	refused(want(0, 0, 5, 65),
		"message 65 of 1000 is posted, more ahead than NCCL does, after 1");
	OPEN(2);
	OK(flow(0, 0, 5, false, PLUGIN_RING, WIRE_FLOW_MESSAGES_MAX));
	refused(want(0, 0, 5, WIRE_FLOW_MESSAGES_MAX - 1), "more ahead than NCCL does");
	OPEN(2);
	OK(flow(0, 0, 5, false, PLUGIN_RING, 10));
	refused(want(0, 0, 5, UINT64_MAX), "message 18446744073709551615 of 10");
	OPEN(2);
	OK(call(0, 0, COLL_ALLREDUCE, 0));
	OK(flow(0, 0, 5, false, PLUGIN_RING, 10));
	OK(want(0, 0, 5, 0));
	traffic_advance(told.t, 1000);
	refused(want(0, 0, 5, 0), "message 0 of 10 is posted again");
}

/* Nobody asked before whether it may come. */
static void a_body_that_is_wrong_is_given_back(void **state)
{
	struct traffic_at at = {0, 1, 2, 0};

	(void)state;
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	assert_int_equal(traffic_arrived(told.c, &at, 1, traffic_body_new(told.bodies, 8), &err),
			 -EPROTO);
	assert_int_equal(traffic_bodies_lent(told.bodies), 0);
	assert_int_equal(traffic_arrived(told.c, &at, 1, traffic_body_new(told.bodies, 8), &err),
			 0); /* it is dead */
	assert_int_equal(traffic_bodies_lent(told.bodies), 0);
	close_all();
}

/* Each direction of a connection has one flow at a time; sends and receives have their own. */
static void a_connection_does_one_op_after_the_other(void **state)
{
	(void)state;
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 2));
	OK(flow(P2P, 1, 2, true, DIRECT, 1));
	OK(flow(0, 0, 5, false, PLUGIN_RING, 2));
	OK(flow(P2P, 0, 5, false, DIRECT, 1));
	OK(arrive(0, 1, 2, 0, 8, 0));
	OK(arrive(0, 1, 2, 1, 8, 0));
	OK(flow(1, 1, 2, true, PLUGIN_RING, 2));
	refused(flow(1, 0, 5, false, PLUGIN_RING, 2),
		"op 1, channel 0, rank 0 <- 5: of op 0, channel 0, rank 0 <- 5, on the same "
		"connection, 0 of 2 messages are through");
	OPEN(2);
	OK(flow(P2P + 5, 1, 2, true, DIRECT, 2));
	OK(arrive(P2P + 5, 1, 2, 0, 8, 0));
	refused(flow(P2P + 6, 1, 2, true, DIRECT, 2), "1 of 2 messages are through");
	OPEN(2); /* what came before is no flow any more */
	OK(flow(P2P + 5, 1, 2, true, DIRECT, 1));
	OK(arrive(P2P + 5, 1, 2, 0, 8, 0));
	OK(flow(P2P + 6, 1, 2, true, DIRECT, 1));
	refused(arrive(P2P + 5, 1, 2, 1, 8, 0), "nobody has said that there are any");
	OPEN(2);
	refused(flow(P2P, 1, 2, true, PLUGIN_RING, 10), "the algorithm is a collective's");
}

static void ops_are_not_far_in_the_future(void **state)
{
	(void)state;
	OPEN(2);
	OK(flow((1 << 20) - 1, 1, 2, true, PLUGIN_RING, 10));
	refused(flow(1 << 20, 0, 5, false, PLUGIN_RING, 10),
		"op 1048576, channel 0, rank 0 <- 5: only 0 ops have passed at that rank");
	OPEN(2);
	traffic_passed(told.c, 0, 41);
	OK(flow((1 << 20) + 41, 0, 5, false, PLUGIN_RING, 10));
	refused(flow((1 << 20) + 41, 1, 2, true, PLUGIN_RING, 10), "only 0 ops have passed");
	OPEN(2);
	refused(flow(P2P - 1, 1, 2, true, PLUGIN_RING, 10), "only 0 ops");
	OPEN(2);
	refused(flow(UINT64_MAX, 1, 2, true, DIRECT, 10), "sends and receives 9223372036854775807");
}

/* A lane has as many flows as a ring or a tree has edges there, before the op is called, too. */
static void neighbours_are_those_of_the_algorithm(void **state)
{
	(void)state;
	OPEN(2);
	refused(flow(0, 1, 4, true, PLUGIN_RING, 10), "node 0 sends to node 1, not 2");
	OPEN(2);
	refused(flow(0, 0, 3, false, PLUGIN_RING, 10), "node 0 receives from node 2, not 1");
	OPEN(2);
	OK(flow(0, 0, 5, false, PLUGIN_RING, 10));
	refused(flow(0, 1, 4, false, PLUGIN_RING, 10), "on the same node");
	OPEN(2);
	refused(flow(0, 1, 2, true, PLUGIN_TREE, 10), "set NCCL_ALGO=Ring");
	OPEN(2);
	traffic_comm_set_trees(told.c, 1);
	OK(flow(0, 1, SECOND, true, PLUGIN_TREE, 10));
	traffic_comm_set_trees(told.c, 2); /* too late */
	refused(flow(0, 1, 2, true, PLUGIN_TREE, 10), "neighbours in tree 0 of 3 nodes");
}

/* Says @r until @c has too much, and ends it: nothing of it is left. */
static void is_too_much(int r, uint64_t n)
{
	if (r != -ENOBUFS)
		fail_msg("%s", err.text);
	assert_true(n > 100);
	assert_non_null(strstr(err.text, "for this communicator: let its ranks"));
	assert_int_equal(want(0, 0, 5, 0), 0); /* it is dead */
	traffic_comm_end(told.c);
	assert_true(!told.bodies || traffic_bodies_lent(told.bodies) == 0);
	OK(open_more(2, &told.c)); /* there is room again */
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	OK(arrive(0, 1, 2, 0, 64, 0));
	close_all();
}

/* A sender may be through with op after op that is never called. */
static void ops_that_nobody_calls_have_a_bound(void **state)
{
	uint64_t i;
	int r = 0;

	(void)state;
	OPEN(2);
	for (i = 0; i < MANY && r == 0; i++) {
		r = flow(i, 1, 2, true, PLUGIN_RING, 1);
		r = r ? r : arrive(i, 1, 2, 0, 0, 0);
	}
	is_too_much(r, i);
}

static void bodies_that_nobody_calls_for_have_a_bound(void **state)
{
	uint64_t i;
	int r;

	(void)state;
	OPEN(2);
	r = flow(0, 1, 2, true, PLUGIN_RING, MANY);
	for (i = 0; i < MANY && r == 0; i++)
		r = arrive(0, 1, 2, i, 64, 0);
	is_too_much(r, i);
	OPEN(2); /* nor empty ones */
	r = flow(0, 1, 2, true, PLUGIN_RING, MANY);
	for (i = 0; i < MANY && r == 0; i++)
		r = arrive(0, 1, 2, i, 0, 0);
	is_too_much(r, i);
}

/* What a real rank sends to another waits there for its receive. */
static void messages_that_nobody_receives_have_a_bound(void **state)
{
	uint64_t i;
	int r = 0;

	(void)state;
	OPEN(4);
	for (i = 0; i < MANY && r == 0; i++) {
		r = flow(P2P, 1, 2, true, DIRECT, 1);
		r = r ? r : arrive(P2P, 1, 2, 0, i % 2 ? 64 : 0, 0);
	}
	is_too_much(r, i);
}

/* A group of any length takes no more than its last calls. */
static void what_is_through_is_forgotten(void **state)
{
	(void)state;
	OPEN(4);
	for (uint64_t i = 0; i < MANY; i++) {
		OK(flow(P2P, 1, 4, true, DIRECT, 1)); /* to a virtual rank */
		OK(arrive(P2P, 1, 4, 0, 64, 0));
		OK(flow(P2P + 3, 3, 1, true, DIRECT, 1)); /* to a real one */
		OK(arrive(P2P + 3, 3, 1, 0, 64, (unsigned char)i));
		OK(flow(P2P, 1, 3, false, DIRECT, 1));
		OK(want(P2P, 1, 3, 0));
		if (i == 0)
			OK(call(P2P, 1, COLL_SENDRECV, 0));
		traffic_advance(told.t, 1000);
		assert_int_equal(told.n_sent, i + 1);
		assert_int_equal(told.first, (unsigned char)i);
	}
	assert_int_equal(traffic_bodies_lent(told.bodies), 0);
	close_all();
}

/* Not the one whose message is one too many. */
static void who_has_most_fails(void **state)
{
	struct traffic_comm *greedy;
	uint64_t i;

	(void)state;
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, MANY));
	greedy = told.c;
	for (i = 0; traffic_bodies_lent(told.bodies) < TOLD_MAX_BYTES * 3 / 4; i++)
		OK(arrive(0, 1, 2, i, 64, 0));
	OK(open_more(2, &told.c));
	for (uint64_t k = 0; !*told.failed && k < MANY; k++) {
		OK(flow(k, 1, 2, true, PLUGIN_RING, 1));
		OK(arrive(k, 1, 2, 0, 64, 0));
	}
	assert_non_null(strstr(told.failed, "for this communicator"));
	OK(flow(MANY, 1, 2, true, PLUGIN_RING, 1)); /* told.c lives on */
	OK(arrive(MANY, 1, 2, 0, 64, 0));
	traffic_comm_end(greedy);
	for (uint64_t k = 1; k < 100; k++) {
		OK(flow(MANY + k, 1, 2, true, PLUGIN_RING, 1));
		OK(arrive(MANY + k, 1, 2, 0, 64, 0));
	}
	close_all();
}

/* --- bodies that are long ------------------------------------------------------------------ */

#define LONG (TOLD_MAX_BYTES * 3 / 8) /* no room for three */

/* Sends to a virtual rank, on a channel of their own. */
static void long_flow(struct traffic_comm *c, uint16_t channel)
{
	struct traffic_at at = {P2P, 1, 2, channel};
	struct traffic_flow f = {true, DIRECT, PLUGIN_SIMPLE, 1, MANY, LONG, false};

	OK(traffic_flow(c, &at, &f, &err));
}

static int announce(struct traffic_comm *c, uint16_t channel, uint64_t index,
		    struct traffic_body **ret)
{
	struct traffic_at at = {P2P, 1, 2, channel};

	return traffic_expect(c, &at, index, LONG, ret, &err);
}

static void come(struct traffic_comm *c, uint16_t channel, uint64_t index,
		 struct traffic_body *body)
{
	struct traffic_at at = {P2P, 1, 2, channel};

	OK(traffic_arrived(c, &at, index, body, &err));
}

static void a_body_counts_before_it_has_come(void **state)
{
	struct traffic_body *bodies[3];

	(void)state;
	OPEN(2);
	for (uint16_t i = 0; i < 3; i++)
		long_flow(told.c, i);
	OK(announce(told.c, 0, 0, &bodies[0]));
	OK(announce(told.c, 1, 0, &bodies[1]));
	assert_int_equal(announce(told.c, 2, 0, &bodies[2]), -ENOBUFS);
	assert_non_null(strstr(err.text, "for this communicator"));
	assert_null(bodies[2]);
	come(told.c, 1, 0, bodies[1]); /* it is dead */
	come(told.c, 0, 0, bodies[0]);
	assert_int_equal(traffic_bodies_lent(told.bodies), 0);
	close_all();
}

static void what_has_come_and_is_used_counts_no_more(void **state)
{
	struct traffic_body *body;

	(void)state;
	OPEN(2);
	long_flow(told.c, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		OK(announce(told.c, 0, i, &body));
		come(told.c, 0, i, body);
	}
	assert_int_equal(traffic_bodies_lent(told.bodies), 0);
	assert_true(traffic_bodies_mapped(told.bodies) <= UINT64_C(8) << 20);
	close_all();
}

/* Not the one that has taken in more so far, nor the one that asks last. */
static void who_announces_most_fails(void **state)
{
	struct traffic_body *bodies[3];
	struct traffic_comm *other;

	(void)state;
	OPEN(2);
	OK(open_more(2, &other));
	for (uint16_t i = 0; i < 2; i++) {
		long_flow(told.c, i);
		long_flow(other, i);
	}
	for (uint64_t i = 0; i < 10; i++) {
		OK(announce(told.c, 0, i, &bodies[0]));
		come(told.c, 0, i, bodies[0]);
	}
	OK(announce(other, 0, 0, &bodies[1]));
	OK(announce(other, 1, 0, &bodies[2]));
	OK(announce(told.c, 0, 10, &bodies[0]));
	assert_non_null(strstr(told.failed, "for this communicator"));
	traffic_comm_end(other);
	traffic_body_unref(bodies[1]); /* as when its worker is gone */
	traffic_body_unref(bodies[2]);
	come(told.c, 0, 10, bodies[0]);
	OK(announce(told.c, 0, 11, &bodies[0]));
	come(told.c, 0, 11, bodies[0]);
	assert_int_equal(traffic_bodies_lent(told.bodies), 0);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nccl_has_no_more_channels),
		cmocka_unit_test(messages_are_few_enough_to_count),
		cmocka_unit_test(receives_are_posted_a_few_ahead),
		cmocka_unit_test(a_body_that_is_wrong_is_given_back),
		cmocka_unit_test(a_connection_does_one_op_after_the_other),
		cmocka_unit_test(ops_are_not_far_in_the_future),
		cmocka_unit_test(neighbours_are_those_of_the_algorithm),
		cmocka_unit_test(ops_that_nobody_calls_have_a_bound),
		cmocka_unit_test(bodies_that_nobody_calls_for_have_a_bound),
		cmocka_unit_test(messages_that_nobody_receives_have_a_bound),
		cmocka_unit_test(what_is_through_is_forgotten),
		cmocka_unit_test(who_has_most_fails),
		cmocka_unit_test(a_body_counts_before_it_has_come),
		cmocka_unit_test(what_has_come_and_is_used_counts_no_more),
		cmocka_unit_test(who_announces_most_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
