/* Full mode: NCCL's own messages: their flows, what is due and when, what is wrong with them, and
 * workers that die in the middle. */
#include "full-world.h"

#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"

#define N_VIRTUAL ((N_RANKS - N_REAL) * N_SLICES) /* messages that begin at virtual ranks */
#define BODY_BYTES (4u << 20)                     /* two are more than a link takes at once */

static void send_message(uint64_t index, bool is_payload)
{
	uint8_t body[512];

	memset(body, (int)index + 1, sizeof(body));
	send_head(1, WIRE_MESSAGE, index, body, is_payload ? sizeof(body) : 0);
}

/* Message j that enters is what left 6 hops before; the first of them begin at virtual ranks. */
static void an_allreduce(const char *link, const char *exchange)
{
	bool is_payload = strcmp(exchange, "payload") == 0;
	char out[128], more[160];

	snprintf(out, sizeof(out), "%s/out-%s-%s", dir, link, exchange);
	snprintf(more, sizeof(more), "--out %s", out);
	start_comm(link, exchange, more);
	send_flow(0); /* NCCL's proxies may be there before the stream */
	send_flow(1);
	arrive(COUNT);
	for (uint64_t i = 0; i < N_MESSAGES; i++) {
		send_message(i, is_payload);
		send_head(0, WIRE_WANT, i, NULL, 0);
	}
	assert_true(fakes_pump(f, N_REAL, all_came, NULL));
	if (f[0].n[WIRE_ABORT])
		fail_msg("aborted: %s", f[0].abort.text);
	assert_false(came[0].is_wrong);
	assert_int_equal(came[0].n, N_MESSAGES);
	assert_int_equal(came[0].n_identity, N_VIRTUAL);
	for (unsigned i = 0; i < N_MESSAGES; i++) {
		assert_int_equal(came[0].is_identity[i], i < N_VIRTUAL);
		if (is_payload && i >= N_VIRTUAL)
			assert_int_equal(came[0].first[i], i - N_VIRTUAL + 1);
	}
	assert_true(f[0].has_release && came[0].at_ns[0] >= f[0].release.start_ns);
	if (is_payload)
		assert_true(came[0].bytes >= (N_MESSAGES - N_VIRTUAL) * 512);
	finish();
	assert_int_equal(f[0].n[WIRE_ABORT] + f[1].n[WIRE_ABORT], 0);
	assert_non_null(strstr(status(), "\"arrived\": 28, \"sent\": 28"));
	stop();
	is_noted(out, "NCCL took: AllReduce ring Simple, 1 channel (1 op)\n");
	is_noted(out,
		 is_payload
			 ? "NCCL's messages: 28 from real ranks (14 KiB), 28 to them, 12 identity"
			 : "NCCL's messages: 28 from real ranks, 28 to them, 12 identity");
}

static void messages_go_as_the_ring_says(void **state)
{
	(void)state;
	an_allreduce("shm", "messages");
}

static void bodies_come_back_as_they_went(void **state)
{
	(void)state;
	an_allreduce("shm", "payload");
}

static void bodies_come_back_over_tcp(void **state)
{
	(void)state;
	an_allreduce("tcp", "payload");
}

static void no_message_comes_before_it_is_due(void **state)
{
	double ns;

	(void)state;
	start_comm("shm", "messages", "--model ring");
	send_flow(0);
	send_flow(1);
	arrive(64 << 20); /* milliseconds */
	for (uint64_t i = 0; i < N_MESSAGES; i++) {
		send_message(i, false);
		send_head(0, WIRE_WANT, i, NULL, 0);
	}
	assert_true(fakes_pump(f, N_REAL, all_came, NULL));
	assert_int_equal(came[0].n, N_MESSAGES);
	ns = (double)(f[0].release.end_ns - f[0].release.start_ns);
	assert_true(ns > 1e6);
	for (unsigned i = 0; i < N_MESSAGES; i++)
		assert_true((double)came[0].at_ns[i] + 1 >=
			    (double)f[0].release.start_ns + (i + 1) * ns / N_MESSAGES);
	finish();
	stop();
}

