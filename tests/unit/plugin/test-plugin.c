/* Plays NCCL against shim/plugin: events of the profiler in the words of its six versions,
 * requests of the network, and nboxd's answers, in a session that is in memory. */
#include "cmocka-all.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bootstrap/bootstrap.h"
#include "fake-session.h"
#include "nccl-plugin/plugin.h"
#include "nccl.h"
#include "schedule/coll.h"
#include "shim/plugin/calls.h"
#include "shim/plugin/plugin.h"
#include "shim/progress/traffic.h"

#define N_RANKS 16
#define RANK 3
#define PEER 9
#define NUMBER UINT64_C(0x343193647d986d6e) /* that NCCL makes of an id, somehow */

static struct comm *comm;
static struct nccl nccl;
static float send_buffer[64], recv_buffer[64];
static unsigned char sent_bytes[1 << 20]; /* of a message: what nboxd sends */

static const struct traffic_events *events(void)
{
	return traffic_get_events();
}

static void begin(int version, enum wire_exchange exchange)
{
	const char *name;
	struct err err;

	session_reset(exchange);
	plugin_start();
	comm = fake_comm(5, RANK, N_RANKS);
	assert_int_equal(plugin_bind(comm, &name, &err), 0);
	nccl_init(&nccl, version, NUMBER, RANK, N_RANKS, "");
	assert_int_equal(nccl.result, PLUGIN_OK);
}

static void end(void)
{
	notes_run();
	plugin_unbind(comm);
	ncclProfiler_v6.finalize(nccl.profiler);
	assert_int_equal(comm->refs, 1); /* no request keeps it */
	comm_unref(comm);
}

static struct plugin_call all_reduce(uint64_t seq, ncclDataType_t dtype, ncclRedOp_t redop)
{
	return (struct plugin_call){.kind = COLL_ALLREDUCE,
				    .send = send_buffer,
				    .recv = recv_buffer,
				    .count = 32,
				    .dtype = dtype,
				    .redop = redop,
				    .seq = seq};
}

static struct nccl_call all_reduce_event(const char *algorithm, const char *protocol,
					 const char *dtype)
{
	return (struct nccl_call){.function = "AllReduce",
				  .send = send_buffer,
				  .recv = recv_buffer,
				  .count = 32,
				  .dtype = dtype,
				  .algorithm = algorithm,
				  .protocol = protocol,
				  .n_channels = 2};
}

static const char *const protocol_names[] = {"LL", "LL128", "SIMPLE"};

/* An AllReduce of floats; its handle. */
static void *start_all_reduce(uint64_t seq, int protocol)
{
	struct plugin_call call = all_reduce(seq, ncclFloat32, ncclSum);
	struct nccl_call event = all_reduce_event("RING", protocol_names[protocol], "ncclFloat32");
	struct err err;
	void *handle;

	assert_int_equal(plugin_expect(comm, &call, &err), 0);
	handle = nccl_start_call(&nccl, &event);
	assert_non_null(handle);
	return handle;
}

static struct sent_frame next_frame(enum wire_type type)
{
	struct sent_frame f;
	bool is_there = session_next(&f);

	assert_true(is_there);
	assert_int_equal(f.h.type, type);
	assert_int_equal(f.h.comm, 5);
	assert_int_equal(f.h.rank, RANK);
	return f;
}

static void no_frame(void)
{
	struct sent_frame f;

	assert_false(session_next(&f));
}

static void post(struct proxy_op *op, size_t bytes)
{
	bool is_posted;

	assert_int_equal(proxy_post(op, bytes, &is_posted), PLUGIN_OK);
	assert_true(is_posted);
	notes_run();
}

/* nboxd's MESSAGE: its first @n bytes are sent_bytes. Return: of received(). */
static int answer(const struct sent_frame *want, size_t n, uint16_t flags, struct err *err)
{
	struct wire_hdr h;
	void *at;

	wire_hdr_init(&h, WIRE_MESSAGE, n);
	h.comm = want->h.comm;
	h.rank = want->h.rank;
	h.peer = want->h.peer;
	h.seq = want->h.seq;
	h.lane = want->h.lane;
	h.index = want->h.index;
	h.flags = flags;
	if (n) {
		at = events()->body_for(comm, &h);
		if (at)
			memcpy(at, sent_bytes, n);
	}
	return events()->received(comm, &h, err);
}

static void answer_well(const struct sent_frame *want, size_t n, uint16_t flags)
{
	struct err err = {""};

	if (answer(want, n, flags, &err))
		fail_msg("%s", err.text);
}

static void check_flags(const unsigned char *at, size_t n, int protocol, uint64_t step)
{
	for (size_t i = 0; protocol == PLUGIN_LL && i < n; i += 8) {
		uint32_t flag;

		memcpy(&flag, at + i + 4, 4);
		if (flag != (uint32_t)(step + 1))
			fail_msg("LL flag %u at %zu, not %llu", flag, i,
				 (unsigned long long)step + 1);
	}
	for (size_t i = 0; protocol == PLUGIN_LL128 && i < n; i += 128) {
		uint64_t flag;

		memcpy(&flag, at + i + 120, 8);
		if (flag != step + 1)
			fail_msg("flag %llu at %zu, not %llu", (unsigned long long)flag, i,
				 (unsigned long long)step + 1);
	}
}

