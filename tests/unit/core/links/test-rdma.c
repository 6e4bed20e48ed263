/* The rdma link over a fake device that works (fake-verbs.h): the conversations of the other links,
 * full windows, order over several queue pairs. */
#include "rdma-ends.h"

static void a_conversation_polling(void **state)
{
	(void)state;
	converse(ADDR, 150, 0, 0, 0);
}

static void a_conversation_sleeping(void **state)
{
	(void)state;
	converse(ADDR, 150, 100, 100, 0);
}

static void a_conversation_with_holds(void **state)
{
	(void)state;
	converse(ADDR, 150, 50, 70, 20);
}

/* With --ib-poll busy an end never sleeps. */
static void a_conversation_busy_polling(void **state)
{
	struct rdma_options o = use_options();
	struct ends e;

	(void)state;
	o.is_busy_polling = true;
	rdma_options_use(&o);
	ends_open(&e);
	until_up(&e);
	assert_false(link_arm(e.a.link));
	assert_false(link_arm(e.b.link));
	ends_close(&e);
	converse(ADDR, 60, 0, 0, 10);
}

/* Completions come one at a time. */
static void completions_may_come_one_by_one(void **state)
{
	(void)state;
	fake_faults.poll_most = 1;
	converse(ADDR, 100, 60, 60, 10);
}

static void a_device_without_inline_works(void **state)
{
	(void)state;
	fake_faults.inline_most = 1;
	converse(ADDR, 100, 60, 60, 0);
}

static void a_conversation_over_several_queue_pairs(void **state)
{
	struct rdma_options o = use_options();

	(void)state;
	for (o.qps = 2; o.qps <= 4; o.qps++) {
		rdma_options_use(&o);
		converse(ADDR, 60, 60, 60, 10);
	}
}

/* A ring that is full all the time. */
static void the_smallest_ring_works(void **state)
{
	struct rdma_options o = use_options();

	(void)state;
	o.ring_bytes = RDMA_RING_MIN;
	rdma_options_use(&o);
	converse(ADDR, 60, 80, 80, 0);
}

/* Registered memory that must go again and again. */
static void the_smallest_cache_works(void **state)
{
	struct rdma_options o = use_options();

	(void)state;
	o.memory_bytes = UINT64_C(1) << 20;
	rdma_options_use(&o);
	converse(ADDR, 60, 0, 0, 0);
}

/* Memory that may be unmapped after it was sent is not kept registered; other memory is. */
static void passing_memory_is_not_kept_registered(void **state)
{
	struct ends e;
	uint64_t sent = 0, before;

	(void)state;
	ends_open(&e);
	e.a.discard_percent = 100;
	before = fake_leaks();
	send_n(&e.b, &sent, 3, 1 << 20);
	move(&e, 400);
	assert_int_equal(e.a.n_frames, 3);
	assert_int_equal(fake_leaks(), before + 1);
	link_lends_passing(e.b.link);
	send_n(&e.b, &sent, 3, 1 << 20);
	move(&e, 400);
	assert_int_equal(e.a.n_frames, 6);
	assert_int_equal(fake_leaks(), before);
	ends_close(&e);
}

/* A reader that holds: the writer stops at the window and the ring, nothing is lost. */
static void a_holding_reader_stops_its_writer(void **state)
{
	struct ends e;
	uint64_t sent = 0;

	(void)state;
	ends_open(&e);
	e.a.discard_percent = 100;
	e.a.hold_percent = 100;
	send_n(&e.b, &sent, 400, 300);
	send_n(&e.b, &sent, 20, 1 << 20);
	move(&e, 200);
	assert_int_equal(e.a.n_frames, 0);
	assert_true(link_queued_bytes(e.b.link) > (UINT64_C(12) << 20));
	e.a.hold_percent = 0;
	link_resume(e.a.link);
	move(&e, 5000);
	assert_int_equal(e.a.n_frames, 420);
	assert_int_equal(e.b.n_sent, 420);
	assert_int_equal(link_queued_bytes(e.b.link), 0);
	ends_close(&e);
}

/* One end has all its receives in use but those of control SENDs, and sleeps. The other end has
 * more news for it, of pieces and of the ring, than those receives can take. */
static void control_sends_never_outnumber_receives(void **state)
{
	struct rdma_options o = use_options();
	uint64_t sent = 0, sent_b = 0;
	struct ends e;

	(void)state;
	o.ring_bytes = RDMA_RING_MIN;
	rdma_options_use(&o);
	ends_open(&e);
	e.a.discard_percent = e.b.discard_percent = 100;
	e.b.hold_percent = 100;
	for (int i = 0; i < 4 * RDMA_WINDOW; i++) { /* more than go */
		send_n(&e.a, &sent, 1, 16);
		move(&e, 3);
	}
	for (int i = 0; i < RDMA_WINDOW; i++) {
		send_n(&e.b, &sent_b, 1, i < 8 ? RDMA_RING_MIN / 8 : 16);
		link_progress(e.b.link);
	}
	fake_faults.poll_most = 1; /* read and reported one at a time */
	for (int i = 0; i < 1000; i++)
		link_progress(e.a.link);
	assert_int_equal(fake_rnr(), 0);
	e.b.hold_percent = 0;
	link_resume(e.b.link);
	move(&e, 2000);
	assert_int_equal(e.a.n_frames, sent_b);
	assert_int_equal(e.b.n_frames, sent);
	ends_close(&e);
}

/* Pieces of one queue pair overtake those of another by far: frames still come in order. */
static void queue_pairs_may_overtake_each_other(void **state)
{
	struct rdma_options o = use_options();
	uint64_t sent = 0, before;
	struct ends e;

	(void)state;
	o.qps = 2;
	rdma_options_use(&o);
	ends_open(&e);
	peer_fill(bytes, sizeof(bytes), 1, 0);
	e.a.discard_percent = 100; /* order and count are checked; bytes by the conversations */
	move(&e, 10);
	fake_faults.hold_odd_qps = true;
	for (int i = 0; i < 30; i++) {
		send_n(&e.b, &sent, 1, 100);
		link_progress(e.b.link);
	}
	link_progress(e.a.link);
	before = e.a.n_frames;
	assert_true(before <= 1);
	fake_faults.hold_odd_qps = false;
	fake_release_held();
	move(&e, 50);
	assert_int_equal(e.a.n_frames, 30);
	assert_false(e.a.bad);
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_conversation_polling),
		T(a_conversation_sleeping),
		T(a_conversation_with_holds),
		T(a_conversation_busy_polling),
		T(completions_may_come_one_by_one),
		T(a_device_without_inline_works),
		T(a_conversation_over_several_queue_pairs),
		T(the_smallest_ring_works),
		T(the_smallest_cache_works),
		T(passing_memory_is_not_kept_registered),
		T(a_holding_reader_stops_its_writer),
		T(queue_pairs_may_overtake_each_other),
		T(control_sends_never_outnumber_receives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
