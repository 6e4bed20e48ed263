/* Full mode: a worker that has the token, but is broken or hostile. What it says of NCCL's messages
 * ends that communicator, with a sentence, or the worker; another communicator of the same ranks
 * goes on. */
#include "full-world.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "../../rng.h"
#include "base/cleanup.h"

struct bad {
	const char *why;
	enum wire_type type;
	uint32_t peer;
	uint64_t seq;
	uint16_t lane;
	uint64_t index, n_messages; /* FLOW: what it says; others: none */
	uint32_t algorithm, n_channels;
	uint64_t body_bytes; /* MESSAGE */
	bool is_receive, is_ll;
};

#define FLOW(why_, peer_, seq_, lane_, n_messages_, algorithm_, n_channels_)                  \
	{                                                                                     \
		.why = why_, .type = WIRE_FLOW, .peer = peer_, .seq = seq_, .lane = lane_,    \
		.n_messages = n_messages_, .algorithm = algorithm_, .n_channels = n_channels_ \
	}
#define OTHER(why_, type_, peer_, seq_, lane_, index_, bytes_)                         \
	{                                                                              \
		.why = why_, .type = type_, .peer = peer_, .seq = seq_, .lane = lane_, \
		.index = index_, .body_bytes = bytes_                                  \
	}

static const struct bad bad[] = {
	FLOW("channel 64, rank 1 -> 2: that or 1 channels are more than NCCL has", 2, 0, 64, 28,
	     PLUGIN_RING, 1),
	FLOW("65 channels are more than NCCL has", 2, 0, 1, 28, PLUGIN_RING, 65),
	FLOW("said before", 2, 0, 0, 28, PLUGIN_RING, 1),
	FLOW("op 1, channel 0, rank 1 -> 2: of op 0", 2, 1, 0, 28, PLUGIN_RING, 1),
	FLOW("only 0 ops have passed", 2, 1 << 20, 1, 28, PLUGIN_RING, 1),
	FLOW("only 0 ops have passed", 2, UINT64_MAX, 0, 28, WIRE_NCCL_DIRECT, 1),
	FLOW("a collective's", 2, WIRE_SEQ_P2P, 0, 28, PLUGIN_RING, 1),
	FLOW("node 0 sends to node 1, not 2", 4, 3, 1, 28, PLUGIN_RING, 1),
	FLOW("set NCCL_ALGO=Ring", 2, 3, 1, 28, PLUGIN_TREE, 1),
	FLOW("PAT", 2, 3, 1, 28, PLUGIN_PAT, 1),
	FLOW("all have the same", 2, 0, 0, 56, PLUGIN_RING, 1),
	FLOW("network within node 0", 0, 0, 1, 28, PLUGIN_RING, 1),
	FLOW("rank 8 of 8", 8, 0, 1, 28, PLUGIN_RING, 1),
	OTHER("rank 4294967295 of 8", WIRE_WANT, UINT32_MAX, 0, 0, 0, 0),
	OTHER("rank 1 of 8", WIRE_MESSAGE, 1, 0, 0, 0, 0),
	OTHER("nobody has said", WIRE_WANT, 2, 0, 0, 0, 0),
	OTHER("nobody has said", WIRE_WANT, 2, UINT64_MAX, UINT16_MAX, UINT64_MAX, 0),
	OTHER("nobody has said", WIRE_MESSAGE, 2, 1, 0, 0, 64),
	OTHER("nobody has said", WIRE_MESSAGE, 2, UINT64_MAX, UINT16_MAX, UINT64_MAX, 64),
	OTHER("message 1 of 28 has come, after 0", WIRE_MESSAGE, 2, 0, 0, 1, 64),
	OTHER("message 18446744073709551615 of 28", WIRE_MESSAGE, 2, 0, 0, UINT64_MAX, 64),
	OTHER("4097 bytes, and none more than 4096", WIRE_MESSAGE, 2, 0, 0, 0, 4097),
};

