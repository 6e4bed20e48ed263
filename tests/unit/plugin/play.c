/* See play.h. */
#include "cmocka-all.h"

#include <string.h>

#include "play.h"
#include "schedule/coll.h"

struct comm *comm;
struct nccl nccl;
float send_buffer[64], recv_buffer[64];
unsigned char sent_bytes[1 << 20];

const struct traffic_events *events(void)
{
	return traffic_get_events();
}

void play_begin(int version, enum wire_exchange exchange)
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

void play_end(void)
{
	notes_run();
	plugin_unbind(comm);
	ncclProfiler_v6.finalize(nccl.profiler);
	assert_int_equal(comm->refs, 1); /* no request keeps it */
	comm_unref(comm);
}

struct plugin_call all_reduce(uint64_t seq, ncclDataType_t dtype, ncclRedOp_t redop)
{
	return (struct plugin_call){.kind = COLL_ALLREDUCE,
				    .send = send_buffer,
				    .recv = recv_buffer,
				    .count = 32,
				    .dtype = dtype,
				    .redop = redop,
				    .seq = seq};
}

struct nccl_call all_reduce_event(const char *algorithm, const char *protocol, const char *dtype)
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

const char *const protocol_names[] = {"LL", "LL128", "SIMPLE"};

void *start_all_reduce(uint64_t seq, int protocol)
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

struct sent_frame next_frame(enum wire_type type)
{
	struct sent_frame f;
	bool is_there = session_next(&f);

	assert_true(is_there);
	assert_int_equal(f.h.type, type);
	assert_int_equal(f.h.comm, 5);
	assert_int_equal(f.h.rank, RANK);
	return f;
}

void no_frame(void)
{
	struct sent_frame f;

	assert_false(session_next(&f));
}

void play_post(struct proxy_op *op, size_t bytes)
{
	bool is_posted;

	assert_int_equal(proxy_post(op, bytes, &is_posted), PLUGIN_OK);
	assert_true(is_posted);
	notes_run();
}

int play_answer(const struct sent_frame *want, size_t n, uint16_t flags, struct err *err)
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

void play_answer_well(const struct sent_frame *want, size_t n, uint16_t flags)
{
	struct err err = {""};

	if (play_answer(want, n, flags, &err))
		fail_msg("%s", err.text);
}

void check_flags(const unsigned char *at, size_t n, int protocol, uint64_t step)
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

void check_data(const unsigned char *at, size_t n, int protocol, bool is_from, uint64_t word)
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
