/* For tests of the rdma link over the fake device (fake-verbs.h): two ends in one thread, and the
 * setup and teardown of each test. The teardown checks that nothing is left. */
#pragma once

#include "conversation.h"
#include "fake-verbs.h"

#include <sys/timerfd.h>

#include "base/cleanup.h"
#include "links/rdma/state.h"

#define ADDR "rdma:127.0.0.1:0"
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int setup(void **state)
{
	(void)state;
	fake_reset();
	rdma_tick_ms = 1000000;
	verbs_replace(&fake_verbs);
	return 0;
}

static int teardown(void **state)
{
	struct rdma_options o;

	(void)state;
	rdma_options_init(&o);
	rdma_options_use(&o);
	assert_int_equal(fake_leaks(), 0);
	assert_int_equal(fake_rnr(), 0);
	return 0;
}

static inline struct rdma_options use_options(void)
{
	struct rdma_options o;

	rdma_options_init(&o);
	return o;
}

struct ends {
	struct listener *l;
	struct peer a, b; /* a was accepted, b connected */
	pthread_t thread;
	int r, patience_ms;
	struct err err;
	_Atomic bool has_tried;
};

static inline void *connect_b(void *arg)
{
	struct ends *e = arg;

	e->r = link_connect(listener_addr(e->l), e->patience_ms, &peer_events, &e->b, &e->b.link,
			    &e->err);
	e->has_tried = true;
	return NULL;
}

static inline void ends_init(struct ends *e)
{
	memset(e, 0, sizeof(*e));
	e->patience_ms = 60000;
	peer_init(&e->a, 1);
	peer_init(&e->b, 1);
}

/* @connect connects to e->l in a thread, and sets e->r and e->has_tried. Return: of link_accept();
 * -EAGAIN: no acceptable request came. */
static inline int ends_meet(struct ends *e, void *(*connect)(void *e), struct err *accept_err)
{
	int r = -EAGAIN;

	assert_int_equal(pthread_create(&e->thread, NULL, connect, e), 0);
	while (r == -EAGAIN && !(e->has_tried && e->r))
		r = link_accept(e->l, &peer_events, &e->a, &e->a.link, accept_err);
	pthread_join(e->thread, NULL);
	return r;
}

/* Both ends try; at most one of them may succeed. Return: of link_connect(). */
static inline int try_connect_for(struct ends *e, int patience_ms, int *ret_accept,
				  struct err *accept_err)
{
	struct err err;

	ends_init(e);
	e->patience_ms = patience_ms;
	assert_int_equal(listener_open(ADDR, &e->l, &err), 0);
	*ret_accept = ends_meet(e, connect_b, accept_err);
	return e->r;
}

static inline int try_connect(struct ends *e, int *ret_accept, struct err *accept_err)
{
	return try_connect_for(e, 60000, ret_accept, accept_err);
}

static inline void ends_open(struct ends *e)
{
	struct err err;
	int r;

	assert_int_equal(try_connect(e, &r, &err), 0);
	assert_int_equal(r, 0);
}

static inline void ends_close(struct ends *e)
{
	peer_deinit(&e->a);
	peer_deinit(&e->b);
	listener_free(e->l);
}

static unsigned char bytes[1 << 20];

static inline void send_n(struct peer *p, uint64_t *sent, unsigned int n, uint64_t body)
{
	struct wire_hdr h;

	for (; n; n--) {
		wire_hdr_init(&h, WIRE_MESSAGE, body);
		h.index = (*sent)++;
		assert_int_equal(link_send(p->link, &h, bytes, h.index), 0);
	}
}

/* Both ends move until @done says so; a bound of rounds, not of time. */
static inline void move(struct ends *e, unsigned int rounds)
{
	for (; rounds; rounds--) {
		link_progress(e->a.link);
		link_progress(e->b.link);
	}
}

/* The last word of the connection has been read. */
static inline void until_up(struct ends *e)
{
	uint64_t due_ns = clock_now_ns() + 60 * NS_PER_S;

	while (rdma_of(e->a.link)->state != RDMA_UP) {
		move(e, 1);
		assert_true(clock_now_ns() < due_ns);
	}
}

/* One tick of @p, whatever the clock says; the other end does not move. */
static inline void tick(struct peer *p)
{
	const struct itimerspec at_once = {.it_value.tv_nsec = 1};
	struct rdma_hub *h = rdma_of(p->link)->hub;
	uint64_t before = h->ticks, due_ns = clock_now_ns() + 60 * NS_PER_S;

	assert_int_equal(timerfd_settime(h->timer_fd, 0, &at_once, NULL), 0);
	while (h->ticks == before && !p->n_closed) {
		link_progress(p->link);
		assert_true(clock_now_ns() < due_ns);
	}
	link_progress(p->link); /* acts on the tick */
}

static inline void until_closed(struct ends *e, struct peer *p)
{
	uint64_t due_ns = clock_now_ns() + 60 * NS_PER_S;

	while (!p->n_closed) {
		move(e, 1);
		assert_true(clock_now_ns() < due_ns);
	}
}

static inline void expect_end(struct peer *p, int code, const char *words)
{
	if (p->closed_code != code || !strstr(p->why, words))
		fail_msg("code %d: %s; wanted %d: %s", p->closed_code, p->why, code, words);
	assert_int_equal(p->n_closed, 1);
	if (code) {
		assert_non_null(strstr(p->why, "device fake0 port 1, QP "));
		assert_non_null(strstr(p->why, " to rdma:"));
	}
}
