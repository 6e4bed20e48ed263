/* For tests of nboxd's point-to-point ops: four real ranks of sixteen in one communicator. */
#pragma once

#include <string.h>

#include "base/clock.h"
#include "fake-world.h"

enum { N = 4, WORLD = 16 };

static uint64_t number[N], seq[N]; /* of the next op */

/* 4 nodes of 4, the first of them real, one communicator of all. */
static inline void start_with(struct daemon *d, const char *exchange, const char *timeout,
			      const char *what_if)
{
	const char *args[] = {"--nodes",   "4",       "--gpus-per-node",
			      "4",         "--model", what_if ? "const:time=5us" : "alphabeta",
			      "--chunk",   "4KiB",    "--exchange",
			      exchange,    "--addr",  test_address("shm", dir),
			      "--timeout", timeout,   what_if ? "--what-if" : NULL,
			      what_if,     NULL};

	memset(number, 0, sizeof(number));
	memset(seq, 0, sizeof(seq));
	daemon_start(d, args);
	for (uint32_t i = 0; i < N; i++)
		fake_connect(&f[i], d->addr, "");
	assert_true(fakes_got(f, N, WIRE_WELCOME, 1));
	for (uint32_t i = 0; i < N; i++)
		fake_init(&f[i], 7, WORLD, i, i);
	assert_true(fakes_got(f, N, WIRE_COMM_READY, 1));
	for (uint32_t i = 0; i < N; i++)
		f[i].seq = UINT64_MAX; /* no op */
}

static inline void start(struct daemon *d, const char *exchange, const char *timeout)
{
	start_with(d, exchange, timeout, NULL);
}

static inline void stop(struct daemon *d)
{
	for (uint32_t i = 0; i < N; i++)
		fake_close(&f[i]);
	daemon_stop(d);
}

static inline struct wire_p2p to(uint32_t peer, uint64_t bytes)
{
	return (struct wire_p2p){.peer = peer, .is_send = 1, .bytes = bytes};
}

static inline struct wire_p2p from(uint32_t peer, uint64_t bytes)
{
	return (struct wire_p2p){.peer = peer, .is_send = 0, .bytes = bytes};
}

static inline void post(uint32_t rank, uint32_t n, const struct wire_p2p *calls)
{
	fake_arrive_p2p(&f[rank], &f[rank].ready[0], number[rank]++, calls, n);
}

#define POST(rank, ...)                                                 \
	do {                                                            \
		const struct wire_p2p calls_[] = {__VA_ARGS__};         \
		post(rank, sizeof(calls_) / sizeof(calls_[0]), calls_); \
	} while (0)

static inline void all_reduce(uint32_t rank)
{
	fake_arrive(&f[rank], &f[rank].ready[0], seq[rank]++, COLL_ALLREDUCE, 5000, 0);
}

static inline bool is_over(void *ctx)
{
	for (uint32_t i = 0; i < N; i++) /* all play on */
		fake_op_is_over(&f[i]);
	return fake_op_is_over(&f[*(uint32_t *)ctx]);
}

/* The op of @rank ends, whatever the others do. */
static inline void over(uint32_t rank)
{
	if (!fakes_pump(f, N, is_over, &rank))
		fail_msg("the op of rank %u does not end: %s", rank, f[rank].abort.text);
}

/* nboxd has worked through all that these links have sent, and its answers are here. */
static inline void sync_links(void)
{
	for (uint32_t i = 0; i < 2 * N; i++) {
		unsigned n = f[i % N].n[WIRE_STATUS] + 1;

		fake_send(&f[i % N], WIRE_STATUS, 0, 0, 0, NULL, 0);
		assert_true(fakes_got(&f[i % N], 1, WIRE_STATUS, n));
	}
}

/* The op of @rank has not got its RELEASE, nor will it by what was said so far. */
static inline void not_over(uint32_t rank)
{
	sync_links();
	assert_false(f[rank].has_release);
}