/* Data of @n bytes with their flags left out; @is_from: byte i is that of sent_bytes, else @word.
 */
static void check_data(const unsigned char *at, size_t n, int protocol, bool is_from, uint64_t word)
{
	for (size_t i = 0; i < n; i++) {
		bool is_flag = (protocol == PLUGIN_LL && i % 8 >= 4) ||
			       (protocol == PLUGIN_LL128 && i % 128 >= 120);
		/* of LL four bytes of data in eight */
		size_t of = protocol == PLUGIN_LL ? i / 8 * 4 + i % 8 : i;
		unsigned char is = is_from ? sent_bytes[i] : (unsigned char)(word >> of % 8 * 8);

		if (!is_flag && at[i] != is)
			fail_msg("byte %zu is %02x, not %02x", i, at[i], is);
	}
}

/* --- tests ---------------------------------------------------------------------------- */

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
	begin(5, EXCHANGE_MESSAGES);
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
	end();
}

/* FLOW, WANT and MESSAGE in each version of the profiler. */
static void check_frames(int version)
{
	struct connection out, in;
	struct proxy_op sends, receives;
	struct sent_frame f;
	void *call;
	int bytes;

	begin(version, EXCHANGE_PAYLOAD);
	connection_open(&out, &nccl, true, false);
	connection_open(&in, &nccl, false, false);
	call = start_all_reduce(4, PLUGIN_SIMPLE);
	proxy_start(&sends, &out, call, PLUGIN_SIMPLE, 1, PEER, 5, 2);
	proxy_start(&receives, &in, call, PLUGIN_SIMPLE, 1, PEER + 1, 5, 2);
	no_frame();
	post(&sends, 1000);
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
	post(&sends, 0); /* nothing to lend */
	f = next_frame(WIRE_MESSAGE);
	assert_true(f.h.index == 1 && f.h.body_bytes == 0 && !f.is_lent);
	assert_true(proxy_test(&sends, &bytes));

	for (int i = 0; i < 3; i++)
		post(&receives, 1 << 20);
	f = next_frame(WIRE_FLOW);
	assert_true(!f.flow.is_send && f.flow.message_bytes == 1 << 20 && f.h.peer == PEER + 1);
	for (uint64_t i = 0; i < 3; i++) {
		f = next_frame(WIRE_WANT);
		assert_true(f.h.index == i && f.h.seq == 4 && f.h.lane == 1);
		assert_false(proxy_test(&receives, &bytes));
		answer_well(&f, 777 + i, 0);
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
	end();
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

	begin(version, EXCHANGE_PAYLOAD);
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

			post(&op, size);
			if (i == 0)
				next_frame(WIRE_FLOW);
			f = next_frame(WIRE_WANT);
			answer_well(&f, got, is_identity ? WIRE_MESSAGE_IDENTITY : 0);
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
	end();
}

static void test_steps_and_flags(void **state)
{
	(void)state;
	check_steps_and_flags(1);
	check_steps_and_flags(2);
	check_steps_and_flags(5);
}

/* Elements as numbers, by the definition of their formats: a model of fill_identity(). */
static double value(uint32_t dtype, uint64_t bits)
{
	static const struct {
		int exponent, mantissa;
	} formats[COLL_DTYPES] = {
		[COLL_FLOAT16] = {5, 10},  [COLL_BFLOAT16] = {8, 7},   [COLL_FLOAT32] = {8, 23},
		[COLL_FLOAT64] = {11, 52}, [COLL_FLOAT8E4M3] = {4, 3}, [COLL_FLOAT8E5M2] = {5, 2}};
	int size = (int)coll_dtype_bytes(dtype) * 8, ebits = formats[dtype].exponent,
	    mbits = formats[dtype].mantissa, bias, e;
	double m;

	if (!ebits) {
		bool is_signed = dtype == COLL_INT8 || dtype == COLL_INT32 || dtype == COLL_INT64;

		return is_signed ? (double)((int64_t)(bits << (64 - size)) >> (64 - size))
				 : (double)bits;
	}
	bias = (1 << (ebits - 1)) - 1;
	e = (int)(bits >> mbits & ((1u << ebits) - 1));
	m = (double)(bits & ((UINT64_C(1) << mbits) - 1)) / (double)(UINT64_C(1) << mbits);
	if (e == (1 << ebits) - 1 && dtype != COLL_FLOAT8E4M3)
		m = m ? NAN : INFINITY;
	else if (e == (1 << ebits) - 1 && m == 0.875)
		m = NAN; /* it has no infinity */
	else
		m = ldexp(e ? 1 + m : m, (e ? e : 1) - bias);
	return bits >> (size - 1) & 1 ? -m : m;
}

static void check_identity(uint32_t dtype, int redop, uint64_t word)
{
	size_t size = coll_dtype_bytes(dtype) * 8;
	uint64_t mask = size == 64 ? UINT64_MAX : (UINT64_C(1) << size) - 1, bits = word & mask;
	double identity = value(dtype, bits);

	for (size_t at = size; at < 64; at += size)
		assert_true((word >> at & mask) == bits);
	assert_false(isnan(identity));
	for (uint64_t i = 0; i < 65536; i++) {
		double x = value(dtype, size <= 16 ? i & mask : (i << (size - 16) | i) & mask);
		bool is_right = isnan(x) || redop == ncclSum || redop == ncclAvg;

		if (redop == ncclProd)
			is_right = is_right || x * identity == x;
		else if (redop == ncclMax)
			is_right = is_right || fmax(x, identity) == x;
		else if (redop == ncclMin)
			is_right = is_right || fmin(x, identity) == x;
		else
			is_right = identity == 0;
		if (!is_right)
			fail_msg("dtype %u, op %d: %g changes %g", dtype, redop, identity, x);
	}
}

static void test_identities(void **state)
{
	static const char *const names[COLL_DTYPES] = {"ncclInt8",       "Unknown",
						       "ncclInt32",      "ncclUint32",
						       "ncclInt64",      "ncclUint64",
						       "ncclFloat16",    "ncclFloat32",
						       "ncclFloat64",    "ncclBfloat16",
						       "ncclFloat8e4m3", "ncclFloat8e5m2"};
	struct connection in;
	uint64_t seq = 0;

	(void)state;
	begin(6, EXCHANGE_MESSAGES);
	connection_open(&in, &nccl, false, false);
	for (uint32_t dtype = 0; dtype < COLL_DTYPES; dtype++) {
		for (int redop = 0; redop <= 7; redop++) { /* 5 and more: a user's own */
			int protocol = (int)(seq % 3), bytes;
			struct plugin_call call =
				all_reduce(seq, (ncclDataType_t)dtype, (ncclRedOp_t)redop);
			struct nccl_call event =
				all_reduce_event("TREE", protocol_names[protocol], names[dtype]);
			struct proxy_op op;
			struct sent_frame f;
			struct err err;
			void *handle;
			uint64_t word;
			size_t size = in.bytes[protocol] / N_SLOTS;

			assert_int_equal(plugin_expect(comm, &call, &err), 0);
			handle = nccl_start_call(&nccl, &event);
			assert_non_null(handle);
			proxy_start(&op, &in, handle, protocol, 0, PEER, 1, 1);
			post(&op, size);
			f = next_frame(WIRE_FLOW);
			assert_int_equal(f.flow.algorithm, PLUGIN_TREE);
			f = next_frame(WIRE_WANT);
			answer_well(&f, 0, WIRE_MESSAGE_IDENTITY);
			assert_true(proxy_test(&op, &bytes));
			assert_int_equal(bytes, size);
			memcpy(&word, proxy_buffer(&op, 0), 4);
			memcpy((char *)&word + 4,
			       proxy_buffer(&op, 0) + (protocol == PLUGIN_LL ? 8 : 4), 4);
			check_flags(proxy_buffer(&op, 0), size, protocol, proxy_step(&op, 0));
			check_data(proxy_buffer(&op, 0), size, protocol, false, word);
			check_identity(dtype, redop, word);
			proxy_stop(&op);
			events()->passed(comm, seq++);
		}
	}
	connection_close(&in);
	assert_string_equal(session_failure(), "");
	end();
}

/* Calls are found by what they are, in any order; equal ones in their own. */
static void test_matches(void **state)
{
	static struct op ops[8];
	const struct plugin_call calls[] = {
		{COLL_ALLREDUCE, false, send_buffer, recv_buffer, 64, ncclFloat32, ncclSum, 0, 0,
		 &ops[0]},
		{COLL_ALLREDUCE, false, send_buffer, recv_buffer, 64, ncclFloat32, ncclSum, 0, 1,
		 &ops[1]},
		{COLL_ALLREDUCE, false, send_buffer, recv_buffer, 64, ncclInt32, ncclSum, 0, 2,
		 &ops[2]},
		{COLL_ALLGATHER, false, send_buffer, recv_buffer, 16, ncclFloat32, ncclSum, 0, 3,
		 &ops[3]},
		{COLL_BROADCAST, false, NULL, recv_buffer, 10, ncclFloat64, ncclSum, 6, 4, &ops[4]},
		{COLL_REDUCE, false, send_buffer, NULL, 10, ncclUint8, ncclMax, 2, 5, &ops[5]},
		{COLL_SENDRECV, true, send_buffer, NULL, 9, ncclInt8, ncclSum, 7, 0 | WIRE_SEQ_P2P,
		 &ops[6]},
		{COLL_SENDRECV, false, NULL, recv_buffer, 9, ncclInt8, ncclSum, 7, 1 | WIRE_SEQ_P2P,
		 &ops[7]},
	};
	static const struct {
		struct nccl_call event;
		uint64_t seq;
	} expected[] = {
		{{"Recv", NULL, recv_buffer, 9, 7, "ncclInt8", NULL, NULL, 0}, 1 | WIRE_SEQ_P2P},
		{{"Reduce", send_buffer, send_buffer, 10, 2, "Unknown", "RING", "LL", 1}, 5},
		{{"AllReduce", send_buffer, recv_buffer, 64, 0, "ncclInt32", "RING", "LL", 1}, 2},
		{{"AllReduce", send_buffer, recv_buffer, 64, 0, "ncclFloat32", "TREE", "LL", 1}, 0},
		{{"AllGather", send_buffer, recv_buffer, 64, 0, "ncclInt8", "RING", "LL128", 1}, 3},
		{{"AllReduce", send_buffer, recv_buffer, 64, 0, "ncclFloat32", "TREE", "LL", 1}, 1},
		{{"Broadcast", NULL, recv_buffer, 80, 6, "ncclInt8", "RING", "SIMPLE", 1}, 4},
		{{"Send", NULL, send_buffer, 9, 7, "ncclInt8", NULL, NULL, 0}, 0 | WIRE_SEQ_P2P},
	};
	struct err err;

	(void)state;
	for (int version = 1; version <= 6; version++) {
		begin(version, EXCHANGE_MESSAGES);
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			ops[i].called_seq = calls[i].seq;
			assert_int_equal(plugin_expect(comm, &calls[i], &err), 0);
		}
		for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
			struct call *c = nccl_start_call(&nccl, &expected[i].event);

			if (!c)
				fail_msg("version %d, event %zu: %s", version, i,
					 session_failure());
			assert_true(c->is.seq == expected[i].seq);
			assert_true(c->is.op->is_decided);
		}
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			const struct wire_took *took = &ops[i].took;

			assert_int_equal(took->n_channels, calls[i].kind != COLL_SENDRECV);
			assert_int_equal(took->algorithm,
					 i > 1 && i < 6 ? PLUGIN_RING : PLUGIN_TREE);
			assert_int_equal(took->protocol, i == 3   ? PLUGIN_LL128
							 : i == 4 ? PLUGIN_SIMPLE
								  : PLUGIN_LL);
			ops[i].is_decided = false;
		}
		assert_string_equal(session_failure(), "");
		/* none of it is there a second time; what NCCL has launched must end all the same
		 */
		assert_non_null(nccl_start_call(&nccl, &expected[2].event));
		assert_non_null(strstr(session_failure(), "which nbox has not called"));
		end();
	}
}

