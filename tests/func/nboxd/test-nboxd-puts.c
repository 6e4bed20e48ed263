/* Puts and waits for signals of nboxd from outside: who waits for whom, and bad days. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fake-p2p.h"
#include "rng.h"

#define SIGNAL 8

static struct wire_p2p put(uint32_t peer, uint64_t bytes)
{
	return to(peer, bytes);
}

static struct wire_p2p wait_for(uint32_t peer)
{
	return from(peer, 0);
}

#define CALL(rank, ...)                     \
	do {                                \
		f[rank].is_onesided = true; \
		POST(rank, __VA_ARGS__);    \
	} while (0)

static void collective(uint32_t rank)
{
	f[rank].is_onesided = false;
	all_reduce(rank);
}

static void aborted(struct daemon *d, uint32_t rank, const char *text)
{
	assert_true(fakes_got(&f[rank], 1, WIRE_ABORT, 1));
	if (!strstr(f[rank].abort.text, text))
		fail_msg("wanted: %s, got: %s", text, f[rank].abort.text);
	stop(d);
}

static void a_put_waits_for_nobody_a_wait_for_its_signals(void **state)
{
	static const char *const exchanges[] = {"none", "messages"};
	struct daemon d;

	(void)state;
	for (size_t e = 0; e < 2; e++) {
		start(&d, exchanges[e], "60s");
		CALL(1, wait_for(2), wait_for(2), wait_for(9));
		not_over(1);
		CALL(2, put(1, 10000), put(3, 20));
		over(2);
		not_over(1);
		/* beside a wait, too; rank 1 waits for that only behind the collective */
		CALL(2, put(1, SIGNAL), wait_for(1), put(7, 5000));
		over(1);
		not_over(2);
		CALL(1, put(2, 300));
		over(1);
		over(2);
		for (uint32_t i = 0; i < N; i++)
			collective(i);
		for (uint32_t i = 0; i < N; i++)
			over(i);
		CALL(3, wait_for(2));
		over(3);
		assert_int_equal(f[3].release.end_ns, f[3].arrive.arrive_ns); /* it was there */
		stop(&d);
	}
}

enum { CALLS = 300 };

struct script {
	struct wire_p2p calls[2 * CALLS];
	uint32_t n, at;
};

/* In a global order each put comes before the wait for it; each rank's calls are cut into groups at
 * random. */
static void write_scripts(struct rng *rng, struct script *s)
{
	memset(s, 0, N * sizeof(*s));
	for (int i = 0; i < CALLS; i++) {
		uint32_t a = below(rng, N), b = below(rng, N + 2), v = 4 + below(rng, WORLD - 4);

		if (b >= N) {
			s[a].calls[s[a].n++] =
				below(rng, 2) ? put(v, below(rng, 12000)) : wait_for(v);
		} else if (a != b) {
			s[a].calls[s[a].n++] = put(b, below(rng, 12000));
			if (below(rng, 10) > 0) /* or nobody waits for it */
				s[b].calls[s[b].n++] = wait_for(a);
		}
	}
}

static void run_random(uint64_t seed, const char *exchange)
{
	uint64_t end = clock_now_ns() + 60 * NS_PER_S;
	static struct script scripts[N];
	uint32_t n_left = N;
	struct daemon d;
	struct rng rng;

	rng_seed(&rng, seed, 0);
	write_scripts(&rng, scripts);
	start(&d, exchange, "60s");
	while (n_left > 0) {
		n_left = 0;
		for (uint32_t i = 0; i < N; i++) {
			struct script *s = &scripts[i];
			uint32_t n = 1 + below(&rng, 8);

			link_progress(f[i].link);
			if (f[i].n[WIRE_ABORT])
				fail_msg("%s", f[i].abort.text);
			n_left += !fake_op_is_over(&f[i]) || s->at < s->n;
			if (f[i].seq != UINT64_MAX || s->at == s->n || below(&rng, 3) == 0)
				continue;
			n = n < s->n - s->at ? n : s->n - s->at;
			f[i].is_onesided = true;
			post(i, n, s->calls + s->at);
			s->at += n;
		}
		if (clock_now_ns() >= end)
			fail_msg("seed %llu hangs", (unsigned long long)seed);
	}
	stop(&d);
}

static void calls_at_random_all_end(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++)
		run_random(seed, seed % 2 ? "messages" : "none");
}

/* --- bad days --------------------------------------------------------------------------- */

