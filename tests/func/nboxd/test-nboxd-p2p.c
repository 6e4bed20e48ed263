/* Point-to-point ops of nboxd from outside: members that meet in twos and threes while
 * others idle or wait in collectives, groups against single calls, and bad days. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake-p2p.h"
#include "rng.h"

static const char *const exchanges[] = {"none", "messages", "payload"};

/* --- who waits for whom ------------------------------------------------------------- */

static void run_subsets(const char *exchange)
{
	struct daemon d;

	start(&d, exchange, "60s");
	for (int round = 0; round < 3; round++) {
		/* virtual peers only: nobody else is needed */
		POST(0, to(9, 10000), from(4, 0), from(15, 5000));
		over(0);
		/* rank 3 waits in a collective; two others meet */
		all_reduce(3);
		POST(1, to(2, 10000), from(2, 300));
		not_over(1);
		POST(2, from(1, 10000), to(1, 300));
		over(1);
		over(2);
		assert_true(f[1].release.end_ns > f[2].arrive.arrive_ns); /* it receives */
		assert_true(f[2].release.end_ns >= f[2].arrive.arrive_ns);
		not_over(3);
		/* the collective goes on while a receive waits */
		all_reduce(0);
		all_reduce(1);
		all_reduce(2);
		for (uint32_t i = 0; i < N; i++)
			over(i);
		/* empty calls and calls to oneself */
		POST(2, to(2, 77), from(2, 77), to(3, 0), from(12, 9));
		not_over(2);
		POST(3, from(2, 0));
		over(2);
		over(3);
		POST(1, to(1, 0), from(1, 0));
		over(1);
	}
	stop(&d);
}

static void only_those_who_call_take_part(void **state)
{
	(void)state;
	for (size_t e = 0; e < 3; e++)
		run_subsets(exchanges[e]);
}

static void a_group_may_meet_single_calls(void **state)
{
	struct daemon d;

	(void)state;
	for (size_t e = 0; e < 3; e++) {
		start(&d, exchanges[e], "60s");
		POST(0, to(1, 9000), to(1, 100), from(1, 50), to(8, 20000), to(2, 7));
		POST(1, from(0, 9000)); /* goes on although rank 0 cannot */
		over(1);
		not_over(0);
		POST(1, from(0, 100));
		over(1);
		POST(2, from(0, 7), from(3, 1)); /* waits for rank 3 */
		sync_links();
		POST(1, to(0, 50));
		over(1);
		over(0);
		assert_true(f[0].release.end_ns > f[1].arrive.arrive_ns);
		not_over(2);
		POST(3, to(2, 1));
		over(3);
		over(2);
		/* four that wait for each other all around */
		for (uint32_t i = 0; i < N; i++)
			POST(i, to((i + 1) % N, 5000), from((i + 3) % N, 5000));
		for (uint32_t i = 0; i < N; i++)
			over(i);
		/* a dense one is one run */
		for (uint32_t i = 0; i < N; i++)
			POST(i, to((i + 1) % N, 5000), from((i + 3) % N, 5000),
			     to((i + 2) % N, 6000), from((i + 2) % N, 6000), to((i + 3) % N, 7000),
			     from((i + 1) % N, 7000));
		for (uint32_t i = 0; i < N; i++)
			over(i);
		for (uint32_t i = 1; i < N; i++) {
			assert_true(f[i].release.end_ns >= f[N - 1].arrive.arrive_ns);
			assert_int_equal(f[i].release.number, f[0].release.number);
		}
		stop(&d);
	}
}

/* --- at random ------------------------------------------------------------------------ */

enum { CALLS = 300 };

struct script {
	struct wire_p2p calls[2 * CALLS];
	uint32_t n, at;
};

/* Pairs in a global order, each rank's calls cut into groups at random: as the earliest
 * pair that is not there can always be made, such a job goes on to its end. */
