/* Bodies from and into memory of a GPU over the rdma link (fake-verbs.h). A touch of that memory by
 * the CPU kills the test. */
#include "rdma-ends.h"

#include <fcntl.h>

#define LENT_BYTES (UINT64_C(192) << 10) /* not a power of two: bodies are cut there */
#define N_AREAS 4

static struct {
	bool has_no_dmabuf;
	int alloc_errno;
	unsigned int n_allocs, n_frees;
	struct area {
		void *seen;
		unsigned char *real;
		uint64_t bytes;
	} areas[N_AREAS];
} gpu;

/* A function of the place in the memory. */
static unsigned char gpu_byte(uint64_t at)
{
	return (unsigned char)(at * 31 + at / 4099);
}

static int gpu_alloc(uint64_t bytes, struct link_gpu_memory *ret, struct err *err)
{
	struct area *a = &gpu.areas[gpu.n_allocs % N_AREAS];
	int fd;

	if (gpu.alloc_errno)
		return err_set(err, gpu.alloc_errno, "the GPU is full");
	gpu.n_allocs++;
	fake_gpu_alloc(bytes, &a->seen, &a->real, &fd);
	a->bytes = bytes;
	for (uint64_t i = 0; i < bytes; i++)
		a->real[i] = gpu_byte(i);
	*ret = (struct link_gpu_memory){.base = a->seen,
					.bytes = bytes,
					.dmabuf_fd = fd,
					.cookie = a};
	if (gpu.has_no_dmabuf) {
		close(fd);
		ret->dmabuf_fd = -1;
	}
	return 0;
}

static void gpu_free(const struct link_gpu_memory *m)
{
	struct area *a = m->cookie;

	assert_ptr_equal(a->seen, m->base);
	assert_int_equal(a->bytes, m->bytes);
	assert_int_equal(m->dmabuf_fd, -1);
	gpu.n_frees++;
	fake_gpu_free(a->seen);
}

static const struct link_gpu the_gpu = {.alloc = gpu_alloc, .free = gpu_free};

static int gpu_setup(void **state)
{
	memset(&gpu, 0, sizeof(gpu));
	fake_n_dmabufs = fake_n_peer_memory = 0;
	return setup(state);
}

static int gpu_teardown(void **state)
{
	assert_int_equal(gpu.n_allocs, gpu.n_frees);
	return teardown(state);
}

/* --- two ends, of which b has a GPU ------------------------------------------------------- */

static void *connect_gpu(void *arg)
{
	struct ends *e = arg;

	e->r = link_connect_gpu(listener_addr(e->l), e->patience_ms, &the_gpu, &peer_events, &e->b,
				&e->b.link, &e->err);
	e->has_tried = true;
	return NULL;
}

static int on_body(struct peer *p, const struct wire_hdr *h, const void *body)
{
	const unsigned char *b = body;

	p->bad |= h->index != p->n_frames;
	for (uint64_t i = 0; i < h->body_bytes && b; i++)
		if (b[i] != gpu_byte(i % LENT_BYTES))
			p->bad = 1;
	p->n_frames++;
	return 0;
}

/* Bodies that were sent to the GPU cannot be looked at. */
static int on_blind(struct peer *p, const struct wire_hdr *h, const void *body)
{
	p->bad |= h->index != p->n_frames || (h->type == WIRE_MESSAGE) != !body;
	if (h->type == WIRE_BOOT)
		p->bad |= memcmp(body, bytes, h->body_bytes) != 0;
	p->n_frames++;
	return 0;
}

static void gpu_ends_open(struct ends *e)
{
	struct err err;
	int r;

	ends_init(e);
	e->a.on_frame = on_body;
	e->b.on_frame = on_blind;
	assert_int_equal(listener_open(ADDR, &e->l, &err), 0);
	r = ends_meet(e, connect_gpu, &err);
	assert_true(r == 0 || (r == -EAGAIN && e->r));
}

static void lend(struct ends *e)
{
	struct err err;
	int r = link_lend_gpu(e->b.link, &the_gpu, LENT_BYTES, &err);

	if (r)
		fail_msg("%d: %s", r, err.text);
}

static const uint64_t sizes[] = {0, 1, 200, 8184, 8185, 65536, LENT_BYTES, LENT_BYTES + 1, 3 << 20};

static void exchange(struct ends *e, unsigned int n)
{
	uint64_t due_ns = clock_now_ns() + 200 * NS_PER_S, sent_a = 0, sent_b = 0;
	struct wire_hdr h;

	while (e->a.n_frames < n || e->b.n_frames < n || e->a.n_sent < n || e->b.n_sent < n) {
		if (sent_a < n && e->a.n_sent == sent_a) {
			uint64_t size = sizes[sent_a % ARRAY_SIZE(sizes)];

			wire_hdr_init(&h, WIRE_MESSAGE,
				      size < sizeof(bytes) ? size : sizeof(bytes));
			h.index = sent_a++;
			assert_int_equal(link_send(e->a.link, &h, bytes, h.index), 0);
		}
		if (sent_b < n && e->b.n_sent + 3 > sent_b) {
			wire_hdr_init(&h, WIRE_MESSAGE, sizes[sent_b % ARRAY_SIZE(sizes)]);
			h.index = sent_b++;
			assert_int_equal(link_send_gpu(e->b.link, &h, h.index), 0);
		}
		move(e, 1);
		if (e->a.n_closed + e->b.n_closed)
			fail_msg("%s%s", e->a.why, e->b.why);
		assert_false(e->a.bad || e->b.bad);
		assert_true(clock_now_ns() < due_ns);
	}
}

