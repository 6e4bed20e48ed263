/* Bodies that are lent to a worker's link: each comes back once, in their order, whatever becomes
 * of the link. Of NCCL's messages no more wait for a worker than may. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmocka-all.h"
#include "links/endpoint.h"
#include "nboxd/full/message.h"
#include "nboxd/full/own.h"
#include "nboxd/full/tune.h"
#include "nboxd/loop/lent.h"
#include "nboxd/loop/worker.h"

#define N_BODIES 300 /* of them a link has room for a few */
#define BODY_BYTES (64 * 1024)

/* --- the list -------------------------------------------------------------------------- */

static void what_is_lent_comes_back_in_order(void **state)
{
	struct lent l = {0};
	uint64_t next_in = 1, next_out = 1;
	unsigned seed = 5;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		bool is_in = rand_r(&seed) % 5 < (i < 12000 ? 3 : 2);

		if (is_in) {
			assert_int_equal(lent_reserve(&l), 0);
			lent_add(&l, next_in, next_in);
			next_in++;
		} else if (l.n) {
			assert_int_equal(lent_take(&l), next_out++);
		}
		assert_int_equal(l.n, next_in - next_out);
	}
	while (l.n)
		assert_int_equal(lent_take(&l), next_out++);
	assert_int_equal(next_in, next_out);
	assert_int_equal(l.bytes, 0);
	lent_deinit(&l);
}

/* --- a worker --------------------------------------------------------------------------- */

static struct {
	struct workers ws;
	struct worker *w;
	struct listener *listener;
	struct link *peer; /* the worker's own end */
	unsigned n_back, n_came;
	bool is_full; /* cookies are of nboxd/full */
	bool is_mixed_up;
	uint8_t body[BODY_BYTES], into[BODY_BYTES];
} t;

static int on_frame(void *ctx, struct worker *w, const struct wire_hdr *h, const void *body)
{
	(void)ctx;
	(void)w;
	(void)h;
	(void)body;
	return 0;
}

static void on_sent(void *ctx, uint64_t cookie)
{
	(void)ctx;
	if (t.is_full)
		full_on_sent(cookie);
	else
		t.is_mixed_up |= cookie != ++t.n_back;
}

static void on_gone(void *ctx, struct worker *w, const char *why)
{
	(void)ctx;
	(void)w;
	(void)why;
}

static void on_ready(void *ctx, struct worker *w)
{
	(void)ctx;
	(void)w;
}

static const struct workers_sink sink = {.on_ready = on_ready,
					 .on_frame = on_frame,
					 .on_sent = on_sent,
					 .on_gone = on_gone};

static int peer_on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	(void)owner;
	(void)l;
	if (h->type == WIRE_MESSAGE)
		*ret_body = t.into;
	return 0;
}

static int peer_on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	(void)owner;
	(void)l;
	(void)body;
	t.n_came += h->type == WIRE_MESSAGE;
	return 0;
}

static const struct link_events peer_events = {.on_header = peer_on_header,
					       .on_frame = peer_on_frame};

/* It blocks until it is accepted. */
static void *connect_peer(void *addr)
{
	struct err err = {""};

	if (link_connect(addr, 60000, &peer_events, NULL, &t.peer, &err) < 0)
		print_error("%s\n", err.text);
	return NULL;
}