/* Two that are made together, alike in size and rank: which number is of which shows with their
 * calls. */
static void test_two_communicators(void **state)
{
	static const struct nccl_call events[] = {
		{"AllReduce", send_buffer, recv_buffer, 64, 0, "ncclFloat32", "RING", "LL", 1},
		{"AllReduce", send_buffer, recv_buffer, 32, 0, "ncclFloat32", "RING", "LL", 1},
	};
	struct plugin_call calls[] = {
		{COLL_ALLREDUCE, false, send_buffer, recv_buffer, 64, ncclFloat32, ncclSum, 0, 7,
		 NULL},
		{COLL_ALLREDUCE, false, send_buffer, recv_buffer, 32, ncclFloat32, ncclSum, 0, 8,
		 NULL},
	};
	const char *names[2];
	struct comm *comms[2];
	struct nccl two[2], other;
	struct call *c;
	struct err err;

	(void)state;
	for (int version = 1; version <= 6; version++) {
		session_reset(EXCHANGE_MESSAGES);
		plugin_start();
		for (int i = 0; i < 2; i++) {
			comms[i] = fake_comm(5 + (uint32_t)i, RANK, N_RANKS);
			assert_int_equal(plugin_bind(comms[i], &names[i], &err), 0);
		}
		nccl_init(&other, version, NUMBER + 9, RANK, N_RANKS + 1, "");
		if (version > 3)
			assert_null(other.profiler); /* none of nbox's */
		for (int i = 0; i < 2; i++)
			nccl_init(&two[i], version, NUMBER + (uint64_t)i, RANK, N_RANKS, "");
		for (int i = 0; i < 2; i++)
			assert_int_equal(plugin_expect(comms[i], &calls[i], &err), 0);
		for (int i = 1; i >= 0; i--) {
			c = nccl_start_call(&two[i], &events[i]);
			assert_non_null(c);
			assert_ptr_equal(c->of->comm, comms[i]);
			assert_true(c->is.seq == calls[i].seq);
		}
		/* from now on also what it does not expect is of that one */
		c = nccl_start_call(&two[1], &events[0]);
		assert_non_null(c);
		assert_ptr_equal(c->of->comm, comms[1]);
		assert_non_null(strstr(session_failure(), "which nbox has not called"));
		for (int i = 0; i < 2; i++) {
			notes_run();
			plugin_unbind(comms[i]);
			ncclProfiler_v6.finalize(two[i].profiler);
			assert_int_equal(comms[i]->refs, 1);
			comm_unref(comms[i]);
		}
		ncclProfiler_v6.finalize(other.profiler);
	}
}

