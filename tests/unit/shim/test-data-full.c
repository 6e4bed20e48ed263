/* What the real library and the plug-in get in full mode, call by call, and what buffers hold
 * afterwards. The device copies at once; the real library writes down its calls. World: 6 ranks on
 * 3 nodes of 2, ranks 0 and 1 are real, so that each stands for 3. */
#include <stdbool.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "schedule/coll.h"
#include "shim/data/data-full.h"
#include "shim/data/real-comm.h"
#include "shim/data/redop.h"
#include "shim/gate/scratch.h"
#include "shim/plugin/plugin.h"
#include "shim/real/real.h"

#define N 6
#define N_REAL 2
#define MULTIPLICITY 3
#define STREAM ((device_stream)(uintptr_t)0x57)

static char said[4096]; /* what was called, one line each */
static struct comm comm;
static struct wire_member members[N_REAL] = {{0, 0}, {1, 1}};
static int32_t in[N], out[N];
static void *areas[64];
static uint32_t n_areas;

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
	size_t at = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + at, sizeof(said) - at, fmt, ap);
	va_end(ap);
}

/* --- what it stands on ------------------------------------------------------------------ */

static int copy(device_stream s, void *dst, const void *src, size_t bytes)
{
	assert_ptr_equal(s, STREAM);
	memmove(dst, src, bytes);
	return 0;
}

static int fill(device_stream s, void *dst, int byte, size_t bytes)
{
	assert_ptr_equal(s, STREAM);
	memset(dst, byte, bytes);
	return 0;
}

static int call_host(device_stream s, void (*fn)(void *arg), void *arg)
{
	assert_ptr_equal(s, STREAM);
	fn(arg);
	return 0;
}

static const char *why(void)
{
	return "";
}

static const struct device device = {
	.name = "test", .copy = copy, .fill = fill, .call = call_host, .why = why};

int scratch_take(struct scratch *s, int (*alloc)(void **, size_t), const char *what, uint64_t bytes,
		 char **ret, struct err *err)
{
	(void)s;
	(void)alloc;
	(void)what;
	(void)err;
	assert_true(n_areas < ARRAY_SIZE(areas));
	*ret = areas[n_areas++] = calloc(1, bytes);
	assert_non_null(*ret);
	return 0;
}

int comm_member(const struct comm *c, uint32_t rank)
{
	(void)c;
	return rank < N_REAL ? (int)rank : -1;
}

int real_comm_get(struct comm *c, ncclComm_t *ret, struct err *err)
{
	(void)err;
	*ret = c->real;
	return 0;
}

int redop_scale(const struct call *call, device_stream s, struct err *err)
{
	(void)call;
	(void)s;
	(void)err;
	return 0;
}

int plugin_expect(struct comm *c, const struct plugin_call *p, struct err *err)
{
	(void)err;
	assert_ptr_equal(c, &comm);
	assert_true(p->kind == COLL_SENDRECV || p->redop < ncclNumOps);
	if (p->kind == COLL_SENDRECV)
		assert_true(p->is_send ? p->send && !p->recv : !p->send && p->recv);
	say("%llu: ", (unsigned long long)p->seq);
	return 0;
}

/* --- the real library ------------------------------------------------------------------- */

static const char *name_of(const void *p)
{
	const char *names[] = {"in+0", "in+1", "in+2", "in+3", "in+4", "in+5"};

	for (int i = 0; i < N; i++) {
		if (p == &in[i])
			return names[i];
		if (p == &out[i])
			return (const char *[]){"out+0", "out+1", "out+2",
						"out+3", "out+4", "out+5"}[i];
	}
	return p ? "scratch" : "none";
}

static ncclResult_t all_reduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			       ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{
	(void)dtype;
	(void)c;
	(void)s;
	if (send != in)
		memcpy(recv, send, count * sizeof(int32_t));
	say("AllReduce %s %s %zu op %d\n", name_of(send), name_of(recv), count, (int)op);
	return ncclSuccess;
}

static ncclResult_t reduce_scatter(const void *send, void *recv, size_t count, ncclDataType_t dtype,
				   ncclRedOp_t op, ncclComm_t c, cudaStream_t s)
{
	(void)dtype;
	(void)c;
	(void)s;
	say("ReduceScatter %s %s %zu op %d\n", name_of(send), name_of(recv), count, (int)op);
	return ncclSuccess;
}

static ncclResult_t reduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			   ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t s)
{
	(void)dtype;
	(void)c;
	(void)s;
	say("Reduce %s %s %zu op %d root %d\n", name_of(send), name_of(recv), count, (int)op, root);
	return ncclSuccess;
}

