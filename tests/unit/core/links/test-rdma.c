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

/* What the owner registers is registered once, and for no other memory's sake given up. */
static void registered_memory_is_registered_once(void **state)
{
	struct link_memory *m;
	struct wire_hdr h;
	struct ends e;
	uint64_t before;
	struct err err;

	(void)state;
	ends_open(&e);
	until_up(&e);
	e.a.discard_percent = 100;
	before = fake_leaks();
	assert_int_equal(link_register(e.b.link, bytes, 1 << 20, &m, &err), 0);
	for (uint64_t i = 0; i < 6; i++) {
		wire_hdr_init(&h, WIRE_MESSAGE, 1 << 19);
		h.index = i;
		assert_int_equal(link_send_from(e.b.link, &h, bytes + (i << 16), m, i), 0);
	}
	move(&e, 400);
	assert_int_equal(e.a.n_frames, 6);
	assert_int_equal(fake_leaks(), before + 1);
	link_unregister(e.b.link, m);
	assert_int_equal(fake_leaks(), before);
	fake_faults.reg_errno = ENOMEM;
	fake_faults.reg_bytes = 1 << 20;
	assert_int_equal(link_register(e.b.link, bytes, 1 << 20, &m, &err), -ENOMEM);
	assert_null(m);
	assert_non_null(strstr(err.text, "cannot be registered"));
	fake_faults.reg_errno = 0;
	assert_int_equal(link_register(e.b.link, bytes, 1 << 20, &m, &err), 0);
	ends_close(&e); /* which ends what is registered */
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

/* Bodies that are read by their receiver's device, in both directions. */
static void conversations_of_offers(void **state)
{
	struct rdma_options o = use_options();

	(void)state;
	peers_read = true;
	for (o.qps = 1; o.qps <= 3; o.qps++) {
		rdma_options_use(&o);
		fake_seen.n_reads = 0;
		converse(ADDR, 80, 40 * (o.qps - 1), 50, 10);
		assert_true(fake_seen.n_reads > 10);
	}
	long_bytes = (UINT64_C(17) << 20) + 5;
	converse(ADDR, 4, 50, 50, 10);
	fake_faults.has_no_read = true;
	fake_seen.n_reads = 0;
	converse(ADDR, 4, 50, 0, 0);
	long_bytes = 0;
	converse(ADDR, 40, 50, 0, 0);
	assert_int_equal(fake_seen.n_reads, 0);
	peers_read = false;
}

static int count_frame(struct peer *p, const struct wire_hdr *h, const void *body)
{
	(void)h;
	(void)body;
	p->n_frames++;
	return 0;
}

static void offer_n(struct peer *p, uint64_t *sent, unsigned int n, uint64_t body)
{
	struct wire_hdr h;

	for (; n; n--) {
		wire_hdr_init(&h, WIRE_MESSAGE, body);
		h.index = (*sent)++;
		assert_int_equal(link_send_offer(p->link, &h, bytes, h.index), 0);
	}
}

/* An offer goes straight from memory to memory, and is the owner's again when it was read. */
static void offers_pass_by_the_ring(void **state)
{
	struct ends e;
	uint64_t sent = 0;

	(void)state;
	ends_open(&e);
	until_up(&e);
	assert_true(link_reads(e.a.link) && link_reads(e.b.link));
	e.a.reads = true;
	e.a.hold_percent = 100;
	offer_n(&e.b, &sent, 3, 1 << 20);
	move(&e, 100);
	assert_int_equal(e.b.n_sent, 0);
	e.a.hold_percent = 0;
	link_resume(e.a.link);
	e.a.on_frame = count_frame;
	move(&e, 100);
	assert_int_equal(e.a.n_frames, 3);
	assert_int_equal(e.b.n_sent, 3);
	assert_int_equal(fake_seen.n_reads, 3);
	assert_memory_equal(e.a.body, bytes, 1 << 20);
	assert_int_equal(rdma_of(e.b.link)->tx_ring_sent, 0);
	e.a.discard_percent = 100; /* ... which needs no READ */
	offer_n(&e.b, &sent, 3, 1 << 20);
	move(&e, 100);
	assert_int_equal(e.b.n_sent, 6);
	assert_int_equal(fake_seen.n_reads, 3);
	ends_close(&e);
}

/* An owner that has registered nothing is offered nothing by a peer that keeps the rules. */
static void an_offer_that_goes_nowhere_ends_the_link(void **state)
{
	struct ends e;
	uint64_t sent = 0;

	(void)state;
	ends_open(&e);
	offer_n(&e.b, &sent, 1, 1 << 20);
	move(&e, 100);
	expect_end(&e.a, -EPROTO, "it offers what is no body of a message");
	ends_close(&e);
}

/* What it was offered is gone before it could be read. */
static void a_read_that_fails_ends_the_link(void **state)
{
	struct ends e;
	uint64_t sent = 0;

	(void)state;
	ends_open(&e);
	until_up(&e);
	e.a.reads = true;
	e.a.hold_percent = 100;
	offer_n(&e.b, &sent, 1, 1 << 20);
	move(&e, 100);
	e.a.hold_percent = 0;
	link_resume(e.a.link);
	fake_faults.send_number = 1;
	fake_faults.send_status = IBV_WC_REM_ACCESS_ERR;
	move(&e, 100);
	assert_int_equal(e.a.n_closed, 1);
	assert_non_null(strstr(e.a.why, "IBV_WC_REM_ACCESS_ERR"));
	assert_int_equal(e.a.n_frames, 0);
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
		T(registered_memory_is_registered_once),
		T(passing_memory_is_not_kept_registered),
		T(conversations_of_offers),
		T(offers_pass_by_the_ring),
		T(an_offer_that_goes_nowhere_ends_the_link),
		T(a_read_that_fails_ends_the_link),
		T(a_holding_reader_stops_its_writer),
		T(queue_pairs_may_overtake_each_other),
		T(control_sends_never_outnumber_receives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