/* Two communicators of both ranks, with their ids. */
static void start_two(void)
{
	on = 0;
	start_comm("tcp", "payload", "");
	for (uint32_t i = 0; i < N_REAL; i++)
		fake_init(&f[i], 8, N_RANKS, i, i);
	assert_true(fakes_got(f, N_REAL, WIRE_COMM_READY, 2));
	for (uint32_t i = 0; i < N_REAL; i++)
		fake_send(&f[i], WIRE_MEET, f[0].ready[1].comm, i, 0, NULL, 0);
	assert_true(fakes_got(f, N_REAL, WIRE_LOCAL_ID, 2));
}

static bool came_or_wrong(void *ctx)
{
	(void)ctx;
	return came[0].n == N_MESSAGES || came[0].is_wrong;
}

/* An AllReduce in the second one. */
static void the_other_goes_on(void)
{
	static const uint8_t body[64];

	on = 1;
	send_flow(0);
	send_flow(1);
	arrive(COUNT);
	for (uint64_t i = 0; i < N_MESSAGES; i++) {
		send_head(1, WIRE_MESSAGE, i, body, sizeof(body));
		send_head(0, WIRE_WANT, i, NULL, 0);
	}
	assert_true(fakes_pump(f, N_REAL, came_or_wrong, NULL));
	assert_false(came[0].is_wrong);
	assert_int_equal(came[0].n, N_MESSAGES);
	finish();
}

static void send_bad(struct fake *from, const struct bad *b, uint32_t comm, uint32_t rank)
{
	static const uint8_t zeros[8192];
	bool is_flow = b->type == WIRE_FLOW;
	struct wire_flow flow = {.is_send = !b->is_receive,
				 .algorithm = b->algorithm,
				 .protocol = b->is_ll ? PLUGIN_LL : PLUGIN_SIMPLE,
				 .n_channels = b->n_channels,
				 .n_messages = b->n_messages,
				 .message_bytes = 4096};
	struct wire_hdr h;

	wire_hdr_init(&h, b->type, is_flow ? sizeof(flow) : b->body_bytes);
	h.comm = comm;
	h.rank = rank;
	h.peer = b->peer;
	h.seq = b->seq;
	h.lane = b->lane;
	h.index = b->index;
	link_send_copy(from->link, &h, is_flow ? (const void *)&flow : zeros);
	link_progress(from->link);
}

static void a_bad_frame_ends_its_communicator_alone(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(bad); k++) {
		uint32_t comm;

		start_two();
		comm = f[0].ready[0].comm;
		send_flow(0);
		if (strcmp(bad[k].why, "all have the same") != 0)
			send_flow(1);
		send_bad(&f[1], &bad[k], comm, 1);
		aborted(N_REAL, bad[k].why);
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) /* nothing comes of what follows */
			send_bad(&f[1], &bad[i], comm, 1);
		the_other_goes_on();
		assert_int_equal(f[0].n[WIRE_ABORT] + f[1].n[WIRE_ABORT], 2);
		assert_int_equal(f[0].n[WIRE_ERROR] + f[1].n[WIRE_ERROR], 0);
		stop();
	}
}

/* Which is known when the op begins. */
static void what_does_not_fit_the_call_ends_the_communicator(void **state)
{
	struct bad b = FLOW("has a multiple of 28", 2, 0, 0, 27, PLUGIN_RING, 1);

	(void)state;
	start_two();
	send_bad(&f[1], &b, f[0].ready[0].comm, 1);
	arrive(COUNT);
	aborted(N_REAL, b.why);
	f[0].has_release = f[1].has_release = false;
	the_other_goes_on();
	stop();
}

