/* Refusals of the connection manager (fake-verbs.h): addresses, routes and devices. */
#include "rdma-ends.h"

static void expect_words(const char *text, const char *a, const char *b)
{
	if (!strstr(text, a) || !strstr(text, b))
		fail_msg("%s; wanted: %s ... %s", text, a, b);
}

static void each_event_ends_an_attempt_in_its_words(void **state)
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
	int r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_faults.cm_event = cases[i].event;
		fake_faults.cm_status = cases[i].status;
		assert_int_equal(try_connect(&e, &r, &why), cases[i].code);
		expect_words(e.err.text, cases[i].who, cases[i].words);
		assert_null(strchr(e.err.text, '?')); /* unknown things are not named */
		assert_int_equal(r, -EAGAIN);
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
static void a_removed_device_ends_links_and_is_listened_at_again(void **state)
{
	struct link *link = NULL;
	struct rdma_hub *h;
	struct err err;
	struct ends e;
	char addr[64];

	(void)state;
	ends_open(&e);
	move(&e, 5);
	fake_cm_tell_all(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	until_closed(&e, &e.a);
	until_closed(&e, &e.b);
	expect_end(&e.a, -ENODEV, "the device was removed");
	expect_end(&e.b, -ENODEV, "the device was removed");
	/* the listener wakes, whichever end read the event */
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
	assert_int_equal(e.r, 0);
	move(&e, 5);
	ends_close(&e);
}

/* The accepting end learns that the last step failed. */
static void an_accepted_link_that_fails_is_told(void **state)
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

static void a_bad_address_to_listen_at_is_a_sentence(void **state)
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

static void a_device_that_cannot_be_opened_is_named(void **state)
{
	struct err why;
	struct ends e;
	int r;

	(void)state;
	fake_faults.open_errno = EACCES;
	assert_int_equal(try_connect(&e, &r, &why), -EACCES);
	expect_words(e.err.text, "connect to rdma:127.0.0.1:",
		     "device fake0 cannot be opened: Permission denied");
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_event_ends_an_attempt_in_its_words),
		T(a_removed_device_ends_links_and_is_listened_at_again),
		T(an_accepted_link_that_fails_is_told),
		T(a_bad_address_to_listen_at_is_a_sentence),
		T(a_device_that_cannot_be_opened_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
