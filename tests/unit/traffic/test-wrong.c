/* What real ranks and their NCCL may do wrong, what is said about it, and what is only unusual. */
#include "told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"
#include "wire/wire.h"

static void nodes_are_real_as_a_whole(void **state)
{
	(void)state;
	assert_int_equal(open_with(3, true), -EINVAL);
	assert_non_null(strstr(err.text, "real as a whole"));
	close_all();
}

static void what_was_not_said_is_refused(void **state)
{
	(void)state;
	OPEN(2);
	refused(want(3, 0, 5, 0), "op 3, channel 0, rank 0 <- 5: a receive of message 0");
	OPEN(2);
	refused(arrive(3, 0, 2, 0, 8, 0), "op 3, channel 0, rank 0 -> 2: message 0 has come");
}

static void flows_are_said_once_and_right(void **state)
{
	(void)state;
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	refused(flow(0, 1, 2, true, PLUGIN_RING, 10), "said before");
	OPEN(2);
	refused(flow(0, 2, 1, true, PLUGIN_RING, 10), "rank 2 is not a real one");
	OPEN(2);
	refused(flow(0, 1, 6, true, PLUGIN_RING, 10), "no such peer");
	OPEN(2);
	refused(flow(0, 1, 0, true, PLUGIN_RING, 10), "NCCL_NET_DISABLE_INTRA=1");
	OPEN(2);
	refused(flow(0, 1, 2, true, PLUGIN_RING, 0), "too many or none");
	OPEN(2);
	refused(flow(0, 1, 2, true, PLUGIN_PAT, 10), "PAT, which nbox does not play");
	OPEN(2);
	refused(flow(0, 1, 2, true, PLUGIN_NVLS_TREE, 10), "set NCCL_ALGO=Ring,Tree");
}

static void flows_fit_the_algorithm(void **state)
{
	(void)state;
	OPEN(2); /* the last node is before the first */
	refused(flow(0, 1, 4, true, PLUGIN_RING, 10), "node 0 sends to node 1, not 2");
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 11));
	refused(call(0, 0, COLL_ALLREDUCE, 0), "a multiple of 10");
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	refused(flow(0, 0, 5, false, PLUGIN_RING, 20), "all have the same");
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	refused(flow(0, 0, 3, true, PLUGIN_RING, 10), "on the same node");
	OPEN(2);
	traffic_comm_set_trees(told.c, 1);
	OK(flow(0, 1, 4, true, PLUGIN_TREE, 10));
	refused(call(0, 0, COLL_BROADCAST, 0), "called Broadcast");
	OPEN(2);
	OK(call(0, 0, COLL_ALLREDUCE, 0));
	refused(flow(0, 1, 2, true, PLUGIN_TREE, 10), "set NCCL_ALGO=Ring");
	OPEN(2);
	traffic_comm_set_trees(told.c, 1);
	OK(call(0, 0, COLL_ALLREDUCE, 0));
	refused(flow(0, 1, 2, true, PLUGIN_TREE, 10), "neighbours in tree 0 of 3 nodes");
	OPEN(2);
	OK(call(0, 0, COLL_ALLREDUCE, 0));
	refused(call(0, 0, COLL_ALLREDUCE, 0), "called before");
	OPEN(2);
	refused(call(0, 0, COLL_BROADCAST, 6), "none that there is");
}

static void messages_come_in_order_and_fit(void **state)
{
	(void)state;
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	OK(arrive(0, 1, 2, 0, 64, 0));
	refused(arrive(0, 1, 2, 2, 64, 0), "message 2 of 10 has come, after 1 others");
	OPEN(2);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	refused(arrive(0, 1, 2, 0, 65, 0), "65 bytes, and none more than 64");
	OPEN(2);
	OK(flow(0, 0, 5, false, PLUGIN_RING, 10));
	OK(want(0, 0, 5, 3));
	refused(want(0, 0, 5, 3), "posted again");
	OPEN(2);
	OK(flow(0, 0, 5, false, PLUGIN_RING, 10));
	refused(want(0, 0, 5, 10), "message 10 of 10");
	assert_int_equal(open_with(2, false), 0);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	refused(arrive(0, 1, 2, 0, 8, 0), "none are exchanged");
}

