/* What the connection manager refuses an rdma link (fake-verbs.h): addresses, routes, devices,
 * and lost links that come back as others. */
#include "rdma-ends.h"

static void expect_words(const char *text, const char *a, const char *b)
{
	if (!strstr(text, a) || !strstr(text, b))
		fail_msg("%s; wanted: %s ... %s", text, a, b);
}

static void events_that_end_an_attempt(void **state)
{
	static const struct {
		enum rdma_cm_event_type event;
		int status, code;
		const char *who, *words;
	} cases[] = {
		{RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, -EHOSTUNREACH, "connect to rdma:127.0.0.1:",
		 "no RDMA device of this host reaches that address (RDMA_CM_EVENT_ADDR_ERROR: No such device)"},
		{RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, -EHOSTUNREACH, "connect to rdma:127.0.0.1:",
		 "no route to that address (RDMA_CM_EVENT_ROUTE_ERROR: Connection timed out)"},
		{RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, -EPROTO, "device fake0 port 1, QP ",
		 "the connection could not be made (RDMA_CM_EVENT_CONNECT_ERROR: Invalid argument)"},
		{RDMA_CM_EVENT_DEVICE_REMOVAL, 0, -ENODEV, "device fake0 port 1, QP ",
		 "the device was removed (RDMA_CM_EVENT_DEVICE_REMOVAL)"},
	};
	struct err why;
	struct ends e;
	int rc;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_faults.cm_event = cases[i].event;
		fake_faults.cm_status = cases[i].status;
		assert_int_equal(try_connect(&e, &rc, &why), cases[i].code);
		expect_words(e.err.text, cases[i].who, cases[i].words);
		assert_null(strchr(e.err.text, '?')); /* what is not known is not named */
		assert_int_equal(rc, -EAGAIN);
		ends_close(&e);
	}
}

static void tick_hub(struct rdma_hub *h)
{
	const struct itimerspec at_once = {.it_value.tv_nsec = 1};

	assert_int_equal(timerfd_settime(h->timer_fd, 0, &at_once, NULL), 0);
	assert_int_equal(poll(&(struct pollfd){.fd = h->timer_fd, .events = POLLIN}, 1, 20000), 1);
}

/* Links that are up; and the listener, which says so once, and once that it is back: at the same
 * address, with nothing kept open of the device that went. */