static void write_scripts(struct rng *rng, struct script *s)
{
	memset(s, 0, N * sizeof(*s));
	for (int i = 0; i < CALLS; i++) {
		uint32_t a = below(rng, N), b = below(rng, N + 2);
		uint64_t bytes = below(rng, 4) ? below(rng, 12000) : 0;

		if (b >= N) { /* virtual */
			s[a].calls[s[a].n++] = below(rng, 2) ? to(4 + below(rng, 12), bytes)
							     : from(4 + below(rng, 12), bytes);
		} else if (a != b) {
			s[a].calls[s[a].n++] = to(b, bytes);
			s[b].calls[s[b].n++] = from(a, bytes);
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
			assert_int_equal(f[i].n[WIRE_ABORT], 0);
			n_left += !fake_op_is_over(&f[i]) || s->at < s->n;
			if (f[i].seq != UINT64_MAX || s->at == s->n || below(&rng, 3) == 0)
				continue;
			n = n < s->n - s->at ? n : s->n - s->at;
			post(i, n, s->calls + s->at);
			s->at += n;
		}
		assert_true(clock_now_ns() < end);
	}
	for (uint32_t i = 0; i < N; i++) { /* and a collective at the end of all */
		assert_int_equal(f[i].n[WIRE_RELEASE],
				 number[i]); /* not afterwards: that of the last may have come */
		all_reduce(i);
	}
	for (uint32_t i = 0; i < N; i++)
		over(i);
	stop(&d);
}

static void calls_at_random_all_end(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 12; seed++)
		run_random(seed, exchanges[seed % 3]);
}

/* --- bad days --------------------------------------------------------------------------- */

static void aborted(struct daemon *d, uint32_t rank, const char *text)
{
	assert_true(fakes_got(&f[rank], 1, WIRE_ABORT, 1));
	if (!strstr(f[rank].abort.text, text))
		fail_msg("wanted: %s, got: %s", text, f[rank].abort.text);
	stop(d);
}

static void sizes_that_differ_abort(void **state)
{
	struct {
		struct wire_arrive arrive;
		struct wire_p2p call;
	} own = {{.kind = COLL_SENDRECV, .n_p2p = 1}, to(1, 64)};
	struct daemon d;

	(void)state;
	start(&d, "none", "60s");
	POST(1, from(3, 64));
	POST(3, to(1, 65));
	aborted(&d, 0, "rank 3 sends 65 bytes to rank 1 (send 0 between them), which receives 64");
	start(&d, "messages", "60s");
	fake_send(&f[1], WIRE_ARRIVE, f[1].ready[0].comm, 1, WIRE_SEQ_P2P, &own, sizeof(own));
	aborted(&d, 0, "rank 1 sends itself 64 bytes, but no receive call of the group matches");
}

static void a_call_to_one_who_has_freed_aborts(void **state)
{
	struct daemon d;

	(void)state;
	start(&d, "messages", "60s");
	POST(1, from(2, 64), to(2, 10000));
	not_over(1);
	fake_send(&f[2], WIRE_COMM_FREE, f[2].ready[0].comm, 2, 0, NULL, 0);
	aborted(&d, 1,
		"freed the communicator before rank 1's receive of 64 B from rank 2 (receive 0 "
		"between them) was over");
	start(&d, "messages", "60s");
	fake_send(&f[2], WIRE_COMM_FREE, f[2].ready[0].comm, 2, 0, NULL, 0);
	sync_links();
	POST(0, to(3, 5)); /* whom it does not concern */
	POST(3, from(0, 5));
	over(0);
	over(3);
	POST(1, to(2, 64));
	aborted(&d, 1,
		"point-to-point op 0 of rank 1 cannot start: its send of 64 B to rank 2 (send 0 "
		"between them) meets nobody: that rank has freed the communicator");
	start(&d, "messages", "60s");
	POST(2, from(3, 64));
	fake_send(&f[2], WIRE_COMM_FREE, f[2].ready[0].comm, 2, 0, NULL, 0);
	aborted(&d, 1, "freed the communicator before its point-to-point op 0 was over");
}

static void a_call_to_one_who_vanished_aborts(void **state)
{
	struct daemon d;

	(void)state;
	start(&d, "payload", "60s");
	POST(1, from(2, 64), to(2, 100000), to(5, 100000));
	POST(2, from(1, 100000));
	over(2);
	fake_close(&f[2]);
	aborted(&d, 1, "vanished");
}