/* A worker that plays no rank speaks for one, or of a communicator that never was. */
static void who_speaks_for_another_is_refused(void **state)
{
	(void)state;
	start_two();
	for (size_t k = 0; k < 2 * ARRAY_SIZE(bad); k++) {
		const struct bad *b = &bad[k / 2];
		uint32_t comm = k % 2 ? f[0].ready[0].comm : 99;

		fake_connect(&f[2], d.addr, "");
		assert_true(fakes_got(&f[2], 1, WIRE_WELCOME, 1));
		send_bad(&f[2], b, comm, 1);
		assert_true(fakes_got(&f[2], 1, WIRE_ERROR, 1));
		assert_non_null(strstr(f[2].error.text,
				       k % 2 ? "which it does not play" : "which never was"));
		fake_close(&f[2]);
	}
	the_other_goes_on();
	assert_int_equal(f[0].n[WIRE_ABORT] + f[1].n[WIRE_ABORT], 0);
	stop();
}

/* Flows and messages of ops that nobody calls, on all channels, by one rank; the communicator ends
 * in the middle, and what they took is free (leaks are reported under ASan). */
static void what_is_never_called_ends_with_its_communicator(void **state)
{
	static const uint8_t body[4096];
	struct bad b = {.type = WIRE_FLOW,
			.peer = 2,
			.n_messages = 28,
			.algorithm = PLUGIN_RING,
			.n_channels = 64};
	struct wire_text text = {.code = ECANCELED, .text = "enough"};

	(void)state;
	start_two();
	for (b.lane = 0; b.lane < 64; b.lane++) {
		b.seq = 1000 * b.lane;
		send_bad(&f[1], &b, f[0].ready[0].comm, 1);
	}
	for (uint64_t i = 0; i < 28; i++)
		send_head(1, WIRE_MESSAGE, i, body, sizeof(body)); /* of op 0, on channel 0 */
	settle(1);
	assert_int_equal(f[1].n[WIRE_ABORT] + f[1].n[WIRE_ERROR], 0);
	fake_send(&f[1], WIRE_ABORT, f[0].ready[0].comm, 1, 0, &text, sizeof(text));
	assert_true(fakes_got(&f[0], 1, WIRE_ABORT, 1));
	the_other_goes_on();
	stop();
}

/* Mostly what might be right. */
static struct bad any(struct rng *rng)
{
	static const enum wire_type types[] = {WIRE_FLOW, WIRE_WANT, WIRE_MESSAGE, WIRE_MESSAGE};
	static const uint32_t algorithms[] = {PLUGIN_RING, PLUGIN_TREE, WIRE_NCCL_DIRECT,
					      PLUGIN_PAT};
	uint64_t a = rng_u64(rng), b = rng_u64(rng);
	bool is_wild = a >> 60 == 0;
	struct bad any = {.type = types[a & 3],
			  .peer = a >> 2 & 1   ? 2
				  : a >> 3 & 1 ? N_RANKS - 1
					       : (uint32_t)(b & 15),
			  .seq = a >> 6 & 1,
			  .lane = (uint16_t)(a >> 8 & 1),
			  .index = a >> 10 & 3,
			  .n_messages = 1 + (b >> 8 & 1),
			  .algorithm = algorithms[b >> 16 & 3],
			  .n_channels = 1,
			  .is_receive = b >> 18 & 1,
			  .is_ll = b >> 19 & 1,
			  .body_bytes = b >> 20 & 1 ? b >> 24 & 4095 : 0};

	if (any.algorithm == WIRE_NCCL_DIRECT || a >> 7 & 1)
		any.seq |= WIRE_SEQ_P2P;
	if (is_wild) {
		any.seq ^= b << (b & 63);
		any.lane = (uint16_t)(b >> 30);
		any.index = b;
		any.n_messages = 1 + (b & (WIRE_FLOW_MESSAGES_MAX - 1));
		any.n_channels = (uint32_t)(b >> 40);
	}
	/* what would end the worker: these are no frames */
	if (any.type == WIRE_FLOW && any.lane >= WIRE_CHANNELS_MAX)
		any.lane = 0;
	if (any.type == WIRE_WANT)
		any.body_bytes = 0;
	return any;
}

