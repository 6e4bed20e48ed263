/* The core of links, over loop links: order, whole bodies, holds, ends, bad headers, with reads and
 * writes of any length. */
#include "peer.h"

#include <errno.h>

#include "loop.h"

static struct peer a, b;

static int pair_up(void **state)
{
	(void)state;
	peer_init(&a, 1);
	peer_init(&b, 1);
	return link_loop_pair(&peer_events, &a, &b, &a.link, &b.link);
}

static int tear_down(void **state)
{
	(void)state;
	peer_deinit(&a);
	peer_deinit(&b);
	return 0;
}

static void pump(unsigned int rounds)
{
	while (rounds--) {
		link_progress(a.link);
		link_progress(b.link);
		if (b.n_holds && b.link)
			link_resume(b.link);
	}
}

static void send_message(struct peer *p, uint64_t index, const void *body, uint64_t n)
{
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_MESSAGE, n);
	h.index = index;
	assert_int_equal(link_send(p->link, &h, body, index), 0);
}

/* Frames of random sizes, through reads and writes of random lengths, with holds. */
static void frames_arrive_whole_and_in_order(void **state)
{
	enum { N = 300 };
	static unsigned char *body[N];
	struct rng rng;
	uint64_t i, size;

	(void)state;
	rng_seed(&rng, 42, 0);
	b.hold_percent = 20;
	b.discard_percent = 10;
	for (i = 0; i < N; i++) {
		size = rng_u64(&rng) % (i % 10 == 0 ? 200000 : 100);
		body[i] = malloc(size + 1);
		assert_non_null(body[i]);
		peer_fill(body[i], size, 1, i);
		send_message(&a, i, body[i], size);
	}
	assert_true(link_queued_bytes(a.link) > N * sizeof(struct wire_hdr));
	for (i = 0; i < 200000 && b.n_frames < N; i++) {
		loop_set_most(a.link, 1 + rng_u64(&rng) % 5000);
		loop_set_most(b.link, 1 + rng_u64(&rng) % 5000);
		pump(1);
	}
	assert_int_equal(b.n_frames, N);
	assert_int_equal(b.n_headers, N);
	assert_int_equal(a.n_sent, N);
	assert_true(b.n_holds > 0);
	assert_false(a.bad || b.bad);
	assert_int_equal(link_queued_bytes(a.link), 0);
	for (i = 0; i < N; i++)
		free(body[i]);
}

static int echo(struct peer *p, const struct wire_hdr *h, const void *body)
{
	p->n_frames++;
	return link_send_copy(p->link, h, body);
}

/* A callback may send on the link that it is called from. */
static void callbacks_may_send(void **state)
{
	struct wire_ping ping = {.worker_ns = 7};
	struct wire_hdr h;
	int i;

	(void)state;
	b.on_frame = echo;
	a.on_frame = echo;
	wire_hdr_init(&h, WIRE_PING, sizeof(ping));
	for (i = 0; i < 40; i++)
		assert_int_equal(link_send_copy(a.link, &h, &ping), 0);
	pump(50);
	assert_true(b.n_frames >= 40 * 10);
	assert_int_equal(a.n_sent, 0); /* on_sent is not called for copies */
}

static void an_orderly_end_is_told_once(void **state)
{
	(void)state;
	send_message(&a, 0, NULL, 0);
	link_progress(a.link);
	a.link = link_free(a.link);
	while (!b.n_closed)
		link_progress(b.link);
	assert_int_equal(b.n_frames, 1); /* frames sent before are delivered */
	assert_int_equal(b.n_closed, 1);
	assert_int_equal(b.closed_code, 0);
	assert_true(link_progress(b.link) < 0);
	assert_int_equal(b.n_closed, 1);
	assert_int_equal(link_send(b.link, &(struct wire_hdr){0}, NULL, 0), -EPIPE);
	assert_int_equal(link_send_copy(b.link, &(struct wire_hdr){0}, NULL), -EPIPE);
	assert_int_equal(link_fd(b.link), -1);
}