/* Kernels of LL do not wait for messages that are empty. */
static void what_comes_after_the_end_goes_at_once(void **state)
{
	struct traffic_counts counts;

	(void)state;
	OPEN(2);
	for (uint32_t r = 0; r < 2; r++)
		OK(call(0, r, COLL_ALLREDUCE, 0));
	OK(flow(0, 0, 5, false, PLUGIN_RING, 10));
	OK(want(0, 0, 5, 0));
	traffic_passed(told.c, 0, 0);
	assert_int_equal(traffic_advance(told.t, 1000), UINT64_MAX);
	assert_int_equal(told.n_sent, 1);
	OK(want(0, 0, 5, 1));
	assert_int_equal(traffic_advance(told.t, 2000), UINT64_MAX);
	assert_int_equal(told.n_sent, 2);
	traffic_passed(told.c, 1, 0);
	for (uint64_t i = 2; i < 10; i++)
		OK(want(0, 0, 5, i));
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	for (uint64_t i = 0; i < 5; i++)
		OK(arrive(0, 1, 2, i, 0, 0));
	traffic_advance(told.t, 3000);
	assert_int_equal(told.n_sent, 9);
	traffic_count(told.t, &counts);
	assert_int_equal(counts.n_late, 0);
	assert_int_equal(counts.n_never, 0);
	assert_int_equal(counts.n_flows, 2);
	assert_int_equal(counts.n_waiting, 1);
	traffic_comm_end(told.c);
	traffic_count(told.t, &counts);
	assert_int_equal(counts.n_never, 1 + 5);
	assert_int_equal(counts.n_flows, 0);
	assert_int_equal(counts.n_waiting, 0);
	close_all();
	OPEN(2); /* all of it comes after */
	for (uint32_t r = 0; r < 2; r++) {
		OK(call(0, r, COLL_ALLREDUCE, 0));
		traffic_passed(told.c, r, 0);
	}
	OK(flow(0, 0, 5, false, PLUGIN_RING, 1));
	OK(want(0, 0, 5, 0));
	OK(flow(0, 1, 2, true, PLUGIN_RING, 1));
	OK(arrive(0, 1, 2, 0, 8, 0));
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_identity, 1);
	assert_int_equal(told.bytes, 0);
	OK(flow(0, 1, 2, true, PLUGIN_RING, 1)); /* it was forgotten */
	close_all();
}

static void real_ranks_that_disagree_fail_when_their_data_meet(void **state)
{
	static const uint32_t node[] = {0, 1, 2, 3};
	struct bitmap real;

	(void)state;
	OPEN(2); /* tree 0 of four nodes: 0 above 2, and 2 above 1 and 3 */
	traffic_comm_end(told.c);
	OK(bitmap_init(&real, 4));
	bitmap_set(&real, 1);
	bitmap_set(&real, 3);
	OK(traffic_comm_make(told.t, 4, node, &real, NULL, &told.c, &err));
	bitmap_deinit(&real);
	traffic_comm_set_trees(told.c, 1);
	for (uint32_t r = 1; r < 4; r += 2) {
		OK(call(0, r, COLL_ALLREDUCE, 0));
		OK(flow(0, r, 2, true, PLUGIN_TREE, 2));
		OK(flow(0, r, 2, false, PLUGIN_TREE, 2));
		OK(want(0, r, 2, 0));
		OK(want(0, r, 2, 1));
		OK(arrive(0, r, 2, 0, 32, (unsigned char)r));
	}
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_sent, 2);
	assert_int_equal(told.first, 4);
	OK(arrive(0, 1, 2, 1, 32, 1));
	OK(arrive(0, 3, 2, 1, 16, 1));
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_sent, 2);
	assert_non_null(strstr(told.failed, "message 1: messages of 32 and of 16 bytes")
				? told.failed
				: strstr(told.failed, "message 1: messages of 16 and of 32 bytes"));
	close_all();
}