static void greet(const char *kind)
{
	static const uint8_t token[WIRE_TOKEN_BYTES];
	struct wire_hello hello = {.pid = 1, .host = "test"};
	struct err err = {""};
	struct wire_hdr h;
	pthread_t thread;
	char addr[128];

	memset(&t, 0, sizeof(t));
	t.ws = (struct workers){.sink = &sink, .token = token};
	clock_id(t.ws.clock_id);
	snprintf(addr, sizeof(addr),
		 strcmp(kind, "shm") == 0 ? "shm:@nbox-test-lent-%d" : "tcp:127.0.0.1:0",
		 (int)getpid());
	if (listener_open(addr, &t.listener, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(addr, sizeof(addr), "%s", listener_addr(t.listener));
	assert_int_equal(pthread_create(&thread, NULL, connect_peer, addr), 0);
	while (!t.w)
		if (worker_accept(&t.ws, t.listener, &t.w, &err) < 0)
			usleep(1000);
	pthread_join(thread, NULL);
	assert_non_null(t.peer);
	wire_hdr_init(&h, WIRE_HELLO, sizeof(hello));
	assert_int_equal(link_send_copy(t.peer, &h, &hello), 0);
	while (t.w->state != WORKER_READY) {
		link_progress(t.peer);
		worker_progress(t.w);
	}
}

static void part(void)
{
	if (t.w)
		worker_remove(t.w);
	link_free(t.peer);
	listener_free(t.listener);
	assert_false(t.is_mixed_up);
}

/* Bodies @first to @last, and a message without one behind each. */
static void lend(unsigned first, unsigned last)
{
	struct wire_hdr h;

	for (unsigned i = first; i <= last; i++) {
		wire_hdr_init(&h, WIRE_MESSAGE, BODY_BYTES);
		worker_send_lent(t.w, &h, t.body, false, i);
		wire_hdr_init(&h, WIRE_MESSAGE, 0);
		worker_send_message(t.w, &h, NULL);
	}
}

static void a_body_is_back_when_it_is_sent(void **state)
{
	static const char *const kinds[] = {"shm", "tcp"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		greet(kinds[k]);
		lend(1, N_BODIES);
		assert_true(t.n_back < N_BODIES);
		while (t.n_came < 2 * N_BODIES) {
			worker_progress(t.w);
			link_progress(t.peer);
		}
		worker_progress(t.w);
		assert_int_equal(t.n_back, N_BODIES);
		part();
		assert_int_equal(t.n_back, N_BODIES);
	}
}

static void bodies_are_back_when_the_peer_dies(void **state)
{
	static const char *const kinds[] = {"shm", "tcp"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		greet(kinds[k]);
		lend(1, N_BODIES);
		worker_progress(t.w);
		assert_true(t.n_back < N_BODIES);
		t.peer = link_free(t.peer);
		while (t.w->state != WORKER_CLOSED)
			worker_has_gone(t.w);
		assert_int_equal(t.n_back, N_BODIES);
		lend(N_BODIES + 1, N_BODIES + 3); /* at once */
		assert_int_equal(t.n_back, N_BODIES + 3);
		part();
	}
}

static void bodies_are_back_when_the_worker_is_removed(void **state)
{
	(void)state;
	greet("shm");
	lend(1, N_BODIES);
	worker_progress(t.w);
	worker_refuse(t.w, EPROTO, "a test refuses it");
	lend(N_BODIES + 1, N_BODIES + 1); /* it takes nothing more */
	t.is_mixed_up = false;            /* that one came before the others */
	assert_true(t.n_back < N_BODIES);
	t.n_back--;
	worker_remove(t.w);
	t.w = NULL;
	assert_int_equal(t.n_back, N_BODIES);
	part();
}

/* What it is lent is no answer that it does not read. */
static void a_worker_asks_while_much_is_lent(void **state)
{
	struct wire_ping ping = {0};
	struct wire_hdr h;

	(void)state;
	greet("shm");
	lend(1, 2 * N_BODIES);
	assert_true(link_queued_bytes(t.w->link) > UINT64_C(16) << 20);
	wire_hdr_init(&h, WIRE_PING, sizeof(ping));
	assert_int_equal(link_send_copy(t.peer, &h, &ping), 0);
	while (t.n_came < 4 * N_BODIES) {
		link_progress(t.peer);
		worker_progress(t.w);
		assert_int_equal(t.w->state, WORKER_READY);
	}
	part();
}

/* --- NCCL's messages ---------------------------------------------------------------------- */

/* While its worker does not read. The sum of what waits is the worker's, so another communicator
 * may go on when it has read. */
static void so_much_waits_for_a_worker_and_no_more(void **state)
{
	static const char *const kinds[] = {"shm", "tcp"};
	const uint64_t max = 32 * BODY_BYTES;

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct full full = {.queue_max_bytes = max,
				    .bodies = traffic_bodies_new((uint64_t)1 << 30)};
		struct comm_member member = {.rank = 1};
		struct comm comm = {.number = 1, .real = &member, .n_real = 1};
		struct full_comm slow = {.full = &full, .comm = &comm}, other = slow;
		struct traffic_message m = {.at = {.rank = 1, .peer = 2}, .bytes = BODY_BYTES};
		unsigned n = 0;
		uint64_t queued;

		greet(kinds[k]);
		t.is_full = true;
		member.worker = t.w;
		while (!slow.code && n < N_BODIES) {
			full_send(&full, &slow, &m);
			n += !slow.code;
			worker_progress(t.w);
		}
		assert_int_equal(slow.code, ENOBUFS);
		assert_non_null(strstr(slow.why, "rank 1 does not take what comes for it: 2 MiB"));
		queued = link_queued_bytes(t.w->link);
		assert_in_range(queued, max + 1, max + 2 * BODY_BYTES);
		full_send(&full, &slow, &m); /* nothing more of this one */
		assert_int_equal(link_queued_bytes(t.w->link), queued);
		for (unsigned more = n + 3; t.n_came < more;) {
			worker_progress(t.w);
			link_progress(t.peer);
			if (t.n_came >= n && n < more) {
				full_send(&full, &other, &m);
				n++;
			}
		}
		assert_int_equal(other.code, 0);
		part();
		traffic_body_unref(full.fill);
		assert_int_equal(traffic_bodies_lent(full.bodies), 0);
		traffic_bodies_free(full.bodies);
	}
}

/* It asks what NCCL is to take, and does not read the answers. */
static void so_many_answers_wait_for_a_worker_and_no_more(void **state)
{
	struct full full = {.queue_max_bytes = 1 << 20};
	struct wire_tune m = {.n_ranks = 2, .n_nodes = 1};
	uint64_t queued = 0;
	struct wire_hdr h;

	(void)state;
	greet("tcp");
	wire_hdr_init(&h, WIRE_TUNE, sizeof(m));
	while (t.w->state == WORKER_READY && queued < 2 * full.queue_max_bytes) {
		full_on_tune(&full, t.w, &h, &m);
		queued = link_queued_bytes(t.w->link);
	}
	assert_int_equal(t.w->state, WORKER_DRAINING);
	assert_in_range(queued, full.queue_max_bytes, full.queue_max_bytes + 4096);
	part();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_lent_comes_back_in_order),
		cmocka_unit_test(a_body_is_back_when_it_is_sent),
		cmocka_unit_test(bodies_are_back_when_the_peer_dies),
		cmocka_unit_test(bodies_are_back_when_the_worker_is_removed),
		cmocka_unit_test(a_worker_asks_while_much_is_lent),
		cmocka_unit_test(so_much_waits_for_a_worker_and_no_more),
		cmocka_unit_test(so_many_answers_wait_for_a_worker_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