static void a_wrong_frame_is_refused(void **state)
{
	struct wire_done done = {.due_ns = 1};
	struct daemon d;

	(void)state;
	start(&d, "messages", "60s");
	number[1] = 1; /* one is left out */
	POST(1, from(2, 64));
	assert_true(fakes_got(&f[1], 1, WIRE_ERROR, 1));
	assert_non_null(strstr(f[1].error.text, "arrives at point-to-point op 1 instead of 0"));
	stop(&d);
	start(&d, "messages", "60s");
	POST(1, from(2, 64));
	fake_send(&f[1], WIRE_DONE, f[1].comm, 1, f[1].seq, &done, sizeof(done));
	assert_true(fakes_got(&f[1], 1, WIRE_ERROR, 1));
	assert_non_null(strstr(f[1].error.text, "which rank 1 has not begun"));
	stop(&d);
}

static void a_wrong_message_aborts(void **state)
{
	static const struct {
		uint32_t peer;
		uint16_t lane;
		uint64_t index;
		const char *why;
	} wrong[] = {
		{3, 0, 0, "lane 0: no such connection in this op"},
		{1, 0, 0, "lane 0: no such connection in this op"}, /* to oneself */
		{2, 1, 0, "lane 1: no such connection in this op"},
		{2, 0, 0, "lane 0: all 1 were here"}, /* the player has sent it */
		{2, 0, 9, "message 9 from rank 1 to rank 2, lane 0: all 1 were here"},
	};
	struct wire_hdr h;
	struct daemon d;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		start(&d, "messages", "60s");
		POST(1, from(3, 64), to(1, 9), from(1, 9), to(2, 100));
		wire_hdr_init(&h, WIRE_MESSAGE, 0);
		h.comm = f[1].comm;
		h.rank = 1;
		h.seq = WIRE_SEQ_P2P;
		h.peer = wrong[i].peer;
		h.lane = wrong[i].lane;
		h.index = wrong[i].index;
		link_send_copy(f[1].link, &h, NULL);
		link_progress(f[1].link);
		aborted(&d, 0, wrong[i].why);
	}
}

/* Waiting is named after 5 s and ends at the timeout. */
static void waiting_is_named_after_5_s_and_ends_at_the_timeout(void **state)
{
	struct daemon d;

	(void)state;
	start(&d, "none", "5500ms");
	POST(1, to(2, 100), from(3, 4096), from(2, 9), to(12, 5));
	POST(2, from(1, 100));
	over(2);
	sync_links();
	assert_non_null(strstr(f[0].status, "\"open_ops\": 1"));
	assert_non_null(strstr(f[0].status,
			       "for its receive of 4 KiB from rank 3 (receive 0 between "
			       "them), which rank 3 (pid "));
	assert_true(fakes_got(f, N, WIRE_ABORT, 1));
	assert_non_null(strstr(f[0].abort.text, "that is the timeout"));
	daemon_will_say(&d, "point-to-point op 0 of rank 1, communicator 1, has waited ");
	daemon_will_say(&d, "has not called, and for 1 more");
	stop(&d);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* All ranks, until it is over. Return: when the last one arrived. */
static uint64_t all_reduce_all(void)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < N; i++) {
		all_reduce(i);
		last = later(last, f[i].arrive.arrive_ns);
	}
	for (uint32_t i = 0; i < N; i++)
		over(i);
	return last;
}

#define MESSAGE_NS 5000 /* of some bytes; a rank that is later than that finds it there */

/* What @rank has computed since its last op was over; @before: that op's end. */
static uint64_t computed(uint32_t rank, uint64_t before)
{
	return f[rank].arrive.arrive_ns - before;
}

/* Rank 5 is slow: its template is rank 1, so an op waits for twice what rank 1 computed, whatever
 * the others did. Calls that rank 5 has no part in, though it is in their communicator, do not
 * wait. */
static void only_calls_with_a_slow_rank_wait_for_it(void **state)
{
	uint64_t last, before, lag;
	struct daemon d;

	(void)state;
	start_with(&d, "none", "60s", "slow:rank=5,compute=2");
	last = all_reduce_all();
	assert_int_equal(f[0].release.start_ns, last);
	clock_sleep_until_ns(clock_now_ns() + 20 * NS_PER_MS);
	before = f[1].release.end_ns;
	last = all_reduce_all();
	assert_int_equal(f[0].release.start_ns,
			 later(last, f[1].arrive.arrive_ns + computed(1, before)));
	before = f[1].release.end_ns;
	POST(1, from(6, 100));
	over(1);
	assert_int_equal(f[1].release.start_ns, f[1].arrive.arrive_ns);
	lag = computed(1, before);
	before = f[1].release.end_ns;
	POST(1, from(5, 100), to(6, 100));
	over(1);
	lag += computed(1, before) - MESSAGE_NS;
	assert_in_range(f[1].release.start_ns, f[1].arrive.arrive_ns + lag - 2,
			f[1].arrive.arrive_ns + lag + 2);
	stop(&d);
}