static void a_kernel_may_be_over_before_its_proxy_speaks(void **state)
{
	uint64_t p2p = WIRE_SEQ_P2P;
	char text[200];

	(void)state;
	OPEN(4);
	OK(call(p2p, 0, COLL_SENDRECV, 0));
	traffic_passed(told.c, 0, p2p);
	OK(call(p2p, 2, COLL_SENDRECV, 0));
	OK(flow(p2p, 2, 0, false, WIRE_NCCL_DIRECT, 1));
	OK(want(p2p, 2, 0, 0));
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_sent, 0);
	assert_string_equal(
		traffic_waits(told.c, text, sizeof(text)),
		"sends and receives 0, channel 0: message 0 of 1 to rank 2 waits for what "
		"rank 0 sends");
	OK(flow(p2p, 0, 2, true, WIRE_NCCL_DIRECT, 1));
	OK(arrive(p2p, 0, 2, 0, 16, 9));
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_sent, 1);
	assert_int_equal(told.first, 9);
	traffic_passed(told.c, 2, p2p);
	assert_string_equal(traffic_waits(told.c, text, sizeof(text)), "");
	/* all of it is forgotten: the same may be said again, as of an op that has passed */
	OK(flow(p2p, 0, 2, true, WIRE_NCCL_DIRECT, 1));
	close_all();
}

/* Rank 2's group has one end, which is not known before each of its calls has its other side. */
static void between_real_ranks_nothing_waits_for_a_group(void **state)
{
	struct traffic_counts counts;
	uint64_t p2p = WIRE_SEQ_P2P;

	(void)state;
	OPEN(4);
	OK(flow(p2p, 2, 0, false, WIRE_NCCL_DIRECT, 1));
	OK(flow(p2p, 2, 5, false, WIRE_NCCL_DIRECT, 1));
	OK(want(p2p, 2, 0, 0));
	OK(want(p2p, 2, 5, 0));
	OK(call(p2p, 0, COLL_SENDRECV, 0));
	OK(flow(p2p, 0, 2, true, WIRE_NCCL_DIRECT, 1));
	OK(arrive(p2p, 0, 2, 0, 16, 9));
	traffic_advance(told.t, 199); /* rank 0's end is 200 */
	assert_int_equal(told.n_sent, 0);
	traffic_advance(told.t, 200);
	assert_int_equal(told.n_sent, 1);
	assert_int_equal(told.first, 9);
	/* nor where the sender's group is no further, and then nothing is late */
	OK(flow(p2p + 1, 2, 0, false, WIRE_NCCL_DIRECT, 1));
	OK(want(p2p + 1, 2, 0, 0));
	OK(flow(p2p + 1, 0, 2, true, WIRE_NCCL_DIRECT, 1));
	OK(arrive(p2p + 1, 0, 2, 0, 16, 8));
	traffic_advance(told.t, 300);
	assert_int_equal(told.n_sent, 2);
	traffic_count(told.t, &counts);
	assert_int_equal(counts.n_late, 0);
	/* what a virtual rank sends waits for the call */
	OK(call(p2p, 2, COLL_SENDRECV, 0));
	traffic_advance(told.t, 300);
	assert_int_equal(told.n_sent, 3);
	close_all();
}

static void a_group_may_have_several_sends_to_one_rank(void **state)
{
	uint64_t p2p = WIRE_SEQ_P2P;

	(void)state;
	OPEN(4);
	OK(call(p2p, 0, COLL_SENDRECV, 0));
	OK(call(p2p, 2, COLL_SENDRECV, 0));
	for (int i = 0; i < 2; i++) { /* all are sent before one is received */
		OK(flow(p2p, 0, 2, true, WIRE_NCCL_DIRECT, 1));
		OK(arrive(p2p, 0, 2, 0, 16, (unsigned char)(7 + i)));
	}
	for (int i = 0; i < 2; i++) {
		OK(flow(p2p, 2, 0, false, WIRE_NCCL_DIRECT, 1));
		OK(want(p2p, 2, 0, 0));
		traffic_advance(told.t, 1000);
		assert_int_equal(told.n_sent, i + 1);
		assert_int_equal(told.first, 7 + i);
	}
	OK(flow(p2p, 0, 5, true, WIRE_NCCL_DIRECT, 2));
	OK(arrive(p2p, 0, 5, 0, 16, 7));
	refused(flow(p2p, 0, 5, true, WIRE_NCCL_DIRECT, 2), "said before");
}