/* Two that were made at once get the same call. */
static void test_names(void **state)
{
	static const struct nccl_call event = {"AllReduce",   send_buffer, recv_buffer, 64, 0,
					       "ncclFloat32", "RING",      "LL",        1};
	struct plugin_call call = {COLL_ALLREDUCE, false,   send_buffer, recv_buffer, 64,
				   ncclFloat32,    ncclSum, 0,           7,           NULL};
	const char *names[2];
	struct comm *comms[2];
	struct nccl two[2];
	struct call *c;
	struct err err;

	(void)state;
	for (int version = 4; version <= 6; version++) {
		session_reset(EXCHANGE_MESSAGES);
		plugin_start();
		for (int i = 0; i < 2; i++) {
			comms[i] = fake_comm(5 + (uint32_t)i, RANK, N_RANKS);
			assert_int_equal(plugin_bind(comms[i], &names[i], &err), 0);
			assert_int_equal(plugin_expect(comms[i], &call, &err), 0);
		}
		for (int i = 0; i < 2; i++)
			nccl_init(&two[i], version, NUMBER + (uint64_t)i, RANK, N_RANKS, names[i]);
		for (int i = 1; i >= 0; i--) {
			c = nccl_start_call(&two[i], &event);
			assert_non_null(c);
			assert_ptr_equal(c->of->comm, comms[i]);
		}
		assert_string_equal(session_failure(), "");
		for (int i = 0; i < 2; i++) {
			notes_run();
			plugin_unbind(comms[i]);
			ncclProfiler_v6.finalize(two[i].profiler);
			comm_unref(comms[i]);
		}
	}
}

