/* The rdma link over a device that does not exist (fake-verbs.h): the conversations of the
 * other links, and everything that goes wrong, which no device does on demand. Each
 * fault ends in one sentence, within a bound, with everything given back. */
#include "conversation.h"
#include "fake-verbs.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "links/rdma-listen.h"
#include "links/rdma-private.h"

#define ADDR "rdma:127.0.0.1:0"

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
	for (int i = 0; i < RDMA_THINGS; i++)
		assert_int_equal(rdma_counts.made[i], rdma_counts.gone[i]);
	return 0;
}

static struct rdma_options use_options(void)
{
	struct rdma_options o;

	rdma_options_init(&o);
	return o;
}

/* --- conversations -------------------------------------------------------------------- */

static void polling(void **state)
{
	(void)state;
	converse(ADDR, 150, 0, 0, 0);
}

static void sleeping(void **state)
{
	(void)state;
	converse(ADDR, 150, 100, 100, 0);
}

static void mixed_with_holds(void **state)
{
	(void)state;
	converse(ADDR, 150, 50, 70, 20);
}

/* Completions come one at a time. */
static void partial_completions(void **state)
{
	(void)state;
	fake_faults.poll_most = 1;
	converse(ADDR, 100, 60, 60, 10);
}

static void nothing_inline(void **state)
{
	(void)state;
	fake_faults.inline_most = 1;
	converse(ADDR, 100, 60, 60, 0);
}

static void several_queue_pairs(void **state)
{
	struct rdma_options o = use_options();

	(void)state;
	for (o.qps = 2; o.qps <= 4; o.qps++) {
		rdma_options_use(&o);
		converse(ADDR, 60, 60, 60, 10);
	}
}

/* A ring that is full all the time. */
static void the_smallest_ring(void **state)
{
	struct rdma_options o = use_options();

	(void)state;
	o.ring_bytes = RDMA_RING_MIN;
	rdma_options_use(&o);
	converse(ADDR, 60, 80, 80, 0);
}

/* Registered memory that must go again and again. */
static void the_smallest_cache(void **state)
{
	struct rdma_options o = use_options();

	(void)state;
	o.memory_bytes = UINT64_C(1) << 20;
	rdma_options_use(&o);
	converse(ADDR, 60, 0, 0, 0);
}

/* --- two ends in one thread -------------------------------------------------------------- */

struct ends {
	struct listener *l;
	struct peer a, b; /* a was accepted, b connected */
	pthread_t thread;
	int rc;
	struct err err;
	_Atomic bool has_tried;
};

static void *connect_b(void *arg)
{
	struct ends *e = arg;

	e->rc = link_connect(listener_addr(e->l), 2000, &peer_events, &e->b, &e->b.link, &e->err);
	e->has_tried = true;
	return NULL;
}

static void ends_open(struct ends *e)
{
	struct err err;

	memset(e, 0, sizeof(*e));
	peer_init(&e->a, 1);
	peer_init(&e->b, 1);
	assert_int_equal(listener_open(ADDR, &e->l, &err), 0);
	assert_int_equal(pthread_create(&e->thread, NULL, connect_b, e), 0);
	e->a.link = accept_one(e->l, &e->a);
	pthread_join(e->thread, NULL);
	assert_int_equal(e->rc, 0);
}

static void ends_close(struct ends *e)
{
	peer_deinit(&e->a);
	peer_deinit(&e->b);
	listener_free(e->l);
}

static unsigned char bytes[1 << 20];

static void send_n(struct peer *p, uint64_t *sent, unsigned int n, uint64_t body)
{
	struct wire_hdr h;

	for (; n; n--) {
		wire_hdr_init(&h, WIRE_MESSAGE, body);
		h.index = (*sent)++;
		assert_int_equal(link_send(p->link, &h, bytes, h.index), 0);
	}
}

/* Both ends move until @done says so; a bound of rounds, not of time. */
static void move(struct ends *e, unsigned int rounds)
{
	for (; rounds; rounds--) {
		link_progress(e->a.link);
		link_progress(e->b.link);
	}
}

static void until_closed(struct ends *e, struct peer *p)
{
	uint64_t due_ns = clock_now_ns() + 20 * NS_PER_S;

	while (!p->n_closed) {
		move(e, 1);
		assert_true(clock_now_ns() < due_ns);
	}
}