static void what_nobody_needs_is_free_at_once(void **state)
{
	struct traffic_at at = {0, 1, 2, 0};
	struct traffic_body *body, *next;

	(void)state;
	OPEN(2);
	OK(call(0, 0, COLL_ALLREDUCE, 0));
	OK(flow(0, 1, 2, true, PLUGIN_RING, 10));
	for (uint64_t i = 0; i < 10; i++) { /* the last four end at virtual ranks */
		body = traffic_body_new(told.bodies, 64);
		OK(traffic_arrived(told.c, &at, i, body, &err));
		next = traffic_body_new(told.bodies, 64);
		assert_int_equal(next == body, i >= 6);
		traffic_body_unref(next);
	}
	close_all();
}

/* The k-th message sent is the k-th received, whatever the ops are called and when they end. */
static void a_connection_keeps_its_order(void **state)
{
	uint64_t p2p = WIRE_SEQ_P2P;

	(void)state;
	OPEN(4);
	OK(flow(p2p + 7, 0, 2, true, WIRE_NCCL_DIRECT, 2));
	OK(arrive(p2p + 7, 0, 2, 0, 16, 1));
	OK(arrive(p2p + 7, 0, 2, 1, 16, 2));
	OK(call(p2p + 1, 2, COLL_SENDRECV, 0));
	for (uint64_t i = 0; i < 2; i++) {
		OK(flow(p2p + i, 2, 0, false, WIRE_NCCL_DIRECT, 1));
		OK(want(p2p + i, 2, 0, 0));
		if (i == 1)
			assert_int_equal(traffic_advance(told.t, 150), 200);
		traffic_advance(told.t, i ? 200 : 150);
		assert_int_equal(told.n_sent, i + 1);
		assert_int_equal(told.first, i + 1);
	}
	close_all();
}

/* Which of a node's ranks sends on the ring shows in what they have sent before; or it is waited
 * for, for a second. */
static void a_reduce_to_a_real_root_finds_out_who_sends(void **state)
{
	static const uint32_t node[] = {0, 0, 0, 1};
	struct bitmap real;

	(void)state;
	OPEN(2); /* of two ranks: the receiver does not send: 1 is the root, and the last */
	OK(call(0, 0, COLL_REDUCE, 1));
	OK(flow(0, 0, 5, false, PLUGIN_RING, 1));
	OK(want(0, 0, 5, 0));
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_identity, 1);
	OK(call(1, 0, COLL_REDUCE, 0)); /* 0 is, so 1 sends */
	OK(flow(1, 0, 5, false, PLUGIN_RING, 1));
	OK(want(1, 0, 5, 0));
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_sent, 1);
	OK(flow(1, 1, 2, true, PLUGIN_RING, 1));
	OK(arrive(1, 1, 2, 0, 16, 3));
	traffic_advance(told.t, 1000);
	assert_int_equal(told.n_sent, 2);
	assert_int_equal(told.first, 3);
	traffic_comm_end(told.c);

	OK(bitmap_init(&real, 4));
	bitmap_set_range(&real, 0, 3);
	OK(traffic_comm_make(told.t, 4, node, &real, NULL, &told.c, &err));
	bitmap_deinit(&real);
	OK(call(0, 0, COLL_REDUCE, 1)); /* is it 1 or 2 that would send? 2 does */
	OK(flow(0, 0, 3, false, PLUGIN_RING, 1));
	OK(want(0, 0, 3, 0));
	assert_int_equal(traffic_advance(told.t, 1000), 1000000200);
	OK(flow(0, 2, 3, true, PLUGIN_RING, 1));
	assert_int_equal(traffic_advance(told.t, 1001000200), UINT64_MAX);
	assert_int_equal(told.n_sent, 2);
	OK(arrive(0, 2, 3, 0, 16, 4));
	assert_int_equal(traffic_advance(told.t, 1001000300), UINT64_MAX);
	assert_int_equal(told.first, 4);
	OK(call(1, 0, COLL_REDUCE, 2)); /* now it is known */
	OK(flow(1, 0, 3, false, PLUGIN_RING, 1));
	OK(want(1, 0, 3, 0));
	assert_int_equal(traffic_advance(told.t, 1001000300), UINT64_MAX);
	assert_int_equal(told.n_sent, 4);
	traffic_comm_end(told.c);

	OK(bitmap_init(&real, 4));
	bitmap_set_range(&real, 0, 3);
	OK(traffic_comm_make(told.t, 4, node, &real, NULL, &told.c, &err));
	bitmap_deinit(&real);
	for (uint64_t i = 0; i < 2;
	     i++) { /* nobody does: 1 is the one, and is known the next time */
		OK(call(i, 0, COLL_REDUCE, 1));
		OK(flow(i, 0, 3, false, PLUGIN_RING, 2));
		OK(want(i, 0, 3, 0));
		OK(want(i, 0, 3, 1));
		assert_int_equal(traffic_advance(told.t, 1000), i ? UINT64_MAX : 1000000150);
		assert_int_equal(traffic_advance(told.t, 1001000300), UINT64_MAX);
		assert_int_equal(told.n_sent, 6 + 2 * i);
	}
	refused(flow(0, 2, 3, true, PLUGIN_RING, 2), "message 1 went to rank 0 without it");
}

