/* Plays NCCL against shim/plugin: its devices, handles and messages, in the words of six versions.
 */
#include "cmocka-all.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "play.h"

static void test_not_started(void **state)
{
	void *library = dlopen(getenv("LIBNBOX"), RTLD_NOW | RTLD_LOCAL);
	static const char *const nets[] = {"ncclNetPlugin_v8", "ncclNetPlugin_v9",
					   "ncclNetPlugin_v10"};
	struct net_plugin_v11 *v11;
	struct profiler_plugin_v3 *v3;
	struct profiler_plugin_v5 *v6;
	void *context = NULL;
	int mask = 0;

	(void)state;
	assert_non_null(library);
	for (size_t i = 0; i < 3; i++) {
		struct net_plugin_v10 *net = dlsym(library, nets[i]);

		assert_non_null(net);
		assert_string_equal(net->name, "nbox");
		assert_int_not_equal(net->init(NULL, NULL), PLUGIN_OK);
	}
	v11 = dlsym(library, "ncclNetPlugin_v11");
	v3 = dlsym(library, "ncclProfiler_v3");
	v6 = dlsym(library, "ncclProfiler_v6");
	assert_true(v11 && v3 && v6);
	assert_int_not_equal(v11->init(&context, 1, NULL, NULL, NULL), PLUGIN_OK);
	assert_int_not_equal(v3->init(&context, &mask), PLUGIN_OK);
	assert_null(context);
	assert_int_not_equal(v6->init(&context, 1, &mask, "", 1, 2, 0, NULL), PLUGIN_OK);
	assert_true(!context && !mask);
}

static void test_devices(void **state)
{
	struct net_properties_v11 p = {0};
	struct net_properties_v8 old = {0};
	int n = 0;

	(void)state;
	assert_int_equal(ncclNetPlugin_v11.devices(&n), PLUGIN_OK);
	assert_int_equal(n, 2);
	assert_int_equal(ncclNetPlugin_v11.get_properties(0, &p), PLUGIN_OK);
	assert_string_equal(p.v9.name, "mlx5_0");
	assert_string_equal(p.v9.pci_path, "/sys/devices/pci0000:00/0000:00:01.0");
	assert_true(p.v9.speed_mbps == 400000 && p.v9.memory == NET_MEMORY_HOST &&
		    p.v9.n_receives_max == 1 && p.n_requests_max == 1);
	assert_true(p.v9.n_comms_max == 65536 && p.v9.p2p_bytes_max == NET_BYTES_MAX);
	assert_int_equal(ncclNetPlugin_v10.get_properties(1, &p.v9), PLUGIN_OK);
	assert_string_equal(p.v9.name, "eth1");
	assert_int_equal(ncclNetPlugin_v8.get_properties(1, &old), PLUGIN_OK);
	assert_string_equal(old.name, "eth1");
	assert_true(old.speed_mbps == 25000 && old.memory == NET_MEMORY_HOST &&
		    old.n_receives_max == 1 && old.n_comms_max == 65536 && !old.offload);
	assert_true(!p.v9.pci_path && p.v9.fused.devices[0] == 1);
	assert_int_not_equal(ncclNetPlugin_v11.get_properties(2, &p), PLUGIN_OK);
}

static void test_handles(void **state)
{
	unsigned char handle[NET_HANDLE_BYTES], other[NET_HANDLE_BYTES];
	struct bootstrap_handle virtual = {.head = BOOTSTRAP_HANDLE_HEAD, .magic = 7};
	void *listener, *end_ = NULL, *none = NULL;
	bool is_zero = true;

	(void)state;
	play_begin(5, EXCHANGE_MESSAGES);
	assert_int_equal(ncclNetPlugin_v11.listen(nccl.net, 0, handle, &listener), PLUGIN_OK);
	for (size_t i = 4; i < sizeof(handle); i++)
		is_zero = is_zero && !handle[i];
	assert_false(is_zero);
	assert_int_equal(ncclNetPlugin_v11.accept(listener, &end_, NULL), PLUGIN_OK);
	assert_non_null(end_);
	assert_int_not_equal(ncclNetPlugin_v11.accept(listener, &none, NULL), PLUGIN_OK);
	ncclNetPlugin_v11.close_listener(listener);
	ncclNetPlugin_v11.close_receiver(end_);
	assert_int_equal(ncclNetPlugin_v11.connect(nccl.net, 0, handle, &end_, NULL), PLUGIN_OK);
	ncclNetPlugin_v11.close_sender(end_);
	memset(other, 0, sizeof(other));
	memcpy(other, &virtual, sizeof(virtual));
	assert_int_equal(ncclNetPlugin_v11.connect(nccl.net, 0, other, &end_, NULL), PLUGIN_OK);
	ncclNetPlugin_v11.close_sender(end_);
	memset(other, 0x11, sizeof(other));
	assert_int_not_equal(ncclNetPlugin_v11.connect(nccl.net, 0, other, &none, NULL), PLUGIN_OK);
	assert_null(none);
	assert_non_null(strstr(nccl.logged, "NCCL_NET=nbox"));
	play_end();
}