static void test_calls_are_used_again(void **state)
{
	void *first = NULL, *handle = NULL;
	int n_new = 0;

	(void)state;
	begin(5, EXCHANGE_MESSAGES);
	for (uint64_t seq = 0; seq < 5000; seq++) {
		handle = start_all_reduce(seq, PLUGIN_LL);
		first = first ? first : handle;
		n_new += seq > 0 && handle == first;
		events()->passed(comm, seq);
	}
	assert_true(n_new >= 2); /* every thousand calls or so */
	end();
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
	begin(6, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, true);
	assert_int_equal(plugin_expect(comm, &call, &err), 0);
	proxy_start(&op, &in, nccl_start_call(&nccl, &event), PLUGIN_SIMPLE, 4, PEER, 1, 1);
	post(&op, 9);
	f = next_frame(WIRE_FLOW);
	assert_true(f.flow.algorithm == WIRE_NCCL_DIRECT && f.flow.protocol == PLUGIN_SIMPLE &&
		    f.flow.message_bytes == 9);
	f = next_frame(WIRE_WANT);
	assert_true(f.h.seq == (3 | WIRE_SEQ_P2P) && f.h.lane == 4);
	answer_well(&f, 9, 0);
	assert_true(proxy_test(&op, &bytes));
	check_data(proxy_buffer(&op, 0), 9, PLUGIN_SIMPLE, true, 0);
	proxy_stop(&op);
	connection_close(&in);
	end();
}

static void test_pool_is_full(void **state)
{
	struct connection in;
	struct proxy_op op;
	struct sent_frame f;
	bool is_posted;
	size_t n_notes;

	(void)state;
	begin(5, EXCHANGE_MESSAGES);
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
	answer_well(&f, 0, 0);
	assert_int_equal(f.h.index, 0);
	op.posted = 32;
	{
		int bytes;

		op.requests[0] = op.requests[0]; /* of message 24: not done */
		assert_false(proxy_test(&op, &bytes));
	}
	session_lose();
	comm_fail(comm, -1, "lost");
	events()->failed(comm);
	connection_close(&in);
	end();
}

/* --- what goes wrong ------------------------------------------------------------------- */