static void frames_at_random_end_no_more_than_their_communicator(void **state)
{
	struct rng rng = {0};
	unsigned n_ended = 0;

	(void)state;
	rng_seed(&rng, 1, 0);
	for (uint32_t round = 0; round < 4; round++) {
		start_two();
		for (uint32_t k = 2; k < FAKE_READY_MAX; k++) {
			for (uint32_t i = 0; i < N_REAL; i++)
				fake_init(&f[i], (uint8_t)(20 + k), N_RANKS, i, i);
			assert_true(fakes_got(f, N_REAL, WIRE_COMM_READY, k + 1));
			for (uint32_t i = 0; i < N_REAL; i++)
				fake_send(&f[i], WIRE_MEET, f[0].ready[k].comm, i, 0, NULL, 0);
			assert_true(fakes_got(f, N_REAL, WIRE_LOCAL_ID, k + 1));
			if (k % 4 == 0)
				for (uint32_t i = 0; i < N_REAL; i++)
					fake_arrive(&f[i], &f[i].ready[k], 0, COLL_ALLREDUCE, 4096,
						    0);
			for (unsigned n = 0; n < 40; n++) {
				struct bad b = any(&rng);

				send_bad(&f[n & 1], &b, f[0].ready[k].comm, n & 1);
			}
			for (uint32_t i = 0; i < N_REAL; i++) {
				settle(i);
				if (f[i].n[WIRE_ERROR])
					fail_msg("%s", f[i].error.text);
			}
		}
		assert_int_equal(f[0].n[WIRE_ABORT], f[1].n[WIRE_ABORT]);
		n_ended += f[0].n[WIRE_ABORT];
		the_other_goes_on();
		stop();
	}
	assert_true(n_ended > 60); /* most of them */
}

static uint64_t resident_bytes(pid_t pid)
{
	unsigned long long pages = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %llu", &pages), 1);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The longest is announced, and does not come. */
static void a_long_body_takes_memory_as_it_comes(void **state)
{
	uint64_t before, bytes = WIRE_NCCL_MESSAGE_MAX;
	CLEANUP(freep) void *body = calloc(1, bytes);
	struct wire_hdr h;

	(void)state;
	assert_non_null(body);
	start_two();
	send_flow_of(1, bytes);
	settle(1);
	before = resident_bytes(d.pid);
	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.comm = f[0].ready[0].comm;
	h.rank = 1;
	h.peer = N_REAL;
	assert_int_equal(link_send(f[1].link, &h, body, 0), 0);
	link_progress(f[1].link);
	settle(0);
	assert_true(resident_bytes(d.pid) < before + bytes / 2);
	assert_int_equal(f[0].n[WIRE_ABORT], 0);
	fake_close(&f[1]);
	assert_true(fakes_got(&f[0], 1, WIRE_ABORT, 2));
	settle(0);
	stop();
}

static void a_flow_longer_than_any_of_nccl_ends_its_worker(void **state)
{
	(void)state;
	start_two();
	send_flow_of(1, WIRE_NCCL_MESSAGE_MAX + 1);
	assert_true(fakes_got(&f[1], 1, WIRE_ERROR, 1));
	assert_non_null(strstr(f[1].error.text, "message_bytes"));
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_frame_ends_its_communicator_alone),
		cmocka_unit_test(what_does_not_fit_the_call_ends_the_communicator),
		cmocka_unit_test(who_speaks_for_another_is_refused),
		cmocka_unit_test(frames_at_random_end_no_more_than_their_communicator),
		cmocka_unit_test(a_long_body_takes_memory_as_it_comes),
		cmocka_unit_test(a_flow_longer_than_any_of_nccl_ends_its_worker),
		cmocka_unit_test(what_is_never_called_ends_with_its_communicator),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