/* FLOW, WANT and MESSAGE in each version of the profiler. */
static void check_frames(int version)
{
	struct connection out, in;
	struct proxy_op sends, receives;
	struct sent_frame f;
	void *call;
	int bytes;

	play_begin(version, EXCHANGE_PAYLOAD);
	connection_open(&out, &nccl, true, false);
	connection_open(&in, &nccl, false, false);
	call = start_all_reduce(4, PLUGIN_SIMPLE);
	proxy_start(&sends, &out, call, PLUGIN_SIMPLE, 1, PEER, 5, 2);
	proxy_start(&receives, &in, call, PLUGIN_SIMPLE, 1, PEER + 1, 5, 2);
	no_frame();
	play_post(&sends, 1000);
	f = next_frame(WIRE_FLOW);
	assert_true(f.flow.is_send == 1 && f.flow.algorithm == PLUGIN_RING &&
		    f.flow.protocol == PLUGIN_SIMPLE && f.flow.n_channels == 2);
	assert_true(f.flow.n_messages == 5 && f.flow.message_bytes == 1 << 20);
	assert_true(f.h.seq == 4 && f.h.peer == PEER && f.h.lane == 1);
	f = next_frame(WIRE_MESSAGE);
	assert_true(f.h.index == 0 && f.h.body_bytes == 1000 && f.is_lent);
	assert_ptr_equal(f.body, out.buffer[PLUGIN_SIMPLE]);
	assert_false(proxy_test(&sends, &bytes));
	events()->sent(f.cookie);
	assert_true(proxy_test(&sends, &bytes));
	assert_int_equal(bytes, 1000);
	play_post(&sends, 0); /* nothing to lend */
	f = next_frame(WIRE_MESSAGE);
	assert_true(f.h.index == 1 && f.h.body_bytes == 0 && !f.is_lent);
	assert_true(proxy_test(&sends, &bytes));

	for (int i = 0; i < 3; i++)
		play_post(&receives, 1 << 20);
	f = next_frame(WIRE_FLOW);
	assert_true(!f.flow.is_send && f.flow.message_bytes == 1 << 20 && f.h.peer == PEER + 1);
	for (uint64_t i = 0; i < 3; i++) {
		f = next_frame(WIRE_WANT);
		assert_true(f.h.index == i && f.h.seq == 4 && f.h.lane == 1);
		assert_false(proxy_test(&receives, &bytes));
		play_answer_well(&f, 777 + i, 0);
		assert_true(proxy_test(&receives, &bytes));
		assert_int_equal(bytes, 777 + i);
		check_data(proxy_buffer(&receives, i), 777 + i, PLUGIN_SIMPLE, true, 0);
		assert_int_equal(proxy_buffer(&receives, i)[777 + i], 0x5a);
	}
	no_frame();
	proxy_stop(&sends);
	proxy_stop(&receives);
	connection_close(&out);
	connection_close(&in);
	assert_string_equal(session_failure(), "");
	play_end();
}

static void test_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sent_bytes); i++)
		sent_bytes[i] = (unsigned char)(i * 31 + 7);
	for (int version = 1; version <= 6; version++)
		check_frames(version);
}

/* Ops of all protocols after each other on one connection: flags follow the connection's steps,
 * which begin an op at a multiple of four where its messages have two. */