static void test_wrong_answers(void **state)
{
	struct connection in;
	struct proxy_op op;
	struct sent_frame want, f;
	struct err err = {""};
	int bytes;

	(void)state;
	begin(5, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, false);
	proxy_start(&op, &in, start_all_reduce(7, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0, PEER, 3, 2);
	post(&op, 1 << 20);
	next_frame(WIRE_FLOW);
	want = next_frame(WIRE_WANT);
	f = want;
	f.h.index = 1;
	assert_int_equal(answer(&f, 100, 0, &err), -EPROTO);
	assert_non_null(
		strstr(err.text, "op 7: message 1 from rank 9 on channel 0: NCCL has not posted"));
	f = want;
	f.h.lane = 2;
	assert_int_equal(answer(&f, 0, 0, &err), -EPROTO);
	f = want;
	f.h.seq = 8;
	assert_int_equal(answer(&f, 0, 0, &err), -EPROTO);
	f = want;
	f.h.peer = PEER + 1;
	assert_int_equal(answer(&f, 0, WIRE_MESSAGE_IDENTITY, &err), -EPROTO);
	post(&op, 4096);
	f = next_frame(WIRE_WANT);
	assert_int_equal(answer(&f, 4097, 0, &err), -EPROTO);
	assert_non_null(strstr(err.text, "it has 4097 bytes, NCCL's buffer 4096"));
	/* all of that has spoiled nothing; the later one may come first, and be too long where its
	 * bytes mean nothing */
	memset(proxy_buffer(&op, 1), 0x5b, 4096 + 64);
	answer_well(&f, 4096 + 64, WIRE_MESSAGE_IDENTITY);
	check_data(proxy_buffer(&op, 1), 4096, PLUGIN_SIMPLE, false, 0);
	assert_int_equal(proxy_buffer(&op, 1)[4096], 0x5b);
	assert_false(proxy_test(&op, &bytes));
	answer_well(&want, 5, 0);
	assert_true(proxy_test(&op, &bytes) && bytes == 5);
	assert_true(proxy_test(&op, &bytes) && bytes == 4096);
	assert_int_equal(answer(&f, 10, 0, &err), -EPROTO); /* a second time */
	proxy_stop(&op);
	connection_close(&in);
	end();
}

static void test_wrong_messages(void **state)
{
	struct connection out, in;
	struct nccl_call event;
	struct proxy_op op;
	bool is_posted;
	void *call;

	(void)state;
	begin(5, EXCHANGE_MESSAGES);
	connection_open(&out, &nccl, true, false);
	call = start_all_reduce(0, PLUGIN_SIMPLE);
	proxy_start(&op, &out, call, PLUGIN_SIMPLE, 0, PEER, 2, 2);
	/* a message is left out */
	op.posted = op.done = 1;
	post(&op, 10);
	assert_non_null(strstr(session_failure(), "the next one is 0"));
	assert_true(proxy_test(&op, NULL));
	connection_close(&out);
	end();

	/* what NCCL runs unasked fails the communicator, and ends */
	begin(5, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, false);
	event = all_reduce_event("RING", "LL", "ncclFloat32");
	proxy_start(&op, &in, nccl_start_call(&nccl, &event), PLUGIN_LL, 0, PEER, 1, 1);
	assert_non_null(strstr(session_failure(), "nbox has not called"));
	post(&op, 1 << 16);
	no_frame();
	assert_true(proxy_test(&op, NULL));
	check_flags(proxy_buffer(&op, 0), 1 << 16, PLUGIN_LL, 0);
	proxy_stop(&op);
	connection_close(&in);
	end();

	begin(5, EXCHANGE_MESSAGES);
	connection_open(&out, &nccl, true, false);
	/* an op of which NCCL's profiler has not told */
	proxy_start(&op, &out, NULL, PLUGIN_SIMPLE, 0, PEER, 2, 2);
	assert_non_null(op.handle); /* NCCL 2.27 needs one */
	assert_non_null(strstr(session_failure(), "does not say in which call"));
	assert_int_not_equal(proxy_post(&op, 10, &is_posted), PLUGIN_OK);
	assert_non_null(strstr(nccl.logged, "NCCL_PROFILER_PLUGIN"));
	connection_close(&out);
	end();

	begin(5, EXCHANGE_MESSAGES);
	connection_open(&out, &nccl, true, false);
	call = start_all_reduce(0, PLUGIN_SIMPLE);
	proxy_start(&op, &out, call, PLUGIN_SIMPLE, 0, N_RANKS, 2, 2);
	assert_non_null(strstr(session_failure(), "rank 16"));
	post(&op, 10);
	assert_true(proxy_test(&op, NULL));
	connection_close(&out);
	end();
}

static void test_nccl_2_27_lacks_events(void **state)
{
	struct connection out;
	struct proxy_op op;
	bool is_posted;

	(void)state;
	begin(4, EXCHANGE_MESSAGES);
	connection_open(&out, &nccl, true, false);
	proxy_start(&op, &out, start_all_reduce(0, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0, PEER, 2, 2);
	op.is_untold = true;
	assert_int_not_equal(proxy_post(&op, 10, &is_posted), PLUGIN_OK);
	assert_non_null(strstr(nccl.logged, "NCCL_NET_SHARED_BUFFERS=0"));
	connection_close(&out);
	end();
}

/* NCCL 2.23 to 2.25 with another profiler, or with events that are not of the message. */
static void test_nothing_is_told(void **state)
{
	struct connection out, in;
	struct proxy_op sends, receives;
	void *call, *request = NULL;

	(void)state;
	for (int version = 1; version <= 2; version++) {
		begin(version, EXCHANGE_MESSAGES);
		connection_open(&out, &nccl, true, false);
		connection_open(&in, &nccl, false, false);
		call = start_all_reduce(0, PLUGIN_SIMPLE);
		proxy_start(&sends, &out, call, PLUGIN_SIMPLE, 0, PEER, 2, 2);
		proxy_start(&receives, &in, call, PLUGIN_SIMPLE, 0, PEER, 2, 2);
		post(&receives, 1 << 20);
		/* what was told is of that one alone */
		assert_int_not_equal(ncclNetPlugin_v9.isend(out.end, out.buffer[PLUGIN_SIMPLE], 9,
							    0, out.registered[PLUGIN_SIMPLE],
							    &request),
				     PLUGIN_OK);
		assert_null(request);
		assert_non_null(strstr(nccl.logged, "NCCL_PROFILER_PLUGIN"));
		assert_string_equal(session_failure(), "");
		sends.posted = 1; /* a message is left out */
		post(&sends, 9);
		assert_non_null(strstr(session_failure(), "sends message 1 of 2"));
		connection_close(&out);
		connection_close(&in);
		end();
	}
}

static void test_refused_algorithms(void **state)
{
	struct plugin_call call = all_reduce(0, ncclFloat32, ncclSum);
	struct nccl_call event = all_reduce_event("PAT", "SIMPLE", "ncclFloat32");
	struct err err;

	(void)state;
	begin(4, EXCHANGE_MESSAGES);
	assert_int_equal(plugin_expect(comm, &call, &err), 0);
	nccl_start_call(&nccl, &event);
	assert_non_null(strstr(session_failure(), "algorithm PAT"));
	assert_true(comm_error(comm) != 0);
	end();
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

	begin(5, EXCHANGE_PAYLOAD);
	connection_open(&out, &nccl, true, false);
	connection_open(&in, &nccl, false, false);
	connection_open(&late, &nccl, false, false);
	call = start_all_reduce(0, PLUGIN_LL128);
	proxy_start(&sends, &out, call, PLUGIN_LL128, 0, PEER, 8, 1);
	proxy_start(&receives, &in, call, PLUGIN_LL128, 0, PEER, 8, 1);
	proxy_start(&lates, &late, start_all_reduce(1, PLUGIN_LL), PLUGIN_LL, 1, PEER, 8, 1);
	post(&sends, 4800);
	next_frame(WIRE_FLOW);
	f = next_frame(WIRE_MESSAGE);
	for (int i = 0; i < 4; i++)
		post(&receives, 614400);
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
		post(&lates, 65536);
		assert_true(proxy_test(&lates, &bytes));
		check_flags(proxy_buffer(&lates, i), 65536, PLUGIN_LL, proxy_step(&lates, i));
	}
	post(&sends, 128);
	assert_true(proxy_test(&sends, &bytes));
	proxy_stop(&sends);
	proxy_stop(&receives);
	proxy_stop(&lates);
	connection_close(&out);
	connection_close(&in);
	connection_close(&late);
	end();
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
	begin(5, EXCHANGE_PAYLOAD);
	connection_open(&in, &nccl, false, false);
	proxy_start(&op, &in, start_all_reduce(0, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0, PEER, 8, 2);
	post(&op, 1 << 20);
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
	end();
}

/* --- threads -------------------------------------------------------------------------------- */

#define N_PROXIES 3
#define N_OPS 60

static _Atomic int n_proxies_left;

struct proxy {
	pthread_t thread;
	int channel;
	uint64_t seed;
	struct connection out, in;
	void *calls[N_OPS];
};

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return *seed >> 33;
}

/* Message i of op o on channel c is full of one byte. */
static unsigned char mark(uint64_t seq, uint64_t channel, uint64_t index)
{
	return (unsigned char)(1 + (seq * 7 + channel * 5 + index * 3) % 250);
}

static void *proxy_main(void *arg)
{
	struct proxy *p = arg;

	for (uint64_t seq = 0; seq < N_OPS; seq++) {
		int protocol = (int)(seq % 3), slices = protocol == PLUGIN_SIMPLE ? 2 : 1;
		uint64_t n = 12, depth = (uint64_t)(N_SLOTS / slices);
		struct proxy_op ops[2];

		proxy_start(&ops[0], &p->out, p->calls[seq], protocol, p->channel, PEER, (int)n,
			    slices);
		proxy_start(&ops[1], &p->in, p->calls[seq], protocol, p->channel, PEER, (int)n,
			    slices);
		while (ops[0].done < n || ops[1].done < n) {
			struct proxy_op *op = &ops[draw(&p->seed) % 2];
			uint64_t i = op->done;
			bool is_posted;
			int bytes;

			if (op->posted < n && op->posted < op->done + depth && draw(&p->seed) % 2) {
				if (op == &ops[0])
					memset(proxy_buffer(op, op->posted),
					       mark(seq, (uint64_t)p->channel, op->posted), 1280);
				if (proxy_post(op, 1280, &is_posted) || !is_posted)
					abort();
			} else if (op->posted > op->done && proxy_test(op, &bytes) &&
				   op == &ops[1] && seq % 2 == 0) {
				const unsigned char *at = proxy_buffer(op, i);

				if (at[0] != mark(seq, (uint64_t)p->channel, i) ||
				    /* the last byte of data, or the first of the last four */
				    at[protocol == PLUGIN_LL ? 1280 - 8 : 1280 - 9] != at[0])
					abort();
			}
		}
		proxy_stop(&ops[0]);
		proxy_stop(&ops[1]);
	}
	atomic_fetch_sub(&n_proxies_left, 1);
	return NULL;
}

/* The progress thread: bodies are checked as the link takes them, and receives get their answers
 * late, in any order, every second op the identity. */
static void be_the_progress_thread(void)
{
	struct sent_frame wants[256];
	size_t n_wants = 0;
	uint64_t seed = 99;

	while (n_proxies_left) {
		struct sent_frame f;

		notes_run();
		while (n_wants < 256 && session_next(&f)) {
			if (f.h.type == WIRE_WANT)
				wants[n_wants++] = f;
			if (f.h.type != WIRE_MESSAGE)
				continue;
			assert_int_equal(*(const unsigned char *)f.body,
					 mark(f.h.seq, f.h.lane, f.h.index));
			events()->sent(f.cookie);
		}
		while (n_wants && draw(&seed) % 3) {
			size_t i = draw(&seed) % n_wants;

			f = wants[i];
			wants[i] = wants[--n_wants];
			memset(sent_bytes, mark(f.h.seq, f.h.lane, f.h.index), 1280);
			answer_well(&f, 1280, f.h.seq % 2 ? WIRE_MESSAGE_IDENTITY : 0);
		}
	}
}

static void test_threads(void **state)
{
	struct proxy proxies[N_PROXIES];

	(void)state;
	begin(5, EXCHANGE_PAYLOAD);
	n_proxies_left = N_PROXIES;
	for (uint64_t seq = 0; seq < N_OPS; seq++) {
		void *call = start_all_reduce(seq, (int)(seq % 3));

		for (int i = 0; i < N_PROXIES; i++)
			proxies[i].calls[seq] = call;
	}
	for (int i = 0; i < N_PROXIES; i++) {
		proxies[i].channel = i;
		proxies[i].seed = (uint64_t)i;
		connection_open(&proxies[i].out, &nccl, true, false);
		connection_open(&proxies[i].in, &nccl, false, false);
		pthread_create(&proxies[i].thread, NULL, proxy_main, &proxies[i]);
	}
	be_the_progress_thread();
	for (int i = 0; i < N_PROXIES; i++) {
		pthread_join(proxies[i].thread, NULL);
		connection_close(&proxies[i].out);
		connection_close(&proxies[i].in);
	}
	assert_string_equal(session_failure(), "");
	end();
}

static _Atomic bool is_closed;

static void *close_main(void *arg)
{
	connection_close(arg);
	is_closed = true;
	return NULL;
}

/* NCCL aborts: it deregisters buffers that messages are under way from and to, frees them, and
 * closes. */
static void test_close_waits_for_the_link(void **state)
{
	struct connection out, in;
	struct proxy_op sends, receives;
	struct sent_frame f;
	pthread_t threads[2];
	void *call;

	(void)state;
	begin(5, EXCHANGE_PAYLOAD);
	connection_open(&out, &nccl, true, false);
	connection_open(&in, &nccl, false, false);
	call = start_all_reduce(0, PLUGIN_SIMPLE);
	proxy_start(&sends, &out, call, PLUGIN_SIMPLE, 0, PEER, 8, 2);
	proxy_start(&receives, &in, call, PLUGIN_SIMPLE, 0, PEER, 8, 2);
	post(&receives, 1 << 20);
	next_frame(WIRE_FLOW);
	next_frame(WIRE_WANT);
	post(&sends, 5000);
	next_frame(WIRE_FLOW);
	f = next_frame(WIRE_MESSAGE);
	is_closed = false;
	pthread_create(&threads[0], NULL, close_main, &in);
	while (!is_closed) /* a receive that nobody answers is no reason to wait */
		notes_run();
	is_closed = false;
	pthread_create(&threads[1], NULL, close_main, &out);
	while (!notes_run())
		;
	assert_false(is_closed);
	assert_int_equal(((const unsigned char *)f.body)[4999], 0x5a); /* it is still there */
	events()->sent(f.cookie);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	end();
}

/* All messages of a buffer go from where it lies, and it is registered with the link once. */
static void test_registered_once(void **state)
{
	struct connection out[2];
	struct proxy_op sends;
	struct sent_frame f;
	int bytes;

	(void)state;
	begin(6, EXCHANGE_PAYLOAD);
	session_register(0);
	for (uint64_t c = 0; c < 2; c++) {
		connection_open(&out[c], &nccl, true, false);
		proxy_start(&sends, &out[c], start_all_reduce(c, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0,
			    PEER, 6, 2);
		assert_int_equal(session_registered(), c); /* not before something is sent */
		for (int i = 0; i < 6; i++) {
			post(&sends, 1 << 20);
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
	end();
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

		begin(6, EXCHANGE_PAYLOAD);
		session_register(0);
		connection_open(&in, &nccl, false, false);
		proxy_start(&receives, &in, start_all_reduce(0, p), p, 0, PEER, 2, 2);
		post(&receives, 4096);
		f = next_frame(WIRE_FLOW);
		assert_int_equal(f.h.flags, p == PLUGIN_SIMPLE ? WIRE_FLOW_READS : 0);
		assert_int_equal(session_registered(), p == PLUGIN_SIMPLE);
		f = next_frame(WIRE_WANT);
		answer_well(&f, 4096, 0);
		assert_int_equal(session_lands(), p == PLUGIN_SIMPLE);
		assert_true(proxy_test(&receives, &bytes));
		proxy_stop(&receives);
		connection_close(&in);
		end();
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
	begin(6, EXCHANGE_PAYLOAD);
	session_register(4096);
	connection_open(&out, &nccl, true, false);
	proxy_start(&sends, &out, start_all_reduce(0, PLUGIN_SIMPLE), PLUGIN_SIMPLE, 0, PEER, 2, 2);
	for (int i = 0; i < 2; i++) {
		post(&sends, 1 << 20);
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
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_started),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_steps_and_flags),
		cmocka_unit_test(test_identities),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_two_communicators),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_calls_are_used_again),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_pool_is_full),
		cmocka_unit_test(test_wrong_answers),
		cmocka_unit_test(test_wrong_messages),
		cmocka_unit_test(test_nccl_2_27_lacks_events),
		cmocka_unit_test(test_nothing_is_told),
		cmocka_unit_test(test_refused_algorithms),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_failure_while_landing),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_registered_once),
		cmocka_unit_test(test_copied),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_close_waits_for_the_link),
	};

	setenv("NBOX_NET_DEVICES", "mlx5_0:400000:/sys/devices/pci0000:00/0000:00:01.0,eth1:25000",
	       1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