static void a_wait_says_what_it_waits_for(void **state)
{
	struct daemon d;

	(void)state;
	start(&d, "none", "60s");
	CALL(3, put(1, 64));
	over(3);
	CALL(1, put(2, 64), wait_for(3), wait_for(3), wait_for(2));
	not_over(1);
	assert_non_null(strstr(f[0].status, "for signal 1, which rank 3 (pid "));
	assert_non_null(strstr(f[0].status, "has not given, and for 1 more"));
	fake_send(&f[3], WIRE_COMM_FREE, f[3].ready[0].comm, 3, 0, NULL, 0);
	aborted(&d, 1,
		"freed the communicator before rank 1's wait for signal 1 from rank 3 was over");
	start(&d, "none", "1s");
	CALL(1, wait_for(2));
	aborted(&d, 0, "for signal 0, which rank 2 (pid ");
	start(&d, "payload", "60s");
	CALL(1, wait_for(2));
	not_over(1);
	fake_close(&f[2]);
	aborted(&d, 1, "vanished");
}

static bool is_quiet(void *ctx)
{
	return clock_now_ns() >= *(uint64_t *)ctx;
}

/* Neither a timeout nor the end of who did not wait for it is an error of what was put; that
 * somebody puts to one who is gone is. */
static void a_put_may_stay_without_a_wait(void **state)
{
	uint64_t until;
	struct daemon d;

	(void)state;
	start(&d, "none", "1s");
	CALL(1, put(2, 64), put(3, 64));
	over(1);
	until = clock_now_ns() + 6500 * NS_PER_MS; /* 1 s, and the 5 s of a warning */
	fakes_pump(f, N, is_quiet, &until);
	assert_false(daemon_said(&d, "WARN"));
	fake_send(&f[2], WIRE_COMM_FREE, f[2].ready[0].comm, 2, 0, NULL, 0);
	sync_links();
	assert_int_equal(f[1].n[WIRE_ABORT], 0);
	CALL(1, put(3, 64));
	over(1);
	CALL(1, put(2, 64));
	aborted(&d, 1,
		"its put of 64 B to rank 2 meets nobody: that rank has freed the communicator");
}

/* A frame with as many @call as given. */
static void post_many(uint32_t rank, uint32_t n, const struct wire_p2p *call)
{
	struct wire_arrive a = {.kind = COLL_SENDRECV, .n_p2p = n, .flags = WIRE_ARRIVE_ONESIDED};
	size_t bytes = sizeof(a) + n * sizeof(*call);
	CLEANUP(freep) char *body = malloc(bytes);

	assert_non_null(body);
	a.arrive_ns = clock_now_ns();
	memcpy(body, &a, sizeof(a));
	for (uint32_t i = 0; i < n; i++)
		memcpy(body + sizeof(a) + i * sizeof(*call), call, sizeof(*call));
	f[rank].comm = f[rank].ready[0].comm;
	f[rank].rank = rank;
	f[rank].seq = WIRE_SEQ_P2P | number[rank]++;
	f[rank].has_release = false;
	fake_send(&f[rank], WIRE_ARRIVE, f[rank].comm, rank, f[rank].seq, body, bytes);
}

static void wrong_calls_abort(void **state)
{
	static const struct {
		struct wire_p2p call;
		uint32_t n;
		const char *why;
	} wrong[] = {
		{{.peer = WORLD, .is_send = 1, .bytes = 64}, 1, "a call to rank 16 of 16 ranks"},
		{{.peer = UINT32_MAX}, 1, "of 16 ranks"},
		{{.peer = 1, .is_send = 1, .bytes = 64}, 1, "no receive call of the group matches"},
		{{.peer = 1}, 1, "no send call of the group matches"},
		{{.peer = 2}, 65537, "more than 65536 calls for rank 2"},
		{{.peer = 9}, 65537, "more than 65536 calls for rank 9"},
	};
	struct daemon d;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		start(&d, i % 2 ? "messages" : "none", "60s");
		post_many(1, wrong[i].n, &wrong[i].call);
		aborted(&d, 0, wrong[i].why);
	}
	start(&d, "none", "60s"); /* so many are not too many */
	post_many(1, 65536, &(struct wire_p2p){.peer = 9});
	over(1);
	stop(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_put_waits_for_nobody_a_wait_for_its_signals),
		cmocka_unit_test(calls_at_random_all_end),
		cmocka_unit_test(a_wait_says_what_it_waits_for),
		cmocka_unit_test(a_put_may_stay_without_a_wait),
		cmocka_unit_test(wrong_calls_abort),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