static void check_steps_and_flags(int version)
{
	struct connection in;
	uint64_t seed = 12345;

	play_begin(version, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, false);
	for (uint64_t seq = 0; seq < 300; seq++) {
		int protocol, n, slices, bytes;
		struct proxy_op op;
		void *call;

		seed = seed * 6364136223846793005 + 1442695040888963407;
		protocol = (int)(seed >> 40) % 3;
		slices = protocol == PLUGIN_SIMPLE ? 2 : 1;
		n = ((int)(seed >> 50) % 7 + 1) * slices;
		call = start_all_reduce(seq, protocol);
		proxy_start(&op, &in, call, protocol, 0, PEER, n, slices);
		for (int i = 0; i < n; i++) {
			size_t size = in.bytes[protocol] / N_SLOTS * (size_t)slices;
			size_t line = protocol == PLUGIN_LL ? 16 : 128;
			size_t got = (seed >> i) % 40 * line;
			bool is_identity = (seed >> i) % 3 == 0;
			struct sent_frame f;

			play_post(&op, size);
			if (i == 0)
				next_frame(WIRE_FLOW);
			f = next_frame(WIRE_WANT);
			play_answer_well(&f, got, is_identity ? WIRE_MESSAGE_IDENTITY : 0);
			check_flags(proxy_buffer(&op, (uint64_t)i), is_identity ? size : got,
				    protocol, proxy_step(&op, (uint64_t)i));
			check_data(proxy_buffer(&op, (uint64_t)i), is_identity ? size : got,
				   protocol, !is_identity, 0);
			assert_true(proxy_test(&op, &bytes));
		}
		proxy_stop(&op);
		events()->passed(comm, seq);
	}
	connection_close(&in);
	assert_string_equal(session_failure(), "");
	play_end();
}

static void test_steps_and_flags(void **state)
{
	(void)state;
	check_steps_and_flags(1);
	check_steps_and_flags(2);
	check_steps_and_flags(5);
}

/* Sends and receives: all connections share one buffer of Simple. */
static void test_direct(void **state)
{
	struct plugin_call call = {.kind = COLL_SENDRECV,
				   .recv = recv_buffer,
				   .count = 9,
				   .dtype = ncclInt8,
				   .root = PEER,
				   .seq = 3 | WIRE_SEQ_P2P};
	struct nccl_call event = {"Recv", NULL, recv_buffer, 9, PEER, "ncclInt8", NULL, NULL, 1};
	struct connection in;
	struct proxy_op op;
	struct sent_frame f;
	struct err err;
	int bytes;

	(void)state;
	play_begin(6, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, true);
	assert_int_equal(plugin_expect(comm, &call, &err), 0);
	proxy_start(&op, &in, nccl_start_call(&nccl, &event), PLUGIN_SIMPLE, 4, PEER, 1, 1);
	play_post(&op, 9);
	f = next_frame(WIRE_FLOW);
	assert_true(f.flow.algorithm == WIRE_NCCL_DIRECT && f.flow.protocol == PLUGIN_SIMPLE &&
		    f.flow.message_bytes == 9);
	f = next_frame(WIRE_WANT);
	assert_true(f.h.seq == (3 | WIRE_SEQ_P2P) && f.h.lane == 4);
	play_answer_well(&f, 9, 0);
	assert_true(proxy_test(&op, &bytes));
	check_data(proxy_buffer(&op, 0), 9, PLUGIN_SIMPLE, true, 0);
	proxy_stop(&op);
	connection_close(&in);
	play_end();
}

static void test_pool_is_full(void **state)
{
	struct connection in;
	struct proxy_op op;
	struct sent_frame f;
	bool is_posted;
	size_t n_notes;
	int bytes;

	(void)state;
	play_begin(5, EXCHANGE_MESSAGES);
	connection_open(&in, &nccl, false, false);
	proxy_start(&op, &in, start_all_reduce(0, PLUGIN_LL), PLUGIN_LL, 0, PEER, 40, 1);
	n_notes = notes_posted();
	for (int i = 0; i < 32; i++) {
		assert_int_equal(proxy_post(&op, 1 << 16, &is_posted), PLUGIN_OK);
		assert_true(is_posted);
	}
	assert_int_equal(notes_posted(), n_notes + 1); /* for all of them */
	for (int i = 0; i < 3; i++) {                  /* NCCL tries again and again */
		assert_int_equal(proxy_post(&op, 1 << 16, &is_posted), PLUGIN_OK);
		assert_false(is_posted);
	}
	notes_run();
	next_frame(WIRE_FLOW);
	f = next_frame(WIRE_WANT);
	play_answer_well(&f, 0, 0);
	assert_int_equal(f.h.index, 0);
	op.posted = 32;
	assert_false(proxy_test(&op, &bytes)); /* of message 24: not done */
	session_lose();
	comm_fail(comm, -1, "lost");
	events()->failed(comm);
	connection_close(&in);
	play_end();
}