/* Real ranks' parts are 100 and 101, what comes from virtual ones is 0. */
static ncclResult_t all_gather(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			       ncclComm_t c, cudaStream_t s)
{
	int32_t *to = recv;

	(void)dtype;
	(void)c;
	(void)s;
	for (int i = 0; i < N; i++)
		to[i] = i < N_REAL ? 100 + i : 0;
	say("AllGather %s %s %zu\n", name_of(send), name_of(recv), count);
	return ncclSuccess;
}

static ncclResult_t broadcast(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			      int root, ncclComm_t c, cudaStream_t s)
{
	(void)dtype;
	(void)c;
	(void)s;
	*(int32_t *)recv = root < N_REAL ? 100 + root : 0;
	say("Broadcast %s %s %zu root %d\n", name_of(send), name_of(recv), count, root);
	return ncclSuccess;
}

static ncclResult_t send_one(const void *send, size_t count, ncclDataType_t dtype, int peer,
			     ncclComm_t c, cudaStream_t s)
{
	(void)dtype;
	(void)c;
	(void)s;
	say("Send %s %zu to %d\n", name_of(send), count, peer);
	return ncclSuccess;
}

static ncclResult_t receive_one(void *recv, size_t count, ncclDataType_t dtype, int peer,
				ncclComm_t c, cudaStream_t s)
{
	(void)dtype;
	(void)c;
	(void)s;
	*(int32_t *)recv = peer < N_REAL ? 100 + peer : 0;
	say("Recv %s %zu from %d\n", name_of(recv), count, peer);
	return ncclSuccess;
}

static ncclResult_t make_op(ncclRedOp_t *ret, void *scalar, ncclDataType_t dtype,
			    ncclScalarResidence_t residence, ncclComm_t c)
{
	static int n;

	(void)c;
	assert_int_equal(residence, ncclScalarHostImmediate);
	*ret = (ncclRedOp_t)(ncclNumOps + n++);
	if (dtype == ncclFloat32) {
		float f;

		memcpy(&f, scalar, sizeof(f));
		say("PreMulSum %g is %d\n", (double)f, (int)*ret);
	} else {
		int32_t i;

		memcpy(&i, scalar, sizeof(i));
		say("PreMulSum %d is %d\n", (int)i, (int)*ret);
	}
	return ncclSuccess;
}

static const struct real the_real = {.AllReduce = all_reduce,
				     .ReduceScatter = reduce_scatter,
				     .Reduce = reduce,
				     .AllGather = all_gather,
				     .Broadcast = broadcast,
				     .Send = send_one,
				     .Recv = receive_one,
				     .RedOpCreatePreMulSum = make_op};

const struct real *real_get(void)
{
	return &the_real;
}

int real_check(ncclResult_t result, const char *what, struct err *err)
{
	(void)what;
	(void)err;
	return (int)result;
}

/* --- the cases -------------------------------------------------------------------------- */

static int setup(void **state)
{
	static const uint32_t real[N_REAL] = {0, 1};

	(void)state;
	said[0] = '\0';
	memset(&comm, 0, sizeof(comm));
	comm.dev = &device;
	comm.n_ranks = N;
	comm.n_real = N_REAL;
	comm.members = members;
	comm.multiplicity = MULTIPLICITY;
	comm.is_even = comm.is_periodic = comm.is_full = true;
	comm.real = (ncclComm_t)(uintptr_t)0x1;
	comm.map = (struct membership){N, 0, 1, NULL};
	for (int i = 0; i < N; i++)
		in[i] = out[i] = 10 + i;
	return templates_init(&comm.templates, &comm.map, 2, NULL, real, N_REAL);
}

static int teardown(void **state)
{
	(void)state;
	templates_deinit(&comm.templates);
	for (uint32_t i = 0; i < n_areas; i++)
		free(areas[i]);
	n_areas = 0;
	return 0;
}

