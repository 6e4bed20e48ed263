/* Which call an event of NCCL's profiler is, and the identity of its operation. */
#include "cmocka-all.h"

#include <math.h>
#include <string.h>

#include "play.h"
#include "schedule/coll.h"
#include "shim/plugin/calls.h"

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
		play_begin(version, EXCHANGE_MESSAGES);
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
		play_end();
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
	play_begin(5, EXCHANGE_MESSAGES);
	for (uint64_t seq = 0; seq < 5000; seq++) {
		handle = start_all_reduce(seq, PLUGIN_LL);
		first = first ? first : handle;
		n_new += seq > 0 && handle == first;
		events()->passed(comm, seq);
	}
	assert_true(n_new >= 2); /* every thousand calls or so */
	play_end();
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
	play_begin(6, EXCHANGE_MESSAGES);
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
			play_post(&op, size);
			f = next_frame(WIRE_FLOW);
			assert_int_equal(f.flow.algorithm, PLUGIN_TREE);
			f = next_frame(WIRE_WANT);
			play_answer_well(&f, 0, WIRE_MESSAGE_IDENTITY);
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
	play_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),    cmocka_unit_test(test_two_communicators),
		cmocka_unit_test(test_names),      cmocka_unit_test(test_calls_are_used_again),
		cmocka_unit_test(test_identities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
