/* Faults that no real device has on demand (fake-verbs.h): each ends the rdma link in one sentence,
 * within a bound, with everything given back. */
#include "rdma-ends.h"

/* No end sends: the event itself must wake the sleeper. */
static void until_woken(struct peer *p)
{
	uint64_t due_ns = clock_now_ns() + 60 * NS_PER_S;

	while (!p->n_closed) {
		peer_wait(p, 1);
		assert_true(clock_now_ns() < due_ns);
	}
}

static void each_status_has_its_code_and_words(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		int code;
		const char *words;
	} cases[] = {
		{IBV_WC_REM_ACCESS_ERR, -EACCES,
		 "IBV_WC_REM_ACCESS_ERR (vendor 0x7): the other end's memory"},
		{IBV_WC_RNR_RETRY_EXC_ERR, -EPROTO, "IBV_WC_RNR_RETRY_EXC_ERR"},
		{IBV_WC_RETRY_EXC_ERR, -ETIMEDOUT, "NBOX_IB_TIMEOUT"},
		{IBV_WC_LOC_PROT_ERR, -EFAULT, "unmapped"},
		{IBV_WC_FATAL_ERR, -EIO, "the device failed"},
		{IBV_WC_WR_FLUSH_ERR, -ECONNRESET, "IBV_WC_WR_FLUSH_ERR"},
		{IBV_WC_GENERAL_ERR, -EIO, "status 21 (a status, vendor 0x7)"},
	};
	uint64_t sent;
	struct ends e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ends_open(&e);
		sent = 0;
		move(&e, 5);
		fake_faults.send_number = 2;
		fake_faults.send_status = cases[i].status;
		send_n(&e.b, &sent, 1, 1 << 20);
		until_closed(&e, &e.b);
		expect_end(&e.b, cases[i].code, cases[i].words);
		assert_int_equal(e.b.n_sent, 0); /* lent bodies are the owner's again */
		assert_int_equal(link_send(e.b.link, &(struct wire_hdr){0}, NULL, 0), -EPIPE);
		ends_close(&e);
	}
}

/* Of several queue pairs the one that failed is named, by a completion or an event. */
static void the_queue_pair_that_failed_is_named(void **state)
{
	struct rdma_options o = use_options();
	char name[64];
	uint64_t sent;
	struct ends e;

	(void)state;
	o.qps = 3;
	rdma_options_use(&o);
	for (uint32_t failed = 0; failed < 3; failed++) {
		ends_open(&e);
		move(&e, 5);
		snprintf(name, sizeof(name),
			 "port 1, QP %u to rdma:", rdma_of(e.b.link)->qps[failed].qp->qp_num);
		fake_faults.send_number = failed + 1;
		fake_faults.send_status = IBV_WC_REM_ACCESS_ERR;
		sent = 0;
		for (uint32_t i = 0; i <= failed; i++) {
			send_n(&e.b, &sent, 1, 8);
			link_progress(e.b.link);
		}
		until_closed(&e, &e.b);
		expect_end(&e.b, -EACCES, name);
		ends_close(&e);
	}
	ends_open(&e);
	until_up(&e);
	snprintf(name, sizeof(name),
		 "port 1, QP %u to rdma:", rdma_of(e.a.link)->qps[2].qp->qp_num);
	fake_async(IBV_EVENT_QP_FATAL); /* the newest: of the end that accepted */
	until_closed(&e, &e.a);
	expect_end(&e.a, -EIO, name);
	ends_close(&e);
}

/* The process of the peer has ended, between two frames. The sentence names the peer. */
static void a_peer_that_has_left_is_named(void **state)
{
	char name[64];
	struct ends e;

	(void)state;
	ends_open(&e);
	until_up(&e);
	snprintf(name, sizeof(name),
		 "device fake0 port 1, QP %u to rdma:", rdma_of(e.a.link)->qps[0].qp->qp_num);
	e.b.link = link_free(e.b.link);
	until_woken(&e.a);
	expect_end(&e.a, 0, "the peer closed the connection (RDMA_CM_EVENT_DISCONNECTED)");
	assert_non_null(strstr(e.a.why, name));
	ends_close(&e);
}

/* The counts of work requests pass 2^31 and 2^32: a lent body is not given back before the peer
 * has it, and is given back then. */
