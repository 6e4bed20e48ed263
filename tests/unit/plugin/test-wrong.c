/* Answers of nboxd, requests and events that are wrong, and communicators that fail. */
#include "cmocka-all.h"

#include <errno.h>
#include <string.h>

#include "play.h"

static void test_wrong_answers(void **state)
{
	struct connection in;
	struct proxy_op op;
	struct sent_frame want, f;
	struct err err = {""};
	int bytes;

	(void)state;
	play_begin(5, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, false);
	proxy_start(&op, &in, start_all_reduce(7, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0, PEER, 3, 2);
	play_post(&op, 1 << 20);
	next_frame(WIRE_FLOW);
	want = next_frame(WIRE_WANT);
	f = want;
	f.h.index = 1;
	assert_int_equal(play_answer(&f, 100, 0, &err), -EPROTO);
	assert_non_null(
		strstr(err.text, "op 7: message 1 from rank 9 on channel 0: NCCL has not posted"));
	f = want;
	f.h.lane = 2;
	assert_int_equal(play_answer(&f, 0, 0, &err), -EPROTO);
	f = want;
	f.h.seq = 8;
	assert_int_equal(play_answer(&f, 0, 0, &err), -EPROTO);
	f = want;
	f.h.peer = PEER + 1;
	assert_int_equal(play_answer(&f, 0, WIRE_MESSAGE_IDENTITY, &err), -EPROTO);
	play_post(&op, 4096);
	f = next_frame(WIRE_WANT);
	assert_int_equal(play_answer(&f, 4097, 0, &err), -EPROTO);
	assert_non_null(strstr(err.text, "it has 4097 bytes, NCCL's buffer 4096"));
	/* all of that has spoiled nothing; the later one may come first, and be too long where its
	 * bytes mean nothing */
	memset(proxy_buffer(&op, 1), 0x5b, 4096 + 64);
	play_answer_well(&f, 4096 + 64, WIRE_MESSAGE_IDENTITY);
	check_data(proxy_buffer(&op, 1), 4096, PLUGIN_SIMPLE, false, 0);
	assert_int_equal(proxy_buffer(&op, 1)[4096], 0x5b);
	assert_false(proxy_test(&op, &bytes));
	play_answer_well(&want, 5, 0);
	assert_true(proxy_test(&op, &bytes) && bytes == 5);
	assert_true(proxy_test(&op, &bytes) && bytes == 4096);
	assert_int_equal(play_answer(&f, 10, 0, &err), -EPROTO); /* a second time */
	proxy_stop(&op);
	connection_close(&in);
	play_end();
}

static void test_wrong_messages(void **state)
{
	struct connection out, in;
	struct nccl_call event;
	struct proxy_op op;
	bool is_posted;
	void *call;

	(void)state;
	play_begin(5, EXCHANGE_MESSAGES);
	connection_open(&out, &nccl, true, false);
	call = start_all_reduce(0, PLUGIN_SIMPLE);
	proxy_start(&op, &out, call, PLUGIN_SIMPLE, 0, PEER, 2, 2);
	/* a message is left out */
	op.posted = op.done = 1;
	play_post(&op, 10);
	assert_non_null(strstr(session_failure(), "the next one is 0"));
	assert_true(proxy_test(&op, NULL));
	connection_close(&out);
	play_end();

	/* what NCCL runs unasked fails the communicator, and ends */
	play_begin(5, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, false);
	event = all_reduce_event("RING", "LL", "ncclFloat32");
	proxy_start(&op, &in, nccl_start_call(&nccl, &event), PLUGIN_LL, 0, PEER, 1, 1);
	assert_non_null(strstr(session_failure(), "nbox has not called"));
	play_post(&op, 1 << 16);
	no_frame();
	assert_true(proxy_test(&op, NULL));
	check_flags(proxy_buffer(&op, 0), 1 << 16, PLUGIN_LL, 0);
	proxy_stop(&op);
	connection_close(&in);
	play_end();

	play_begin(5, EXCHANGE_MESSAGES);
	connection_open(&out, &nccl, true, false);
	/* an op of which NCCL's profiler has not told */
	proxy_start(&op, &out, NULL, PLUGIN_SIMPLE, 0, PEER, 2, 2);
	assert_non_null(op.handle); /* NCCL 2.27 needs one */
	assert_non_null(strstr(session_failure(), "does not say in which call"));
	assert_int_not_equal(proxy_post(&op, 10, &is_posted), PLUGIN_OK);
	assert_non_null(strstr(nccl.logged, "NCCL_PROFILER_PLUGIN"));
	connection_close(&out);
	play_end();

	play_begin(5, EXCHANGE_MESSAGES);
	connection_open(&out, &nccl, true, false);
	call = start_all_reduce(0, PLUGIN_SIMPLE);
	proxy_start(&op, &out, call, PLUGIN_SIMPLE, 0, N_RANKS, 2, 2);
	assert_non_null(strstr(session_failure(), "rank 16"));
	play_post(&op, 10);
	assert_true(proxy_test(&op, NULL));
	connection_close(&out);
	play_end();
}

static void test_nccl_2_27_lacks_events(void **state)
{
	struct connection out;
	struct proxy_op op;
	bool is_posted;

	(void)state;
	play_begin(4, EXCHANGE_MESSAGES);
	connection_open(&out, &nccl, true, false);
	proxy_start(&op, &out, start_all_reduce(0, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0, PEER, 2, 2);
	op.is_untold = true;
	assert_int_not_equal(proxy_post(&op, 10, &is_posted), PLUGIN_OK);
	assert_non_null(strstr(nccl.logged, "NCCL_NET_SHARED_BUFFERS=0"));
	connection_close(&out);
	play_end();
}

/* NCCL 2.23 to 2.25 with another profiler, or with events that are not of the message. */
static void test_nothing_is_told(void **state)
{
	struct connection out, in;
	struct proxy_op sends, receives;
	void *call, *request = NULL;

	(void)state;
	for (int version = 1; version <= 2; version++) {
		play_begin(version, EXCHANGE_MESSAGES);
		connection_open(&out, &nccl, true, false);
		connection_open(&in, &nccl, false, false);
		call = start_all_reduce(0, PLUGIN_SIMPLE);
		proxy_start(&sends, &out, call, PLUGIN_SIMPLE, 0, PEER, 2, 2);
		proxy_start(&receives, &in, call, PLUGIN_SIMPLE, 0, PEER, 2, 2);
		play_post(&receives, 1 << 20);
		/* what was told is of that one alone */
		assert_int_not_equal(ncclNetPlugin_v9.isend(out.end, out.buffer[PLUGIN_SIMPLE], 9,
							    0, out.registered[PLUGIN_SIMPLE],
							    &request),
				     PLUGIN_OK);
		assert_null(request);
		assert_non_null(strstr(nccl.logged, "NCCL_PROFILER_PLUGIN"));
		assert_string_equal(session_failure(), "");
		sends.posted = 1; /* a message is left out */
		play_post(&sends, 9);
		assert_non_null(strstr(session_failure(), "sends message 1 of 2"));
		connection_close(&out);
		connection_close(&in);
		play_end();
	}
}

static void test_refused_algorithms(void **state)
{
	struct plugin_call call = all_reduce(0, ncclFloat32, ncclSum);
	struct nccl_call event = all_reduce_event("PAT", "SIMPLE", "ncclFloat32");
	struct err err;

	(void)state;
	play_begin(4, EXCHANGE_MESSAGES);
	assert_int_equal(plugin_expect(comm, &call, &err), 0);
	nccl_start_call(&nccl, &event);
	assert_non_null(strstr(session_failure(), "algorithm PAT"));
	assert_true(comm_error(comm) != 0);
	play_end();
}

/* A communicator that fails in the middle: everything is done at once, and kernels that wait for
 * flags get them; what the link has is NCCL's again when the link says so. */
static void check_failure(bool is_lost)
{
	struct connection out, in, late;
	struct proxy_op sends, receives, lates;
	struct sent_frame f;
	int bytes;
	void *call;

	play_begin(5, EXCHANGE_PAYLOAD);
	connection_open(&out, &nccl, true, false);
	connection_open(&in, &nccl, false, false);
	connection_open(&late, &nccl, false, false);
	call = start_all_reduce(0, PLUGIN_LL128);
	proxy_start(&sends, &out, call, PLUGIN_LL128, 0, PEER, 8, 1);
	proxy_start(&receives, &in, call, PLUGIN_LL128, 0, PEER, 8, 1);
	proxy_start(&lates, &late, start_all_reduce(1, PLUGIN_LL), PLUGIN_LL, 1, PEER, 8, 1);
	play_post(&sends, 4800);
	next_frame(WIRE_FLOW);
	f = next_frame(WIRE_MESSAGE);
	for (int i = 0; i < 4; i++)
		play_post(&receives, 614400);
	if (is_lost)
		session_lose();
	comm_fail(comm, -1, "a rank is gone");
	events()->failed(comm);
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(proxy_test(&receives, &bytes));
		check_flags(proxy_buffer(&receives, i), 614400, PLUGIN_LL128,
			    proxy_step(&receives, i));
		check_data(proxy_buffer(&receives, i), 614400, PLUGIN_LL128, false, 0);
	}
	assert_int_equal(proxy_test(&sends, &bytes), is_lost);
	if (!is_lost)
		events()->sent(f.cookie);
	assert_true(is_lost || proxy_test(&sends, &bytes));
	/* NCCL goes on, and gets to its end */
	for (uint64_t i = 0; i < 8; i++) {
		play_post(&lates, 65536);
		assert_true(proxy_test(&lates, &bytes));
		check_flags(proxy_buffer(&lates, i), 65536, PLUGIN_LL, proxy_step(&lates, i));
	}
	play_post(&sends, 128);
	assert_true(proxy_test(&sends, &bytes));
	proxy_stop(&sends);
	proxy_stop(&receives);
	proxy_stop(&lates);
	connection_close(&out);
	connection_close(&in);
	connection_close(&late);
	play_end();
}

static void test_failure(void **state)
{
	(void)state;
	check_failure(false);
	check_failure(true);
}

/* A body is landing while the communicator fails: the buffer is NCCL's again when it has come. */
static void test_failure_while_landing(void **state)
{
	struct connection in;
	struct proxy_op op;
	struct sent_frame want;
	struct wire_hdr h;
	struct err err;
	int bytes;
	void *at;

	(void)state;
	play_begin(5, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, false);
	proxy_start(&op, &in, start_all_reduce(0, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0, PEER, 8, 2);
	play_post(&op, 1 << 20);
	next_frame(WIRE_FLOW);
	want = next_frame(WIRE_WANT);
	h = want.h;
	h.type = WIRE_MESSAGE;
	h.body_bytes = 5000;
	at = events()->body_for(comm, &h);
	assert_ptr_equal(at, proxy_buffer(&op, 0));
	comm_fail(comm, -1, "a rank is gone");
	events()->failed(comm);
	assert_false(proxy_test(&op, &bytes));
	memset(at, 0x77, 5000);
	assert_int_equal(events()->received(NULL, &h, &err), 0); /* COMM_FREE has gone out */
	assert_true(proxy_test(&op, &bytes));
	check_data(at, 1 << 20, PLUGIN_SIMPLE, false, 0);
	proxy_stop(&op);
	connection_close(&in);
	play_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_answers),
		cmocka_unit_test(test_wrong_messages),
		cmocka_unit_test(test_nccl_2_27_lacks_events),
		cmocka_unit_test(test_nothing_is_told),
		cmocka_unit_test(test_refused_algorithms),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_failure_while_landing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