/* Several slow ranks: an op waits for the slowest, whose template computed longest; for rank 4,
 * which is not named, it does not wait. */
static void calls_wait_for_the_slowest_of_several(void **state)
{
	static const char *const what_ifs[] = {"slow:rank=5-6,compute=2",
					       "slow:rank=6+5,compute=2"};
	uint64_t last, before[N];
	struct daemon d;

	(void)state;
	for (size_t w = 0; w < sizeof(what_ifs) / sizeof(what_ifs[0]); w++) {
		start_with(&d, "none", "60s", what_ifs[w]);
		all_reduce_all();
		for (uint32_t i = 0; i < N; i++)
			before[i] = f[i].release.end_ns;
		last = all_reduce_all();
		assert_int_equal(f[0].release.start_ns,
				 later(last,
				       later(f[1].arrive.arrive_ns + computed(1, before[1]),
					     f[2].arrive.arrive_ns + computed(2, before[2]))));
		stop(&d);
	}
}

/* A send that fits the buffers waits for nobody. */
static void a_send_is_over_when_it_is_handed_over(void **state)
{
	struct daemon d;

	(void)state;
	start_with(&d, "none", "60s", "slow:rank=5,compute=2");
	POST(1, to(5, 100));
	over(1);
	assert_int_equal(f[1].release.end_ns, f[1].arrive.arrive_ns);
	POST(1, to(5, UINT64_C(1) << 30));
	over(1);
	assert_true(f[1].release.end_ns > f[1].arrive.arrive_ns);
	stop(&d);
}

/* Lag stays with the rank that has it, until it waits. Rank 4 copies rank 0 and computes half as
 * long again; rank 0 receives from rank 8 three times, and so does rank 4 from rank 12, whose
 * messages are there when it comes. Then all meet. */
static void a_slow_rank_keeps_its_lag_from_op_to_op(void **state)
{
	uint64_t lag = 0, before;
	struct daemon d;

	(void)state;
	start_with(&d, "none", "60s", "slow:rank=4,compute=1.5");
	all_reduce_all();
	for (int i = 0; i < 3; i++) {
		before = f[0].release.end_ns;
		clock_sleep_until_ns(clock_now_ns() + 10 * NS_PER_MS);
		POST(0, from(8, 100));
		over(0);
		assert_int_equal(f[0].release.start_ns, f[0].arrive.arrive_ns);
		lag += computed(0, before) - 2 * MESSAGE_NS;
	}
	before = f[0].release.end_ns;
	all_reduce_all();
	lag += computed(0, before);
	assert_in_range(f[0].release.start_ns, f[0].arrive.arrive_ns + lag / 2 - 2,
			later(f[N - 1].arrive.arrive_ns, f[0].arrive.arrive_ns + lag / 2 + 2));
	stop(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_those_who_call_take_part),
		cmocka_unit_test(only_calls_with_a_slow_rank_wait_for_it),
		cmocka_unit_test(calls_wait_for_the_slowest_of_several),
		cmocka_unit_test(a_send_is_over_when_it_is_handed_over),
		cmocka_unit_test(a_slow_rank_keeps_its_lag_from_op_to_op),
		cmocka_unit_test(a_group_may_meet_single_calls),
		cmocka_unit_test(calls_at_random_all_end),
		cmocka_unit_test(sizes_that_differ_abort),
		cmocka_unit_test(a_call_to_one_who_has_freed_aborts),
		cmocka_unit_test(a_call_to_one_who_vanished_aborts),
		cmocka_unit_test(a_wrong_frame_is_refused),
		cmocka_unit_test(a_wrong_message_aborts),
		cmocka_unit_test(waiting_is_named_after_5_s_and_ends_at_the_timeout),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