/* Memory that may be unmapped after it was sent is not kept registered; other memory is. */
static void passing_memory_is_forgotten(void **state)
{
	struct ends e;
	uint64_t sent = 0, before;

	(void)state;
	ends_open(&e);
	e.a.discard_percent = 100;
	before = rdma_counts.made[RDMA_MRS] - rdma_counts.gone[RDMA_MRS];
	send_n(&e.b, &sent, 3, 1 << 20);
	move(&e, 400);
	assert_int_equal(e.a.n_frames, 3);
	assert_int_equal(rdma_counts.made[RDMA_MRS] - rdma_counts.gone[RDMA_MRS], before + 1);
	link_lends_passing(e.b.link);
	send_n(&e.b, &sent, 3, 1 << 20);
	move(&e, 400);
	assert_int_equal(e.a.n_frames, 6);
	assert_int_equal(rdma_counts.made[RDMA_MRS] - rdma_counts.gone[RDMA_MRS], before);
	ends_close(&e);
}

/* A reader that holds: the writer stops at the window and the ring, nothing is lost. */
static void credits_run_out(void **state)
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

/* One end has all its receives in use but those of control SENDs, and sleeps; the other has
 * more to tell it, for pieces and for the ring, than those can take. */
static void no_more_control_than_receives(void **state)
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
	fake_faults.poll_most = 1; /* read, and told of, one at a time */
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

/* Pieces of one queue pair overtake those of another by far: delivered in order. */
static void queue_pairs_out_of_order(void **state)
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

/* --- what breaks a link -------------------------------------------------------------------- */

static void expect_end(struct peer *p, int code, const char *words)
{
	if (p->closed_code != code || !strstr(p->why, words))
		fail_msg("code %d: %s; wanted %d: %s", p->closed_code, p->why, code, words);
	assert_int_equal(p->n_closed, 1);
	if (code) {
		assert_non_null(strstr(p->why, "device fake0 port 1, QP "));
		assert_non_null(strstr(p->why, " to rdma:"));
	}
}

static void statuses(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		int code;
		const char *words;
	} cases[] = {
		{IBV_WC_REM_ACCESS_ERR, -EACCES, "IBV_WC_REM_ACCESS_ERR (vendor 0x7): the other end's memory"},
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

static void a_wrong_immediate(void **state)
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
		fake_faults.imm_number = 2; /* of the body */
		fake_faults.imm = wrong[i] == 1 ? 0 : wrong[i]; /* 0: a number that was there */
		send_n(&e.b, &sent, 1, 100000);
		until_closed(&e, &e.a);
		expect_end(&e.a, -EPROTO, "the peer broke the rules");
		ends_close(&e);
	}
}

static void device_events(void **state)
{
	static const struct {
		enum ibv_event_type type;
		int code;
		const char *words;
	} cases[] = {
		{IBV_EVENT_DEVICE_FATAL, -ENODEV, "IBV_EVENT_DEVICE_FATAL"},
		{IBV_EVENT_CQ_ERR, -EIO, "completion queue overran"},
		{IBV_EVENT_QP_FATAL, -EIO, "an event"},
	};
	struct ends e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ends_open(&e);
		move(&e, 5);
		fake_async(cases[i].type);
		/* nobody sends: it wakes a sleeper; which of the two hubs reads it is chance */
		while (!e.a.n_closed && !e.b.n_closed) {
			peer_wait(&e.a, 1);
			link_progress(e.b.link);
		}
		expect_end(e.a.n_closed && e.a.closed_code ? &e.a : &e.b, cases[i].code, cases[i].words);
		ends_close(&e);
	}
}

/* A port that comes back in time is no error; one that stays down is. */
static void a_port_goes_down(void **state)
{
	uint64_t sent = 0, start_ns;
	struct ends e;

	(void)state;
	rdma_tick_ms = 200;
	ends_open(&e);
	move(&e, 5);
	fake_async(IBV_EVENT_PORT_ERR);
	move(&e, 200);
	fake_async(IBV_EVENT_PORT_ACTIVE);
	send_n(&e.b, &sent, 3, 8);
	move(&e, 200);
	assert_int_equal(e.a.n_frames, 3);
	fake_async(IBV_EVENT_PORT_ERR);
	start_ns = clock_now_ns();
	while (!e.a.n_closed && !e.b.n_closed) {
		move(&e, 1);
		usleep(1000);
		assert_true(clock_now_ns() - start_ns < 30 * NS_PER_S);
	}
	expect_end(e.a.closed_code ? &e.a : &e.b, -ENETDOWN, "the port is down");
	ends_close(&e);
}

/* The peer's host is gone without a word, and nobody sends: noticed by its silence. */
static void a_silent_peer(void **state)
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

/* --- what keeps a link from being ------------------------------------------------------------ */