static void counts_may_pass_32_bits(void **state)
{
	static const uint64_t starts[] = {(UINT64_C(1) << 31) - 2, (UINT64_C(1) << 31) + 2,
					  (UINT64_C(1) << 32) - 2, (UINT64_C(1) << 32) + 2};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(starts); i++) {
		bool arrives = i % 2;
		uint64_t sent = 0;
		struct rdma_qp *q;
		struct ends e;

		ends_open(&e);
		e.a.discard_percent = 100;
		move(&e, 5);
		q = &rdma_of(e.b.link)->qps[0];
		assert_int_equal(q->sq_posted, q->sq_done);
		q->sq_posted = q->sq_done = starts[i / 2];
		fake_faults.is_vanishing = !arrives;
		send_n(&e.b, &sent, 3, sizeof(bytes));
		move(&e, 50);
		assert_int_equal(e.a.n_frames, arrives ? 3 : 0);
		assert_int_equal(e.b.n_sent, arrives ? 3 : 0);
		assert_int_equal(e.a.n_closed + e.b.n_closed, 0);
		fake_faults.is_cut = true; /* or the end would wait for answers */
		ends_close(&e);
		fake_reset();
	}
}

static void a_wrong_immediate_ends_the_link(void **state)
{
	static const uint32_t wrong[] = {70, 1, 0x7fffffff, RDMA_CTL_FLAG | 5};
	uint64_t sent;
	struct ends e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		ends_open(&e);
		sent = 0;
		send_n(&e.b, &sent, 1, 8);
		move(&e, 10);
		fake_faults.imm_number = 2;                     /* of the body */
		fake_faults.imm = wrong[i] == 1 ? 0 : wrong[i]; /* 0: a number that was there */
		send_n(&e.b, &sent, 1, 100000);
		until_closed(&e, &e.a);
		expect_end(&e.a, -EPROTO, "the peer broke the rules");
		ends_close(&e);
	}
}

/* Events of a device reach every hub that uses it: here the listener's and the connecting link's.
 * Events of a queue or queue pair reach only the hub that owns it. */
static void device_events_reach_every_hub(void **state)
{
	static const struct {
		enum ibv_event_type type;
		int code;
		const char *words;
		bool is_for_both;
	} cases[] = {
		{IBV_EVENT_DEVICE_FATAL, -ENODEV, "IBV_EVENT_DEVICE_FATAL", true},
		{IBV_EVENT_CQ_ERR, -EIO, "completion queue overran", false},
		{IBV_EVENT_QP_FATAL, -EIO, "an event", false},
	};
	struct ends e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ends_open(&e);
		move(&e, 5);
		fake_async(cases[i].type);
		if (cases[i].is_for_both) {
			until_woken(&e.b);
			expect_end(&e.b, cases[i].code, cases[i].words);
		}
		/* the newest queue pair is that of the end that accepted */
		until_woken(&e.a);
		expect_end(&e.a, cases[i].code, cases[i].words);
		ends_close(&e);
	}
}

/* A port that comes back in time is no error; one that stays down is, to each end. */
static void a_port_that_stays_down_ends_both_links(void **state)
{
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	ends_open(&e);
	move(&e, 5);
	fake_async(IBV_EVENT_PORT_ERR);
	move(&e, 200);
	tick(&e.a);
	tick(&e.b);
	fake_async(IBV_EVENT_PORT_ACTIVE);
	send_n(&e.b, &sent, 3, 8);
	move(&e, 200);
	assert_int_equal(e.a.n_frames, 3);
	fake_async(IBV_EVENT_PORT_ERR);
	for (int i = 0; i < 10; i++) {
		if (!e.a.n_closed)
			tick(&e.a);
		if (!e.b.n_closed)
			tick(&e.b);
	}
	expect_end(&e.a, -ENETDOWN, "the port is down");
	expect_end(&e.b, -ENETDOWN, "the port is down");
	ends_close(&e);
}

/* The peer's host is gone, and no end sends: its silence ends the link. */
static void a_silent_peer_is_noticed(void **state)
{
	uint64_t start_ns = clock_now_ns();
	struct ends e;

	(void)state;
	rdma_tick_ms = 200;
	ends_open(&e);
	move(&e, 5);
	fake_faults.is_cut = true;
	while (!e.a.n_closed) {
		peer_wait(&e.a, 1);
		assert_true(clock_now_ns() - start_ns < 60 * NS_PER_S);
	}
	expect_end(&e.a, -ETIMEDOUT, "does not answer");
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_status_has_its_code_and_words),
		T(a_wrong_immediate_ends_the_link),
		T(device_events_reach_every_hub),
		T(a_port_that_stays_down_ends_both_links),
		T(the_queue_pair_that_failed_is_named),
		T(a_peer_that_has_left_is_named),
		T(a_silent_peer_is_noticed),
		T(counts_may_pass_32_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