static void an_end_inside_a_frame_says_so(void **state)
{
	struct wire_hdr h;

	(void)state;
	wire_hdr_init(&h, WIRE_MESSAGE, 100);
	loop_inject(b.link, &h, sizeof(h));
	loop_inject(b.link, "half", 4);
	a.link = link_free(a.link);
	while (!b.n_closed)
		link_progress(b.link);
	assert_int_equal(b.closed_code, -ECONNRESET);
	assert_string_equal(
		b.why, "the peer ended in the middle of a MESSAGE frame, after 4 of 100 bytes");
	assert_int_equal(b.n_frames, 0);
}

static void garbage_closes(void **state)
{
	unsigned char ff[4096];

	(void)state;
	memset(ff, 0xff, sizeof(ff));
	loop_inject(b.link, ff, sizeof(ff));
	assert_int_equal(link_progress(b.link), -EPROTO);
	assert_int_equal(b.n_closed, 1);
	assert_int_equal(b.closed_code, -EPROTO);
	assert_non_null(strstr(b.why, "not a frame of nbox"));
	assert_int_equal(b.n_headers, 0);
}

/* A held link reads nothing, and loses nothing that it has read. */
static void a_held_link_stands_still(void **state)
{
	(void)state;
	b.hold_percent = 100;
	send_message(&a, 0, NULL, 0);
	send_message(&a, 1, NULL, 0);
	pump(1);
	assert_int_equal(b.n_holds, 1);
	assert_int_equal(link_progress(b.link), 1); /* resumed by pump(), held again */
	assert_int_equal(link_progress(b.link), 0);
	assert_int_equal(b.n_holds, 2);
	assert_true(link_arm(b.link));
	b.hold_percent = 0;
	link_resume(b.link);
	assert_false(link_arm(b.link));
	link_progress(b.link);
	assert_int_equal(b.n_frames, 2);
	assert_false(b.bad);
}

static int refuse(struct peer *p, const struct wire_hdr *h, const void *body)
{
	(void)p;
	(void)h;
	(void)body;
	return -EBADMSG;
}

static void an_owner_may_refuse(void **state)
{
	(void)state;
	b.on_frame = refuse;
	send_message(&a, 0, NULL, 0);
	send_message(&a, 1, NULL, 0);
	pump(2);
	assert_int_equal(b.n_closed, 1);
	assert_int_equal(b.closed_code, -EBADMSG);
	assert_int_equal(b.n_headers, 1);
}

/* Control frames come in the link's own buffer, BOOT too when it is not too long. */
static int count_boot(struct peer *p, const struct wire_hdr *h, const void *body)
{
	p->n_frames++;
	p->bad |= h->body_bytes && !body && h->body_bytes <= WIRE_CONTROL_MAX;
	p->bad |= body && !peer_matches(body, h->body_bytes, 1, 9);
	return 0;
}

static void control_bodies_need_no_buffer(void **state)
{
	static unsigned char body[100000];
	struct wire_hdr h;

	(void)state;
	b.on_frame = count_boot;
	peer_fill(body, sizeof(body), 1, 9);
	wire_hdr_init(&h, WIRE_STATUS, sizeof(body));
	assert_int_equal(link_send(a.link, &h, body, 0), 0);
	wire_hdr_init(&h, WIRE_BOOT, 17);
	assert_int_equal(link_send(a.link, &h, body, 1), 0);
	wire_hdr_init(&h, WIRE_BYE, 0);
	assert_int_equal(link_send(a.link, &h, NULL, 2), 0);
	pump(20);
	assert_int_equal(b.n_frames, 3);
	assert_int_equal(a.n_sent, 3);
	assert_false(b.bad);
}

#define T(f) cmocka_unit_test_setup_teardown(f, pair_up, tear_down)
static void memory_of_a_gpu_is_for_rdma_only(void **state)
{
	static const struct link_gpu gpu;
	struct err err;

	(void)state;
	assert_false(link_reaches_gpus(a.link));
	assert_int_equal(link_lend_gpu(a.link, &gpu, 1 << 20, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "the link is loop: only rdma"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(frames_arrive_whole_and_in_order),
		T(callbacks_may_send),
		T(an_orderly_end_is_told_once),
		T(an_end_inside_a_frame_says_so),
		T(garbage_closes),
		T(a_held_link_stands_still),
		T(an_owner_may_refuse),
		T(control_bodies_need_no_buffer),
		T(memory_of_a_gpu_is_for_rdma_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