static int try_connect(struct ends *e, int *ret_accept, struct err *accept_err)
{
	struct link *link = NULL;
	struct err err;
	int rc = -EAGAIN;

	memset(e, 0, sizeof(*e));
	peer_init(&e->b, 1);
	peer_init(&e->a, 1);
	assert_int_equal(listener_open(ADDR, &e->l, &err), 0);
	pthread_create(&e->thread, NULL, connect_b, e);
	while (rc == -EAGAIN && !e->has_tried)
		rc = link_accept(e->l, &peer_events, &e->a, &link, accept_err);
	*ret_accept = rc;
	e->a.link = link;
	pthread_join(e->thread, NULL);
	return e->rc;
}

static void garbage_is_refused(void **state)
{
	struct err why;
	struct ends e;
	int rc;

	(void)state;
	fake_faults.corrupt_hello = true;
	assert_int_equal(try_connect(&e, &rc, &why), -ECONNREFUSED);
	assert_non_null(strstr(e.err.text, "took our hello for garbage"));
	assert_int_equal(rc, -EPROTO);
	assert_non_null(strstr(why.text, "no hello of nbox"));
	ends_close(&e);
}

static void another_version_is_refused(void **state)
{
	struct err why;
	struct ends e;
	int rc;

	(void)state;
	fake_faults.hello_version = 9;
	assert_int_equal(try_connect(&e, &rc, &why), -ECONNREFUSED);
	assert_non_null(strstr(e.err.text, "another version"));
	assert_int_equal(rc, -EPROTONOSUPPORT);
	assert_non_null(strstr(why.text, "speaks version 9"));
	ends_close(&e);
}

static void no_answer_is_a_timeout(void **state)
{
	struct err why;
	struct ends e;
	int rc;

	(void)state;
	fake_faults.drop_answer = true;
	assert_int_equal(try_connect(&e, &rc, &why), -ETIMEDOUT);
	assert_non_null(strstr(e.err.text, "accepts nobody"));
	ends_close(&e);
}

static void nobody_listens(void **state)
{
	struct err err;
	struct peer p;

	(void)state;
	peer_init(&p, 1);
	assert_int_equal(link_connect("rdma:127.0.0.1:9", 2000, &peer_events, &p, &p.link, &err),
			 -ECONNREFUSED);
	assert_non_null(strstr(err.text, "nobody listens there"));
}

/* The last word of the connection is lost: the first piece says as much. */
static void a_lost_last_word(void **state)
{
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	fake_faults.drop_establish = true;
	ends_open(&e);
	send_n(&e.b, &sent, 2, 8);
	move(&e, 50);
	assert_int_equal(e.a.n_frames, 2);
	ends_close(&e);
}

static void too_little_memory(void **state)
{
	struct err why;
	struct ends e;
	int rc;

	(void)state;
	fake_faults.reg_errno = ENOMEM;
	assert_true(try_connect(&e, &rc, &why) < 0);
	assert_non_null(strstr(e.err.text, "cannot be registered"));
	ends_close(&e);
}

/* Bodies cannot be registered, the ring could: the link ends, and says what to do. */
static void a_body_that_cannot_be_registered(void **state)
{
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	ends_open(&e);
	fake_faults.reg_errno = ENOMEM;
	send_n(&e.b, &sent, 1, 1 << 20);
	until_closed(&e, &e.b);
	expect_end(&e.b, -ENOMEM, "cannot be registered");
	ends_close(&e);
}

static void a_device_without_resources(void **state)
{
	struct err why;
	struct ends e;
	int rc;

	(void)state;
	fake_faults.create_qp_errno = ENOSPC;
	try_connect(&e, &rc, &why);
	assert_non_null(strstr(e.err.text, "device fake0 gives no queue pair"));
	ends_close(&e);
	fake_reset();
	fake_faults.alloc_pd_errno = ENOMEM;
	try_connect(&e, &rc, &why);
	assert_non_null(strstr(e.err.text, "gives no protection domain"));
	ends_close(&e);
	fake_reset();
	fake_faults.channel_errno = ENODEV;
	assert_int_equal(listener_open(ADDR, &e.l, &why), -ENODEV);
	assert_non_null(strstr(why.text, "no RDMA device was found"));
}

/* Links beyond the completion queue: it grows, and where it cannot, one is refused. */
static void the_queue_grows(void **state)
{
	struct ends e[8];
	struct listener *l;
	struct err err;
	int i, rc = 0;

	(void)state;
	fake_faults.cq_most = 1024;
	assert_int_equal(listener_open(ADDR, &l, &err), 0);
	for (i = 0; i < 8; i++) {
		struct link *link = NULL;

		memset(&e[i], 0, sizeof(e[i]));
		peer_init(&e[i].a, 1);
		peer_init(&e[i].b, 1);
		e[i].l = l;
		pthread_create(&e[i].thread, NULL, connect_b, &e[i]);
		do
			rc = link_accept(l, &peer_events, &e[i].a, &link, &err);
		while (rc == -EAGAIN);
		e[i].a.link = link;
		pthread_join(e[i].thread, NULL);
		if (rc)
			break;
	}
	assert_true(i > 3 && i < 8);
	assert_non_null(strstr(err.text, "no room for another link in the completion queue"));
	assert_non_null(strstr(e[i].err.text, "no resources for another link"));
	for (; i >= 0; i--) {
		peer_deinit(&e[i].a);
		peer_deinit(&e[i].b);
	}
	listener_free(l);
}