static void bodies_cross_without_a_touch(void **state)
{
	struct rdma_options o = use_options();

	(void)state;
	for (o.qps = 1; o.qps <= 3; o.qps += 2) {
		struct ends e;

		rdma_options_use(&o);
		o.ring_bytes = RDMA_RING_MIN; /* the second time */
		gpu_ends_open(&e);
		lend(&e);
		exchange(&e, 60);
		assert_memory_equal(gpu.areas[(gpu.n_allocs - 2) % N_AREAS].real, bytes, 4096);
		ends_close(&e);
	}
	assert_int_equal(fake_n_dmabufs, 4);
	assert_int_equal(fake_n_peer_memory, 0);
}

/* --- how it is registered ------------------------------------------------------------------ */

static void memory_without_a_dmabuf_is_registered_by_address(void **state)
{
	struct verbs old = fake_verbs;

	(void)state;
	old.reg_dmabuf_mr = NULL;
	for (int i = 0; i < 3; i++) {
		struct ends e;

		fake_faults.dmabuf_errno = i == 0 ? EOPNOTSUPP : 0;
		gpu.has_no_dmabuf = i == 1;
		if (i == 2)
			verbs_replace(&old);
		gpu_ends_open(&e);
		lend(&e);
		exchange(&e, 10);
		ends_close(&e);
		assert_int_equal(fake_n_dmabufs, 0);
		assert_int_equal(fake_n_peer_memory, 2 * (i + 1));
	}
}

static void memory_that_cannot_be_registered_is_a_sentence(void **state)
{
	struct ends e;
	struct err err;

	(void)state;
	fake_faults.dmabuf_errno = EOPNOTSUPP;
	fake_faults.peer_memory_errno = EFAULT;
	gpu_ends_open(&e);
	assert_int_equal(e.r, -EFAULT);
	assert_non_null(strstr(e.err.text,
			       "4 MiB of the GPU cannot be registered: as a dma-buf: Operation "
			       "not supported; by address: Bad address (that needs the kernel "
			       "module nvidia-peermem)"));
	assert_null(e.b.link);
	ends_close(&e);
	assert_int_equal(gpu.n_frees, 1);

	/* an ordinary link lives on */
	ends_open(&e);
	e.a.on_frame = on_body;
	e.b.on_frame = on_blind;
	e.b.discard_percent = 100;
	gpu.has_no_dmabuf = true;
	assert_int_equal(link_lend_gpu(e.b.link, &the_gpu, LENT_BYTES, &err), -EFAULT);
	assert_non_null(strstr(err.text, "as a dma-buf: its driver gives none; by address"));
	gpu.alloc_errno = ENOMEM;
	assert_int_equal(link_lend_gpu(e.b.link, &the_gpu, LENT_BYTES, &err), -ENOMEM);
	assert_string_equal(err.text, "the GPU is full");
	gpu.alloc_errno = 0;
	fake_faults.peer_memory_errno = 0;
	lend(&e);
	exchange(&e, 10);
	ends_close(&e);
}

static void other_links_refuse_memory_of_a_gpu(void **state)
{
	struct link *a;
	struct err err;

	(void)state;
	assert_int_equal(link_connect_gpu("tcp:127.0.0.1:1", 10, &the_gpu, &peer_events, NULL, &a,
					  &err),
			 -ENOTSUP);
	assert_non_null(strstr(err.text, "only rdma"));
}

/* --- what may be written there --------------------------------------------------------------- */

static void send_boot(struct ends *e, uint64_t index)
{
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_BOOT, 60000);
	h.index = index;
	assert_int_equal(link_send(e->a.link, &h, bytes, index), 0);
}

/* A long BOOT is lent like the body of a message, and yet goes to the host. */
static void only_messages_may_be_written_there(void **state)
{
	struct ends e;
	uint64_t sent = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	gpu_ends_open(&e);
	for (int i = 0; i < 5; i++) {
		send_boot(&e, sent++);
		send_n(&e.a, &sent, 1, 100000);
	}
	for (int i = 0; i < 300 && e.b.n_frames < sent; i++)
		move(&e, 1);
	assert_int_equal(e.b.n_frames, sent);
	assert_false(e.b.bad);
	memset(bytes, 0, sizeof(bytes));

	/* a peer that lies */
	rdma_of(e.a.link)->peer.flags = 0;
	send_boot(&e, sent++);
	until_closed(&e, &e.b);
	expect_end(&e.b, -EPROTO, "it wrote what is no body of a message into memory of the GPU");
	assert_int_equal(e.b.n_frames, sent - 1);
	ends_close(&e);
}

static void unknown_flags_are_refused(void **state)
{
	struct rdma_hello h = {.magic = RDMA_HELLO_MAGIC,
			       .version = RDMA_HELLO_VERSION,
			       .n_qps = 1,
			       .ring_bytes = RDMA_RING_MIN,
			       .window = 64,
			       .slot_bytes = 8192};
	struct err err;

	(void)state;
	assert_int_equal(rdma_hello_check(&h, sizeof(h), &h, &err), 0);
	h.flags = RDMA_HELLO_RING_BLIND | RDMA_HELLO_READS;
	assert_int_equal(rdma_hello_check(&h, sizeof(h), &h, &err), 0);
	h.flags |= 4;
	assert_int_equal(rdma_hello_check(&h, sizeof(h), &h, &err), -EPROTO);
	assert_non_null(strstr(err.text, "unknown flags 0x7"));
}

int main(void)
{
#define G(f) cmocka_unit_test_setup_teardown(f, gpu_setup, gpu_teardown)
	const struct CMUnitTest tests[] = {
		G(bodies_cross_without_a_touch),
		G(memory_without_a_dmabuf_is_registered_by_address),
		G(memory_that_cannot_be_registered_is_a_sentence),
		G(other_links_refuse_memory_of_a_gpu),
		G(only_messages_may_be_written_there),
		G(unknown_flags_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