/* Of sends and receives, of @rank with @peer. */
static void send_direct(uint32_t rank, uint32_t peer, enum wire_type type, const void *body,
			uint64_t n)
{
	struct wire_hdr h;

	wire_hdr_init(&h, type, n);
	h.comm = f[0].ready[0].comm;
	h.seq = WIRE_SEQ_P2P;
	h.rank = rank;
	h.peer = peer;
	assert_int_equal(link_send_copy(f[rank / 2].link, &h, body), 0);
	link_progress(f[rank / 2].link);
}

static bool each_has_one(void *ctx)
{
	(void)ctx;
	return (came[0].n && came[1].n) || f[0].n[WIRE_ABORT];
}

/* Nodes of one rank; 0 and 2 are real, and swap messages; and each sends to itself's neighbour. */
static void a_send_to_a_real_rank_comes_there(void **state)
{
	static const uint32_t rank[N_REAL] = {0, 2};
	struct wire_flow flow = {.algorithm = WIRE_NCCL_DIRECT,
				 .protocol = PLUGIN_SIMPLE,
				 .n_channels = 1,
				 .n_messages = 1,
				 .message_bytes = 4096};
	uint8_t body[4096];

	(void)state;
	start_on("--gpus-per-node 1 --real 0,2", "tcp", "payload", "");
	for (uint32_t i = 0; i < N_REAL; i++) {
		tell_job(&f[i], NCCL);
		fake_init(&f[i], 7, 4, rank[i], rank[i]);
	}
	assert_true(fakes_got(f, N_REAL, WIRE_COMM_READY, 1));
	for (uint32_t i = 0; i < N_REAL; i++)
		fake_send(&f[i], WIRE_MEET, f[0].ready[0].comm, rank[i], 0, NULL, 0);
	assert_true(fakes_got(f, N_REAL, WIRE_LOCAL_ID, 1));
	for (uint32_t i = 0; i < N_REAL; i++) {
		uint32_t peer = rank[1 - i];
		const struct wire_p2p calls[] = {{peer, 1, sizeof(body)}, {peer, 0, sizeof(body)}};

		fake_arrive_p2p(&f[i], &f[i].ready[0], 0, calls, 2);
		for (flow.is_send = 0; flow.is_send < 2; flow.is_send++)
			send_direct(rank[i], peer, WIRE_FLOW, &flow, sizeof(flow));
		send_direct(rank[i], peer, WIRE_WANT, NULL, 0);
		memset(body, 0x40 + (int)i, sizeof(body));
		send_direct(rank[i], peer, WIRE_MESSAGE, body, sizeof(body));
	}
	assert_true(fakes_pump(f, N_REAL, each_has_one, NULL));
	if (f[0].n[WIRE_ABORT])
		fail_msg("aborted: %s", f[0].abort.text);
	for (uint32_t i = 0; i < N_REAL; i++) {
		assert_false(came[i].is_wrong);
		assert_int_equal(came[i].first[0], 0x41 - i);
		assert_int_equal(came[i].bytes, sizeof(body));
		assert_int_equal(came[i].n_identity, 0);
	}
	assert_true(fakes_ops_over(f, N_REAL));
	settle(0);
	settle(1);
	assert_int_equal(f[0].n[WIRE_ABORT] + f[1].n[WIRE_ABORT], 0);
	stop();
}

static void a_wrong_frame_ends_the_communicator(void **state)
{
	enum { NO_FLOW, WRONG_INDEX, TWICE, TOO_LONG, NO_PEER, NO_BODIES, N_WRONG };
	static const char *const why[N_WRONG] = {
		[NO_PEER] = "no message is to or from rank 8 of 8",
		[NO_BODIES] = "no bodies are exchanged",
	};

	(void)state;
	for (int what = 0; what < N_WRONG; what++) {
		struct wire_flow m = {.is_send = 1,
				      .algorithm = 1,
				      .n_channels = 1,
				      .n_messages = 1,
				      .message_bytes = 1};
		struct wire_hdr h;
		uint8_t body[8192] = {0};

		start_comm("shm", what == NO_BODIES ? "messages" : "payload", "");
		if (what != NO_FLOW)
			send_flow(1);
		if (what == TWICE)
			send_message(0, true);
		if (what == TOO_LONG) {
			send_head(1, WIRE_MESSAGE, 0, body, sizeof(body));
		} else if (what == NO_PEER) {
			wire_hdr_init(&h, WIRE_FLOW, sizeof(m));
			h.comm = f[0].ready[0].comm;
			h.rank = 1;
			h.peer = N_RANKS;
			assert_int_equal(link_send_copy(f[1].link, &h, &m), 0);
		} else {
			send_message(what == WRONG_INDEX ? 3 : 0, true);
		}
		aborted(N_REAL, why[what] ? why[what] : "channel 0");
		stop();
	}
}

