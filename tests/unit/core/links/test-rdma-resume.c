/* A lost rdma link made again (fake-verbs.h): nothing is lost or doubled, and what does not
 * come back ends in bounded time. */
#include "rdma-ends.h"

#include <unistd.h>

static bool is_up(const struct link *l)
{
	return rdma_of(l)->state == RDMA_UP;
}

/* Every so many sends one is lost with its connection, or arrives and its answer is lost:
 * both ends go on where they were. The conversation checks order, count and every byte. */
static void nothing_is_lost_or_doubled(void **state)
{
	static const uint32_t every[] = {7, 23, 61};
	struct rdma_options o = use_options();

	(void)state;
	rdma_tick_ms = 40;
	o.reconnect = 1000; /* attempts are counted by the clock */
	for (unsigned int i = 0; i < 12; i++) {
		o.qps = i % 4 == 3 ? 3 : 1;
		o.ring_bytes = i % 2 ? RDMA_RING_MIN * 4 : UINT32_C(4) << 20;
		rdma_options_use(&o);
		converse_calm = fake_reset;
		converse_is_up = is_up;
		fake_faults.send_status = IBV_WC_RETRY_EXC_ERR;
		fake_faults.send_number = fake_faults.send_every = every[i % 3];
		fake_faults.send_arrives = i / 3 % 2;
		converse(ADDR, 60, i < 6 ? 100 : 40, i < 6 ? 100 : 0, i % 5 == 4 ? 10 : 0);
	}
	converse_calm = NULL;
}

static void lose_once(struct ends *e, uint64_t *sent)
{
	fake_faults.send_number = 1;
	fake_faults.send_status = IBV_WC_RETRY_EXC_ERR;
	send_n(&e->b, sent, 1, 8);
	link_progress(e->b.link);
}

/* Both ends and the listener move until @n frames have come to the one who accepted. */
static void until_there(struct ends *e, uint64_t n)
{
	uint64_t due_ns = clock_now_ns() + 60 * NS_PER_S;
	struct link *other = NULL;

	while (e->a.n_frames < n && !e->a.n_closed && !e->b.n_closed) {
		move(e, 1);
		assert_true(link_accept(e->l, &peer_events, NULL, &other, NULL) < 0);
		assert_true(clock_now_ns() < due_ns);
	}
	assert_int_equal(e->a.n_frames, n);
	assert_false(e->a.bad);
}

/* Both processes stand still for longer than any bound: what came meanwhile counts, not the time.
 */
static void a_stop_while_it_is_lost(void **state)
{
	struct rdma_options o = use_options();
	uint64_t sent = 0, due_ns;
	struct ends e;

	(void)state;
	rdma_tick_ms = 200;
	o.reconnect = 2; /* who has accepted waits for 7 ticks */
	rdma_options_use(&o);
	ends_open(&e);
	e.a.discard_percent = 100;
	move(&e, 5);
	lose_once(&e, &sent);
	due_ns = clock_now_ns() + 60 * NS_PER_S;
	while (rdma_of(e.a.link)->state != RDMA_LOST) {
		link_progress(e.b.link);
		link_progress(e.a.link);
		assert_true(clock_now_ns() < due_ns);
	}
	usleep(2000000);
	until_there(&e, 1);
	ends_close(&e);
}

/* Nobody answers for a while: attempts a second apart, then it goes on. */
static void a_cut_that_heals(void **state)
{
	struct rdma_options o = use_options();
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	rdma_tick_ms = 200;
	o.reconnect = 300;
	rdma_options_use(&o);
	ends_open(&e);
	e.a.discard_percent = 100;
	move(&e, 5);
	lose_once(&e, &sent);
	fake_faults.is_cut = true;
	for (uint64_t due_ns = clock_now_ns() + 700 * NS_PER_MS; clock_now_ns() < due_ns;) {
		move(&e, 1);
		usleep(1000);
	}
	assert_int_equal(e.a.n_closed + e.b.n_closed, 0);
	fake_faults.is_cut = false;
	send_n(&e.b, &sent, 3, 8);
	until_there(&e, 4);
	ends_close(&e);
}