static void it_is_told_what_is_waited_for(void **state)
{
	struct traffic_counts counts;
	char text[200];

	(void)state;
	OPEN(2);
	OK(flow(4, 0, 5, false, PLUGIN_RING, 10));
	assert_non_null(strstr(traffic_waits(told.c, text, sizeof(text)), "the op's end"));
	OK(call(4, 0, COLL_ALLREDUCE, 0));
	assert_non_null(strstr(traffic_waits(told.c, text, sizeof(text)), "NCCL has not posted"));
	for (uint64_t i = 0; i < 10; i++)
		OK(want(4, 0, 5, i));
	assert_non_null(strstr(traffic_waits(told.c, text, sizeof(text)), "its time"));
	assert_int_equal(traffic_advance(told.t, 100), 110);
	assert_int_equal(traffic_advance(told.t, 1000), UINT64_MAX);
	assert_int_equal(told.n_identity, 4); /* the hops of four virtual ranks */
	assert_int_equal(told.bytes, 32);     /* 96 bytes over 6 ranks, in LL */
	assert_non_null(
		strstr(traffic_waits(told.c, text, sizeof(text)),
		       "message 4 of 10 to rank 0 waits for message 0 of a rank of node 0"));
	OK(flow(4, 1, 2, true, PLUGIN_RING, 10));
	assert_string_equal(
		traffic_waits(told.c, text, sizeof(text)),
		"op 4, channel 0: message 4 of 10 to rank 0 waits for message 0 from rank 1");
	OK(arrive(4, 1, 2, 0, 0, 0));
	assert_int_equal(traffic_advance(told.t, 2000), UINT64_MAX);
	traffic_count(told.t, &counts);
	assert_int_equal(counts.n_sent, 5);
	assert_int_equal(counts.n_late, 1); /* those before were there in time */
	assert_int_equal(counts.late_ns, 2000 - 150);
	traffic_comm_end(told.c);
	assert_int_equal(traffic_advance(told.t, 3000), UINT64_MAX);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_real_as_a_whole),
		cmocka_unit_test(what_was_not_said_is_refused),
		cmocka_unit_test(flows_are_said_once_and_right),
		cmocka_unit_test(flows_fit_the_algorithm),
		cmocka_unit_test(messages_come_in_order_and_fit),
		cmocka_unit_test(what_comes_after_the_end_goes_at_once),
		cmocka_unit_test(real_ranks_that_disagree_fail_when_their_data_meet),
		cmocka_unit_test(a_kernel_may_be_over_before_its_proxy_speaks),
		cmocka_unit_test(what_nobody_needs_is_free_at_once),
		cmocka_unit_test(a_connection_keeps_its_order),
		cmocka_unit_test(between_real_ranks_nothing_waits_for_a_group),
		cmocka_unit_test(a_group_may_have_several_sends_to_one_rank),
		cmocka_unit_test(a_reduce_to_a_real_root_finds_out_who_sends),
		cmocka_unit_test(it_is_told_what_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