static void a_message_without_an_id_ends_the_communicator(void **state)
{
	(void)state;
	start("shm", "messages", "");
	check_in();
	send_flow(1);
	aborted(N_REAL, "nboxd has made no id");
	stop();
}

static void in_gate_mode_a_flow_is_refused(void **state)
{
	(void)state;
	daemon_start_line(&d, "--nodes 4 --gpus-per-node 2 --real 0-1 --addr %s", address("shm"));
	for (uint32_t i = 0; i < N_REAL; i++)
		fake_connect(&f[i], d.addr, "");
	assert_true(fakes_got(f, N_REAL, WIRE_WELCOME, 1));
	assert_int_equal(f[0].welcome.nccl, NCCL_GATE);
	check_in();
	send_flow(1);
	send_head(0, WIRE_WANT, 0, NULL, 0);
	assert_true(fakes_got(f, N_REAL, WIRE_ERROR, 1));
	assert_non_null(strstr(f[1].error.text, "NCCL is not run at the virtual size here"));
	stop();
}

static void what_an_op_waits_for_is_said(void **state)
{
	(void)state;
	start_comm("shm", "messages", "");
	send_flow(0);
	send_flow(1);
	arrive(COUNT);
	for (uint64_t i = 0; i < N_MESSAGES; i++)
		send_head(0, WIRE_WANT, i, NULL, 0);
	/* nothing has left the real node */
	assert_true(fakes_pump(f, N_REAL, is_said,
			       (void *)(uintptr_t) "message 12 of 28 to rank 0 waits"));
	assert_true(fakes_pump(f, N_REAL, is_said, (void *)(uintptr_t) "is 0."));
	stop();
}

/* Rank 1 in the middle of a body, or rank 0 with bodies that it has not taken. */
static void a_worker_that_dies_leaves_nothing(void **state)
{
	uint8_t *body = calloc(1, BODY_BYTES);

	(void)state;
	assert_non_null(body);
	for (uint32_t dies = 0; dies < 2; dies++) {
		start_comm("tcp", "payload", "");
		send_flow_of(0, BODY_BYTES);
		send_flow_of(1, BODY_BYTES);
		arrive(COUNT);
		for (uint64_t i = 0; i < N_MESSAGES; i++)
			send_head(0, WIRE_WANT, i, NULL, 0);
		settle(0);
		for (uint64_t i = 0; i < N_VIRTUAL; i++) {
			send_head(1, WIRE_MESSAGE, i, body, BODY_BYTES);
			settle(1);
		}
		for (uint64_t i = N_VIRTUAL; i < N_VIRTUAL + 4; i++)
			queue_head(1, WIRE_MESSAGE, i, body, BODY_BYTES);
		link_progress(f[1].link); /* not all */
		if (dies == 0)
			settle(1);
		fake_close(&f[dies]);
		assert_true(fakes_got(f + 1 - dies, 1, WIRE_ABORT, 1));
		assert_non_null(strstr(f[1 - dies].abort.text, "vanished"));
		fake_connect(&f[2], d.addr, ""); /* nboxd goes on */
		assert_true(fakes_got(f + 2, 1, WIRE_WELCOME, 1));
		fake_close(&f[2]);
		stop();
	}
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_go_as_the_ring_says),
		cmocka_unit_test(bodies_come_back_as_they_went),
		cmocka_unit_test(bodies_come_back_over_tcp),
		cmocka_unit_test(no_message_comes_before_it_is_due),
		cmocka_unit_test(a_send_to_a_real_rank_comes_there),
		cmocka_unit_test(a_wrong_frame_ends_the_communicator),
		cmocka_unit_test(a_message_without_an_id_ends_the_communicator),
		cmocka_unit_test(in_gate_mode_a_flow_is_refused),
		cmocka_unit_test(what_an_op_waits_for_is_said),
		cmocka_unit_test(a_worker_that_dies_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