static void a_device_is_removed(void **state)
{
	struct rdma_options o = use_options();
	struct link *link = NULL;
	struct rdma_hub *h;
	struct err err;
	struct ends e;
	char addr[64];

	(void)state;
	o.reconnect = 5; /* there is nothing to come back to */
	rdma_options_use(&o);
	ends_open(&e);
	move(&e, 5);
	fake_cm_tell_all(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	until_closed(&e, &e.a);
	until_closed(&e, &e.b);
	expect_end(&e.a, -ENODEV, "the device was removed");
	expect_end(&e.b, -ENODEV, "the device was removed");
	/* whoever read the event, the listener wakes */
	assert_int_equal(poll(&(struct pollfd){.fd = listener_fd(e.l), .events = POLLIN}, 1, 20000),
			 1);
	assert_int_equal(link_accept(e.l, &peer_events, NULL, &link, &err), -ENODEV);
	expect_words(err.text, "rdma:127.0.0.1:", "nobody can connect until it is back");
	assert_int_equal(link_accept(e.l, &peer_events, NULL, &link, &err), -EAGAIN);
	snprintf(addr, sizeof(addr), "%s", listener_addr(e.l));
	h = rdma_of(e.a.link)->hub; /* the listener's */
	e.a.link = link_free(e.a.link);
	e.b.link = link_free(e.b.link);
	fake_faults.bind_errno = ENODEV;
	tick_hub(h);
	assert_int_equal(link_accept(e.l, &peer_events, NULL, &link, &err), -EAGAIN);
	assert_null(h->devs);
	assert_int_equal(fake_leaks(), 0); /* while it is away nothing of it is held */

	fake_faults.bind_errno = 0;
	assert_int_equal(link_accept(e.l, &peer_events, NULL, &link, &err),
			 -EAGAIN); /* not twice in a second */
	tick_hub(h);
	assert_int_equal(link_accept(e.l, &peer_events, NULL, &link, &err), LINK_LISTENS_AGAIN);
	expect_words(err.text, addr, "is back");
	assert_string_equal(listener_addr(e.l), addr);
	peer_deinit(&e.a);
	peer_deinit(&e.b);
	peer_init(&e.a, 1);
	peer_init(&e.b, 1);
	assert_int_equal(ends_meet(&e, connect_b, &err), 0);
	assert_int_equal(e.rc, 0);
	move(&e, 5);
	ends_close(&e);
}

/* Who has accepted is told that the last step failed. */
static void an_accepted_link_that_fails(void **state)
{
	struct ends e;

	(void)state;
	fake_faults.drop_establish = true;
	ends_open(&e);
	fake_cm_tell_all(RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	until_closed(&e, &e.a);
	expect_end(
		&e.a, -EPROTO,
		"the connection could not be made (RDMA_CM_EVENT_CONNECT_ERROR: Connection timed out)");
	ends_close(&e);
}

static void addresses_to_listen_at(void **state)
{
	static const struct {
		const char *addr;
		int code;
		const char *words;
	} cases[] = {
		{"rdma:203.0.113.9:4000", -EADDRNOTAVAIL,
		 "no RDMA device of this host has that address"},
		{"rdma:192.0.2.9:4000", -ENODEV, "no RDMA device of this host has that address"},
	};
	struct listener *l, *other;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(listener_open(cases[i].addr, &l, &err), cases[i].code);
		expect_words(err.text, cases[i].addr, cases[i].words);
	}
	assert_int_equal(listener_open(ADDR, &l, &err), 0);
	assert_int_equal(listener_open(listener_addr(l), &other, &err), -EADDRINUSE);
	expect_words(err.text, listener_addr(l), "stop it or choose another --addr");
	listener_free(l);
}

static void a_device_that_cannot_be_opened(void **state)
{
	struct err why;
	struct ends e;
	int rc;

	(void)state;
	fake_faults.open_errno = EACCES;
	assert_int_equal(try_connect(&e, &rc, &why), -EACCES);
	expect_words(e.err.text, "connect to rdma:127.0.0.1:",
		     "device fake0 cannot be opened: Permission denied");
	ends_close(&e);
}

/* --- lost links that come back as others --------------------------------------------------- */

static void lose(struct ends *e)
{
	uint64_t sent = e->b.n_sent;

	fake_faults.send_number = 1;
	fake_faults.send_status = IBV_WC_RETRY_EXC_ERR;
	send_n(&e->b, &sent, 1, 8);
	link_progress(e->b.link);
}

static void another_link(struct rdma_hello *h, bool is_answer)
{
	h->link_id ^= is_answer ? 0 : 1;
}
static void more_qps(struct rdma_hello *h, bool is_answer)
{
	h->n_qps = is_answer ? h->n_qps : 2;
	h->qpn[1] = h->qpn[0] + 1;
}
static void another_window(struct rdma_hello *h, bool is_answer)
{
	h->window = (uint16_t)(h->window / (is_answer ? 1 : 2));
}
static void another_window_in_the_answer(struct rdma_hello *h, bool is_answer)
{
	h->window = (uint16_t)(h->window / (is_answer ? 2 : 1));
}
static void a_new_one_in_the_answer(struct rdma_hello *h, bool is_answer)
{
	h->kind = is_answer ? RDMA_HELLO_NEW : h->kind;
}
static void another_slot(struct rdma_hello *h, bool is_answer)
{
	h->slot_bytes = (uint16_t)(h->slot_bytes / (is_answer ? 1 : 2));
}
static void pieces_never_sent(struct rdma_hello *h, bool is_answer)
{
	h->rx_next += is_answer ? 0 : 5;
}
static void pieces_never_sent_in_the_answer(struct rdma_hello *h, bool is_answer)
{
	h->rx_next += is_answer ? 5 : 0;
}

#define ANOTHER "it is another one than it was"
#define NEVER_SENT "the peer says it has pieces that were never sent"

static void resumed_as_another(void **state)
{
	static const struct {
		void (*edit)(struct rdma_hello *h, bool is_answer);
		int accept;        /* what the listener is told; 0: nothing */
		const char *words; /* ... and by the link, if it is ended by that */
		int code;          /* of who connected, at last, and its words */
		const char *last;
	} cases[] = {
		{another_link, -ENOENT, "wants to resume a link that is not known", -ECONNREFUSED,
		 "it does not know the link that was to be resumed"},
		{more_qps, -ENOENT, "wants to resume a link that is not known", -ECONNREFUSED,
		 "it does not know the link that was to be resumed"},
		{another_window, -EPROTO, ANOTHER, -ECONNREFUSED, "it does not know the link"},
		{another_slot, -EPROTO, ANOTHER, -ECONNREFUSED, "it does not know the link"},
		{pieces_never_sent, -EPROTO, NEVER_SENT, -ECONNREFUSED,
		 "it does not know the link"},
		{another_window_in_the_answer, 0, NULL, -EPROTO, ANOTHER},
		{a_new_one_in_the_answer, 0, NULL, -EPROTO, ANOTHER},
		{pieces_never_sent_in_the_answer, 0, NULL, -EPROTO, NEVER_SENT},
	};
	struct rdma_options o = use_options();
	struct ends e;

	(void)state;
	o.reconnect = 2;
	rdma_options_use(&o);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t due_ns = clock_now_ns() + 60 * NS_PER_S;
		struct err first = {.text = ""};
		struct link *other = NULL;
		int rc = 0;

		fake_reset();
		ends_open(&e);
		e.a.discard_percent = 100;
		until_up(&e);
		lose(&e);
		fake_faults.edit_hello = cases[i].edit;
		while (!e.a.n_closed || !e.b.n_closed) {
			struct err err;
			int got = link_accept(e.l, &peer_events, NULL, &other, &err);

			if (got != -EAGAIN && !rc) {
				rc = got;
				first = err;
			}
			move(&e, 1);
			if (e.b.n_closed)
				tick(&e.a);
			else if (rdma_of(e.b.link)->state == RDMA_LOST &&
				 !rdma_resume_has_step(rdma_of(e.b.link)))
				tick(&e.b); /* the next attempt */
			assert_true(clock_now_ns() < due_ns);
		}
		assert_int_equal(e.a.n_frames, 0);
		assert_int_equal(rc, cases[i].accept);
		if (rc == -ENOENT)
			expect_words(first.text, "rdma:", cases[i].words);
		else if (rc)
			expect_words(first.text, "device fake0 port 1 to rdma:", cases[i].words);
		expect_words(e.a.why, "device fake0 port 1", " to rdma:");
		if (cases[i].accept == -EPROTO) {
			expect_words(e.a.why,
				     "it came back, but cannot be resumed: ", cases[i].words);
			assert_int_equal(e.a.closed_code, -EPROTO);
		} else {
			expect_words(e.a.why, "it did not come back in time", "");
		}
		assert_int_equal(e.b.closed_code, cases[i].code);
		expect_words(e.b.why, "device fake0 port 1", " to rdma:127.0.0.1:");
		expect_words(e.b.why, cases[i].last,
			     "lost, and 2 attempts to connect again failed, the last: ");
		ends_close(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(events_that_end_an_attempt),     T(a_device_is_removed),
		T(an_accepted_link_that_fails),    T(addresses_to_listen_at),
		T(a_device_that_cannot_be_opened), T(resumed_as_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