/* A whole group, and what was said. */
static void run(struct call *calls, uint32_t n, uint32_t data, const char *expected)
{
	CLEANUP(call_index_deinit) struct call_index x = {0};
	struct err err = {""};

	memset(comm.ready.data, 0, sizeof(comm.ready.data));
	for (uint32_t kind = 0; kind < COLL_KINDS; kind++)
		comm.ready.data[kind] = (uint8_t)data;
	said[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		calls[i].comm = &comm;
		calls[i].bytes = calls[i].count * coll_dtype_bytes(calls[i].dtype);
		calls[i].seq = 7 + i;
		calls[i].real_send = calls[i].send;
	}
	assert_int_equal(call_index_init(&x, calls, n), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(data_full_before(&calls[i], STREAM, false, &err), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(data_full_during(&calls[i], &x, STREAM, &err), 0);
	for (uint32_t i = 0; i < n && data != DATA_NONE; i++)
		assert_int_equal(data_full_after(&calls[i], STREAM, &err), 0);
	assert_string_equal(said, expected);
}

static struct call sum(uint32_t kind, ncclDataType_t dtype, ncclRedOp_t op, uint32_t root)
{
	return (struct call){.kind = kind,
			     .send = in,
			     .recv = out,
			     .count = 1,
			     .dtype = dtype,
			     .redop = op,
			     .root = root};
}

static void test_sums(void **state)
{
	struct call c;

	(void)state;
	c = sum(COLL_ALLREDUCE, ncclInt32, ncclSum, 0);
	run(&c, 1, DATA_MIRROR, "PreMulSum 3 is 5\n7: AllReduce in+0 out+0 1 op 5\n");
	c = sum(COLL_REDUCESCATTER, ncclInt32, ncclSum, 0);
	run(&c, 1, DATA_MIRROR, "7: ReduceScatter in+0 out+0 1 op 5\n"); /* made once */
	c = sum(COLL_REDUCE, ncclInt32, ncclSum, 1);
	run(&c, 1, DATA_MIRROR, "7: Reduce in+0 out+0 1 op 5 root 1\n");
	c = sum(COLL_REDUCE, ncclInt32, ncclProd, 4); /* nobody sees it */
	run(&c, 1, DATA_MIRROR, "7: Reduce in+0 out+0 1 op 1 root 4\n");
	c = sum(COLL_ALLREDUCE, ncclInt32, ncclMax, 0);
	run(&c, 1, DATA_MIRROR, "7: AllReduce in+0 out+0 1 op 2\n");
	c = sum(COLL_ALLREDUCE, ncclInt32, ncclSum, 0);
	run(&c, 1, DATA_IDENTITY, "7: AllReduce in+0 out+0 1 op 0\n");
	run(&c, 1, DATA_NONE, "7: AllReduce in+0 out+0 1 op 0\n");
}

/* NCCL divides by 6; only two parts are not 0. */
static void test_means(void **state)
{
	struct call c;

	(void)state;
	c = sum(COLL_ALLREDUCE, ncclFloat32, ncclAvg, 0);
	run(&c, 1, DATA_MIRROR, "PreMulSum 0.5 is 6\n7: AllReduce in+0 out+0 1 op 6\n");
	run(&c, 1, DATA_IDENTITY, "PreMulSum 0.5 is 7\n7: AllReduce in+0 out+0 1 op 7\n");
	run(&c, 1, DATA_IDENTITY, "7: AllReduce in+0 out+0 1 op 7\n");
	c = sum(COLL_ALLREDUCE, ncclInt32, ncclAvg, 0);
	run(&c, 1, DATA_MIRROR, "7: AllReduce scratch out+0 1 op 4\n");
	assert_int_equal(out[0], 30); /* 10 from each of three */
	c = sum(COLL_ALLREDUCE, ncclInt32, ncclProd, 0);
	run(&c, 1, DATA_MIRROR, "7: AllReduce scratch out+0 1 op 1\n");
	assert_int_equal(out[0], 1000);
}

static void test_users_redop(void **state)
{
	struct redop redop = {.real = (ncclRedOp_t)40, .plain = (ncclRedOp_t)41};
	struct call c = sum(COLL_ALLREDUCE, ncclInt32, ncclNumOps, 0);

	(void)state;
	comm.redops = &redop;
	run(&c, 1, DATA_MIRROR, "7: AllReduce in+0 out+0 1 op 40\n");
	run(&c, 1, DATA_IDENTITY, "7: AllReduce in+0 out+0 1 op 41\n");
	run(&c, 1, DATA_NONE, "7: AllReduce in+0 out+0 1 op 0\n");
}

static void assert_out(int a, int b, int c, int d, int e, int f)
{
	int want[N] = {a, b, c, d, e, f};

	for (int i = 0; i < N; i++)
		assert_int_equal(out[i], want[i]);
}

static void test_gathers(void **state)
{
	static const char exchange[] = "7: Send in+0 1 to 0\n7: Recv out+0 1 from 0\n"
				       "7: Send in+1 1 to 1\n7: Recv out+1 1 from 1\n"
				       "7: Send in+2 1 to 2\n7: Recv out+2 1 from 2\n"
				       "7: Send in+3 1 to 3\n7: Recv out+3 1 from 3\n"
				       "7: Send in+4 1 to 4\n7: Recv out+4 1 from 4\n"
				       "7: Send in+5 1 to 5\n7: Recv out+5 1 from 5\n";
	struct call c;

	(void)state;
	c = sum(COLL_ALLGATHER, ncclInt32, ncclSum, 0);
	run(&c, 1, DATA_MIRROR, "7: AllGather in+0 out+0 1\n");
	assert_out(100, 101, 100, 101, 100, 101);
	run(&c, 1, DATA_IDENTITY, "7: AllGather in+0 out+0 1\n");
	assert_out(100, 101, 0, 0, 0, 0);
	c = sum(COLL_ALLTOALL, ncclInt32, ncclSum, 0);
	run(&c, 1, DATA_MIRROR, exchange);
	assert_out(100, 101, 100, 101, 100, 101);
	run(&c, 1, DATA_NONE, exchange);
	assert_out(100, 101, 0, 0, 0, 0);
	c = sum(COLL_GATHER, ncclInt32, ncclSum, 0);
	run(&c, 1, DATA_MIRROR,
	    "7: Send in+0 1 to 0\n7: Recv out+0 1 from 0\n7: Recv out+1 1 from 1\n"
	    "7: Recv out+2 1 from 2\n7: Recv out+3 1 from 3\n7: Recv out+4 1 from 4\n"
	    "7: Recv out+5 1 from 5\n");
	assert_out(100, 101, 100, 101, 100, 101);
	c = sum(COLL_GATHER, ncclInt32, ncclSum, 5);
	run(&c, 1, DATA_MIRROR, "7: Send in+0 1 to 5\n");
}

/* Under mirror the template, rank 1, broadcasts in place of rank 3: what it broadcasts in the same
 * group, else what its receive buffer holds. Else what a virtual root sends does not spoil the
 * job's buffer. */
static void test_virtual_roots(void **state)
{
	struct call c[2];

	(void)state;
	c[0] = sum(COLL_BROADCAST, ncclInt32, ncclSum, 3);
	run(c, 1, DATA_IDENTITY, "7: Broadcast in+0 scratch 1 root 3\n");
	assert_int_equal(out[0], 10);
	c[0] = sum(COLL_BROADCAST, ncclInt32, ncclSum, 3);
	run(c, 1, DATA_NONE, "7: Broadcast in+0 out+0 1 root 3\n");
	run(c, 1, DATA_MIRROR, "7: Broadcast in+0 out+0 1 root 1\n");
	assert_int_equal(out[0], 101);
	comm.rank = comm.index = 1;
	run(c, 1, DATA_MIRROR, "7: Broadcast out+0 out+0 1 root 1\n");
	c[1] = sum(COLL_BROADCAST, ncclInt32, ncclSum, 1);
	c[1].recv = &out[1];
	run(c, 2, DATA_MIRROR,
	    "7: Broadcast in+0 out+0 1 root 1\n8: Broadcast in+0 out+1 1 root 1\n");
	comm.rank = comm.index = 0;
	c[0] = sum(COLL_SCATTER, ncclInt32, ncclSum, 3);
	run(c, 1, DATA_MIRROR, "7: Recv scratch 1 from 3\n");
	assert_int_equal(out[0], 101);
	c[0] = sum(COLL_SCATTER, ncclInt32, ncclSum, 0);
	run(c, 1, DATA_MIRROR,
	    "7: Recv out+0 1 from 0\n7: Send in+0 1 to 0\n7: Send in+1 1 to 1\n"
	    "7: Send in+2 1 to 2\n7: Send in+3 1 to 3\n7: Send in+4 1 to 4\n7: Send in+5 1 to 5\n");
}

/* Of nothing, too: the other end waits for it. */
static void test_p2p(void **state)
{
	struct call c[2] = {sum(COLL_SENDRECV, ncclInt32, ncclSum, 4),
			    sum(COLL_SENDRECV, ncclInt32, ncclSum, 5)};

	(void)state;
	c[0].is_send = true;
	c[1].count = 0;
	run(c, 2, DATA_MIRROR, "7: Send in+0 1 to 4\n8: Recv out+0 0 from 5\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sums, setup, teardown),
		cmocka_unit_test_setup_teardown(test_means, setup, teardown),
		cmocka_unit_test_setup_teardown(test_users_redop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gathers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_virtual_roots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_p2p, setup, teardown),
	};

	return cmocka_run_group_tests_name("data-full", tests, NULL, NULL);
}