/* All messages of a buffer go from where it lies, and it is registered with the link once. */
static void test_registered_once(void **state)
{
	struct connection out[2];
	struct proxy_op sends;
	struct sent_frame f;
	int bytes;

	(void)state;
	play_begin(6, EXCHANGE_PAYLOAD);
	session_register(0);
	for (uint64_t c = 0; c < 2; c++) {
		connection_open(&out[c], &nccl, true, false);
		proxy_start(&sends, &out[c], start_all_reduce(c, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0,
			    PEER, 6, 2);
		assert_int_equal(session_registered(), c); /* not before something is sent */
		for (int i = 0; i < 6; i++) {
			play_post(&sends, 1 << 20);
			if (i == 0)
				next_frame(WIRE_FLOW);
			f = next_frame(WIRE_MESSAGE);
			assert_true(f.is_lent);
			assert_int_equal(session_registered(), c + 1);
			events()->sent(f.cookie);
			assert_true(proxy_test(&sends, &bytes));
		}
		proxy_stop(&sends);
	}
	connection_close(&out[0]);
	notes_run();
	assert_int_equal(session_registered(), 1);
	session_lose(); /* which ends what is registered */
	connection_close(&out[1]);
	assert_string_equal(session_note(), "");
	play_end();
}

/* Bodies that are to lie where NCCL wants them are read straight to there; lines with flags land
 * beside. */
static void test_reads(void **state)
{
	(void)state;
	for (int p = PLUGIN_LL; p <= PLUGIN_SIMPLE; p++) {
		struct connection in;
		struct proxy_op receives;
		struct sent_frame f;
		int bytes;

		play_begin(6, EXCHANGE_PAYLOAD);
		session_register(0);
		connection_open(&in, &nccl, false, false);
		proxy_start(&receives, &in, start_all_reduce(0, p), p, 0, PEER, 2, 2);
		play_post(&receives, 4096);
		f = next_frame(WIRE_FLOW);
		assert_int_equal(f.h.flags, p == PLUGIN_SIMPLE ? WIRE_FLOW_READS : 0);
		assert_int_equal(session_registered(), p == PLUGIN_SIMPLE);
		f = next_frame(WIRE_WANT);
		play_answer_well(&f, 4096, 0);
		assert_int_equal(session_lands(), p == PLUGIN_SIMPLE);
		assert_true(proxy_test(&receives, &bytes));
		proxy_stop(&receives);
		connection_close(&in);
		play_end();
		assert_int_equal(session_registered(), 0);
	}
}

/* What cannot be registered is copied, and the summary says why. */
static void test_copied(void **state)
{
	struct connection out;
	struct proxy_op sends;
	struct sent_frame f;
	int bytes;

	(void)state;
	play_begin(6, EXCHANGE_PAYLOAD);
	session_register(4096);
	connection_open(&out, &nccl, true, false);
	proxy_start(&sends, &out, start_all_reduce(0, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0, PEER, 2, 2);
	for (int i = 0; i < 2; i++) {
		play_post(&sends, 1 << 20);
		if (i == 0)
			next_frame(WIRE_FLOW);
		f = next_frame(WIRE_MESSAGE);
		assert_true(f.h.body_bytes == 1 << 20 && !f.is_lent);
		assert_true(proxy_test(&sends, &bytes));
		assert_int_equal(bytes, 1 << 20);
	}
	assert_non_null(strstr(session_note(), "are copied before they are sent"));
	assert_non_null(strstr(session_note(), "cannot be registered"));
	proxy_stop(&sends);
	connection_close(&out);
	play_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_started),     cmocka_unit_test(test_devices),
		cmocka_unit_test(test_handles),         cmocka_unit_test(test_frames),
		cmocka_unit_test(test_steps_and_flags), cmocka_unit_test(test_direct),
		cmocka_unit_test(test_pool_is_full),    cmocka_unit_test(test_registered_once),
		cmocka_unit_test(test_reads),           cmocka_unit_test(test_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