/* What is said of the connection after a loss names none of the queue pair that was lost. */
static void what_failed_before(void **state)
{
	struct rdma_options o = use_options();
	char name[64];
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	rdma_tick_ms = 200;
	o.reconnect = 300;
	o.qps = 2;
	rdma_options_use(&o);
	ends_open(&e);
	e.a.discard_percent = 100;
	move(&e, 5);
	fake_faults.send_number = 2;
	fake_faults.send_status = IBV_WC_RETRY_EXC_ERR;
	for (int i = 0; i < 2; i++) {
		send_n(&e.b, &sent, 1, 8);
		link_progress(e.b.link);
	}
	until_there(&e, 2);
	until_up(&e);
	assert_true(rdma_of(e.b.link)->is_again);
	snprintf(name, sizeof(name),
		 "port 1, QP %u to rdma:", rdma_of(e.b.link)->qps[0].qp->qp_num);
	fake_cm_tell_all(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	until_closed(&e, &e.b);
	if (!strstr(e.b.why, name))
		fail_msg("%s: %s", name, e.b.why);
	ends_close(&e);
}

/* The device goes while a link is lost: who waits for the other end waits no longer. */
static void a_device_removed_meanwhile(void **state)
{
	struct rdma_options o = use_options();
	uint64_t sent[2] = {0};
	struct ends e;

	(void)state;
	o.reconnect = 300;
	rdma_options_use(&o);
	ends_open(&e);
	until_up(&e);
	fake_faults.is_cut = true;
	send_n(&e.a, &sent[0], 1, 8);
	send_n(&e.b, &sent[1], 1, 8);
	move(&e, 100);
	assert_int_equal(rdma_of(e.a.link)->state, RDMA_LOST);
	fake_cm_tell_all(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	until_closed(&e, &e.a); /* there are no ticks */
	assert_int_equal(e.a.closed_code, -ENODEV);
	assert_non_null(strstr(e.a.why, "device fake0 port 1 to rdma:"));
	assert_non_null(strstr(e.a.why, "the device was removed (RDMA_CM_EVENT_DEVICE_REMOVAL)"));
	ends_close(&e);
}

/* The one who connects gives attempts up before they are accepted: a later one counts. */
static void attempts_given_up(void **state)
{
	struct rdma_options o = use_options();
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	rdma_tick_ms = 100;
	o.reconnect = 300;
	rdma_options_use(&o);
	ends_open(&e);
	e.a.discard_percent = 100;
	move(&e, 5);
	fake_faults.n_given_up = 3;
	lose_once(&e, &sent);
	send_n(&e.b, &sent, 3, 8);
	until_there(&e, 4);
	assert_int_equal(fake_faults.n_given_up, 0);
	ends_close(&e);
}

/* As a_cut_that_heals(), after as many work requests as make a 32-bit count end: a body that
 * nobody has got must not be given back, however the counts of old and new compare. */
static void lent_memory_after_many_sends(void **state)
{
	static const uint64_t edges[] = {UINT64_C(1) << 31, UINT64_C(1) << 32};
	struct rdma_options o = use_options();
	uint64_t sent, due_ns;
	struct ends e;

	(void)state;
	rdma_tick_ms = 40;
	o.reconnect = 1000; /* attempts are counted by the clock */
	rdma_options_use(&o);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(edges); i++) {
		struct rdma_qp *q;

		ends_open(&e);
		e.a.discard_percent = 100;
		move(&e, 5);
		q = &rdma_of(e.b.link)->qps[0];
		assert_int_equal(q->sq_posted, q->sq_done);
		q->sq_posted = q->sq_done = edges[i / 2] - 2 + i % 2 * 4; /* below, above */
		sent = 0;
		fake_faults.send_number = 1;
		fake_faults.send_status = IBV_WC_RETRY_EXC_ERR;
		fake_faults.is_cut = true;
		send_n(&e.b, &sent, 3, sizeof(bytes));
		for (due_ns = clock_now_ns() + 200 * NS_PER_MS; clock_now_ns() < due_ns;) {
			move(&e, 1);
			assert_int_equal(e.b.n_sent, 0);
			usleep(1000);
		}
		fake_faults.is_cut = false;
		due_ns = clock_now_ns() + 60 * NS_PER_S;
		while (e.b.n_sent < 3 && !e.a.n_closed && !e.b.n_closed) {
			struct link *other;

			move(&e, 1);
			assert_true(e.b.n_sent <= e.a.n_frames);
			assert_true(link_accept(e.l, &peer_events, NULL, &other, NULL) <
				    0); /* an attempt that was given up is another code */
			assert_true(clock_now_ns() < due_ns);
		}
		if (e.a.n_frames != 3)
			fail_msg("%lu frames came; accepted: '%s', connected: '%s'",
				 (unsigned long)e.a.n_frames, e.a.why, e.b.why);
		ends_close(&e);
		fake_reset();
	}
}

/* A port that is down: nothing is asked of the connection manager before it is up again. */
static void a_port_that_comes_back(void **state)
{
	struct rdma_options o = use_options();
	struct link *other = NULL;
	uint64_t sent = 0, due_ns;
	struct ends e;

	(void)state;
	rdma_tick_ms = 200;
	o.reconnect = 300;
	rdma_options_use(&o);
	ends_open(&e);
	e.a.discard_percent = 100;
	move(&e, 5);
	fake_async(IBV_EVENT_PORT_ERR);
	move(&e, 200);
	fake_faults.is_cut = fake_faults.is_mute = true;
	send_n(&e.b, &sent, 1, 8);
	send_n(&e.a, &(uint64_t){0}, 1, 8);
	for (due_ns = clock_now_ns() + 1500 * NS_PER_MS; clock_now_ns() < due_ns;) {
		move(&e, 1);
		usleep(1000);
	}
	assert_int_equal(e.a.n_closed + e.b.n_closed, 0);
	assert_int_equal(fake_faults.n_mute, 0);
	fake_faults.is_cut = fake_faults.is_mute = false;
	fake_async(IBV_EVENT_PORT_ACTIVE);
	send_n(&e.b, &sent, 3, 8);
	due_ns = clock_now_ns() + 60 * NS_PER_S;
	while (e.a.n_frames < 4 && !e.a.n_closed && !e.b.n_closed && clock_now_ns() < due_ns) {
		move(&e, 1);
		assert_true(link_accept(e.l, &peer_events, NULL, &other, NULL) <
			    0); /* an attempt that was given up is another code */
	}
	assert_int_equal(e.a.n_frames, 4);
	ends_close(&e);
}

/* It stays down: that is what the end of both says. */
static void a_port_that_stays_down(void **state)
{
	struct rdma_options o = use_options();
	struct ends e;

	(void)state;
	rdma_tick_ms = 100;
	o.reconnect = 3;
	rdma_options_use(&o);
	ends_open(&e);
	move(&e, 5);
	fake_async(IBV_EVENT_PORT_ERR);
	until_closed(&e, &e.b);
	assert_non_null(
		strstr(e.b.why, "3 attempts to connect again failed, the last: the port is down"));
	until_closed(&e, &e.a);
	assert_non_null(
		strstr(e.a.why,
		       "the port is down (IBV_EVENT_PORT_ERR); it did not come back in time"));
	ends_close(&e);
}

/* It never comes back: both ends say so, in bounded time. */
static void a_cut_that_does_not_heal(void **state)
{
	struct rdma_options o = use_options();
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	rdma_tick_ms = 200;
	o.reconnect = 2;
	rdma_options_use(&o);
	ends_open(&e);
	e.a.discard_percent = 100;
	move(&e, 5);
	lose_once(&e, &sent);
	fake_faults.is_cut = true;
	until_closed(&e, &e.b);
	assert_non_null(strstr(e.b.why, "2 attempts to connect again failed, the last: no answer"));
	until_closed(&e, &e.a);
	assert_non_null(strstr(e.a.why, "did not come back in time"));
	ends_close(&e);
}

/* The other end's device refuses a request: once, that is made good; each time, it ends. */
static void a_refused_request(void **state)
{
	struct rdma_options o = use_options();
	struct link *other = NULL;
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	rdma_tick_ms = 300;
	o.reconnect = 3;
	rdma_options_use(&o);
	ends_open(&e);
	e.a.discard_percent = 100;
	move(&e, 5);
	fake_faults.send_number = 1;
	fake_faults.send_status = IBV_WC_REM_INV_REQ_ERR;
	send_n(&e.b, &sent, 4, 8);
	until_there(&e, 4);
	fake_faults.send_number = fake_faults.send_every = 1;
	send_n(&e.b, &sent, 4, 8);
	for (uint64_t due_ns = clock_now_ns() + 60 * NS_PER_S;
	     !e.b.n_closed && clock_now_ns() < due_ns;) {
		move(&e, 1);
		link_accept(e.l, &peer_events, NULL, &other, NULL);
		usleep(1000);
	}
	assert_int_equal(e.b.n_closed, 1);
	assert_non_null(strstr(e.b.why, "3 attempts to connect again failed, the last: "));
	assert_non_null(strstr(e.b.why, "REM_INV_REQ_ERR"));
	until_closed(&e, &e.a);
	ends_close(&e);
}

/* With reconnecting on, an end in good order is still one at once. */
static void a_parting_word(void **state)
{
	struct rdma_options o = use_options();
	struct ends e;

	(void)state;
	o.reconnect = 5;
	rdma_options_use(&o);
	ends_open(&e);
	move(&e, 5);
	e.b.link = link_free(e.b.link);
	for (int i = 0; i < 100 && !e.a.n_closed; i++)
		link_progress(e.a.link);
	assert_int_equal(e.a.n_closed, 1);
	assert_int_equal(e.a.closed_code, 0);
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_is_lost_or_doubled),   T(a_cut_that_heals),
		T(a_stop_while_it_is_lost),      T(attempts_given_up),
		T(what_failed_before),           T(a_device_removed_meanwhile),
		T(a_port_that_comes_back),       T(a_port_that_stays_down),
		T(a_cut_that_does_not_heal),     T(a_refused_request),
		T(lent_memory_after_many_sends), T(a_parting_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