/* --- made again ------------------------------------------------------------------------------------ */

/* Every so many sends one is lost with its connection, or arrives and its answer is lost:
 * both ends go on where they were. The conversation checks order, count and every byte. */
static void nothing_is_lost_or_doubled(void **state)
{
	static const uint32_t every[] = {7, 23, 61};
	struct rdma_options o = use_options();

	(void)state;
	rdma_tick_ms = 40;
	o.reconnect = 200;
	for (unsigned int i = 0; i < 12; i++) {
		o.qps = i % 4 == 3 ? 3 : 1;
		o.ring_bytes = i % 2 ? RDMA_RING_MIN * 4 : UINT32_C(4) << 20;
		rdma_options_use(&o);
		converse_calm = fake_reset;
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

/* Nobody answers for a while: attempts a second apart, then it goes on. */
static void a_cut_that_heals(void **state)
{
	struct rdma_options o = use_options();
	struct link *other = NULL;
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	rdma_tick_ms = 200;
	o.reconnect = 20;
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
	while (e.a.n_frames < 4 && !e.a.n_closed && !e.b.n_closed) {
		move(&e, 1);
		assert_int_equal(link_accept(e.l, &peer_events, NULL, &other, NULL), -EAGAIN);
	}
	assert_int_equal(e.a.n_frames, 4);
	assert_false(e.a.bad);
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

/* --- options -------------------------------------------------------------------------------------- */

static void options_are_strict(void **state)
{
	static const char *const bad[][2] = {
		{"TC", "256"}, {"TC", "x"}, {"QPS", "0"}, {"QPS", "5"}, {"RING", "4"}, {"RING", "3MiB"},
		{"MTU", "1000"}, {"POLL", "yes"}, {"HCA", ""}, {"RETRY_CNT", "8"}, {"MEMORY", "1000000"},
		{"TIMEOUT", "0"}, {"GIDINDEX", "1"},
	};
	struct rdma_options o;
	struct err err;

	(void)state;
	rdma_options_init(&o);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err.text[0] = 0;
		assert_true(rdma_options_set(&o, bad[i][0], bad[i][1], &err) < 0);
		assert_non_null(strstr(err.text, "NBOX_IB_"));
	}
	assert_non_null(strstr(err.text, "did you mean NBOX_IB_GID_INDEX?"));
	assert_int_equal(rdma_options_set(&o, "RING", "8MiB", &err), 0);
	assert_int_equal(rdma_options_set(&o, "GID_INDEX", "2", &err), 0);
	assert_int_equal(o.ring_bytes, 8 << 20);
	assert_int_equal(o.gid_index, 2);
}

static void devices_are_chosen(void **state)
{
	struct rdma_options o = use_options();
	struct sockaddr_storage a;
	struct err err;

	(void)state;
	assert_int_equal(rdma_own_address(&o, &a, &err), 0);
	assert_int_equal(((struct sockaddr_in *)&a)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	o.gid_index = 0; /* link-local: cannot be bound to */
	assert_int_equal(rdma_own_address(&o, &a, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.text, "no GID fits"));
	o.gid_index = -1;
	strcpy(o.hca, "fake1");
	assert_int_equal(rdma_own_address(&o, &a, &err), -ENODEV);
	assert_non_null(strstr(err.text, "did you mean 'fake0'?"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(polling), T(sleeping), T(mixed_with_holds), T(partial_completions),
		T(nothing_inline), T(several_queue_pairs), T(the_smallest_ring),
		T(the_smallest_cache), T(passing_memory_is_forgotten), T(credits_run_out), T(queue_pairs_out_of_order),
		T(no_more_control_than_receives),
		T(statuses), T(a_wrong_immediate), T(device_events), T(a_port_goes_down),
		T(a_silent_peer), T(garbage_is_refused), T(another_version_is_refused),
		T(no_answer_is_a_timeout), T(nobody_listens), T(a_lost_last_word),
		T(too_little_memory), T(a_body_that_cannot_be_registered),
		T(a_device_without_resources), T(the_queue_grows), T(options_are_strict),
		T(devices_are_chosen), T(nothing_is_lost_or_doubled), T(a_cut_that_heals),
		T(a_cut_that_does_not_heal), T(a_parting_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
