/* See link.h: the queue of frames to send, and the parser of the frames received. A kind (tcp.c,
 * shm.c, rdma/) only moves bytes.
 *
 * link_progress() writes what is queued, reads what has come, and writes what the callbacks
 * queued meanwhile. Its work is bounded, so that one busy link does not starve the others of its
 * thread. A write error does not close the link: the peer may have said why it left, so the link
 * reads on to the end. */
#include "links/link.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "links/kind.h"

#define TX_FIRST_CAPACITY 16
#define TX_IOV 64
#define ROUND_BYTES (UINT64_C(4) << 20) /* of one link_progress(), each direction */
#define ROUND_FRAMES 256

/* --- sending ---------------------------------------------------------------- */

static struct tx_item *tx_at(const struct link *l, uint32_t i)
{
	return &l->tx[(l->tx_first + i) & (l->tx_capacity - 1)];
}

static int tx_grow(struct link *l)
{
	uint32_t i, capacity = l->tx_capacity ? l->tx_capacity * 2 : TX_FIRST_CAPACITY;
	struct tx_item *items;

	if (capacity <= l->tx_capacity)
		return -ENOMEM;
	items = malloc((size_t)capacity * sizeof(*items));
	if (!items)
		return -ENOMEM;
	for (i = 0; i < l->tx_n; i++)
		items[i] = *tx_at(l, i);
	free(l->tx);
	l->tx = items;
	l->tx_capacity = capacity;
	l->tx_first = 0;
	return 0;
}

static int tx_push(struct link *l, const struct wire_hdr *h, const void *body, void *copy,
		   uint64_t cookie)
{
	struct tx_item *item;

	if (l->tx_n == l->tx_capacity && tx_grow(l))
		return -ENOMEM;
	item = tx_at(l, l->tx_n++);
	item->hdr = *h;
	item->body = body;
	item->copy = copy;
	item->cookie = cookie;
	item->memory = NULL;
	item->is_gpu = item->is_offered = false;
	l->tx_queued += sizeof(*h) + h->body_bytes;
	return 0;
}

int link_send(struct link *l, const struct wire_hdr *h, const void *body, uint64_t cookie)
{
	assert(body || h->body_bytes == 0);
	if (l->is_closed || l->tx_dead)
		return -EPIPE;
	return tx_push(l, h, body, NULL, cookie);
}

int link_register(struct link *l, const void *base, uint64_t bytes, struct link_memory **ret,
		  struct err *err)
{
	*ret = NULL;
	return l->ops->register_memory ? l->ops->register_memory(l, base, bytes, ret, err) : 0;
}

void link_unregister(struct link *l, struct link_memory *m)
{
	if (m)
		l->ops->unregister_memory(l, m);
}

int link_send_from(struct link *l, const struct wire_hdr *h, const void *body,
		   struct link_memory *m, uint64_t cookie)
{
	int r = link_send(l, h, body, cookie);

	if (!r)
		tx_at(l, l->tx_n - 1)->memory = m;
	return r;
}

int link_send_offer(struct link *l, const struct wire_hdr *h, const void *body, uint64_t cookie)
{
	int r = link_send(l, h, body, cookie);

	if (!r)
		tx_at(l, l->tx_n - 1)->is_offered = true;
	return r;
}

bool link_reads(const struct link *l)
{
	return l->ops->reads && l->ops->reads(l);
}

void link_lands_in(struct link *l, struct link_memory *m)
{
	l->rx_memory = m;
}

bool link_reaches_gpus(const struct link *l)
{
	return l->ops->lend_gpu != NULL;
}

int link_lend_gpu(struct link *l, const struct link_gpu *gpu, uint64_t bytes, struct err *err)
{
	assert(!l->lent_gpu);
	if (!l->ops->lend_gpu)
		return err_set(err, ENOTSUP, "the link is %s: only rdma sends from memory of a GPU",
			       l->ops->kind);
	return l->ops->lend_gpu(l, gpu, bytes, err);
}

int link_send_gpu(struct link *l, const struct wire_hdr *h, uint64_t cookie)
{
	int r;

	assert(l->lent_gpu && h->type == WIRE_MESSAGE);
	if (l->is_closed || l->tx_dead)
		return -EPIPE;
	r = tx_push(l, h, l->lent_gpu, NULL, cookie);
	if (!r)
		tx_at(l, l->tx_n - 1)->is_gpu = true;
	return r;
}

int link_send_copy(struct link *l, const struct wire_hdr *h, const void *body)
{
	CLEANUP(freep) void *copy = NULL;
	int r;

	assert(body || h->body_bytes == 0);
	if (l->is_closed || l->tx_dead)
		return -EPIPE;
	copy = malloc(h->body_bytes ? h->body_bytes : 1);
	if (!copy)
		return -ENOMEM;
	if (h->body_bytes)
		memcpy(copy, body, h->body_bytes);
	r = tx_push(l, h, copy, copy, 0);
	if (!r)
		copy = NULL;
	return r;
}

uint64_t link_queued_bytes(const struct link *l)
{
	return l->tx_queued;
}

static void tx_drop_all(struct link *l)
{
	for (; l->tx_n; l->tx_n--) {
		free(tx_at(l, 0)->copy);
		l->tx_first = (l->tx_first + 1) & (l->tx_capacity - 1);
	}
	l->tx_done = 0;
	l->tx_taken = 0;
	l->tx_queued = 0;
}

static int tx_fill_iov(const struct link *l, struct iovec *iov)
{
	uint64_t skip = l->tx_done;
	uint32_t i;
	int n = 0;

	for (i = 0; i < l->tx_n && n + 2 <= TX_IOV; i++) {
		struct tx_item *item = tx_at(l, i);

		if (skip < sizeof(item->hdr)) {
			iov[n].iov_base = (char *)&item->hdr + skip;
			iov[n++].iov_len = sizeof(item->hdr) - skip;
			skip = 0;
		} else {
			skip -= sizeof(item->hdr);
		}
		if (item->hdr.body_bytes) {
			/* never written to: iovec has no const */
			iov[n].iov_base = (char *)(uintptr_t)item->body + skip;
			iov[n++].iov_len = item->hdr.body_bytes - skip;
		}
		skip = 0;
	}
	return n;
}

/* @n bytes have left; tells the owners of the bodies. A callback may queue more. */
static void tx_consume(struct link *l, uint64_t n)
{
	l->tx_done += n;
	l->tx_queued -= n;
	while (l->tx_n) {
		struct tx_item item = *tx_at(l, 0);
		uint64_t bytes = sizeof(item.hdr) + item.hdr.body_bytes;

		if (l->tx_done < bytes)
			return;
		l->tx_done -= bytes;
		l->tx_taken -= bytes < l->tx_taken ? bytes : l->tx_taken;
		l->tx_first = (l->tx_first + 1) & (l->tx_capacity - 1);
		l->tx_n--;
		if (item.copy)
			free(item.copy);
		else if (l->ev->on_sent)
			l->ev->on_sent(l->owner, l, item.cookie);
	}
}

static void link_close(struct link *l, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What post() has not taken yet. */
static int tx_fill_segs(const struct link *l, struct link_seg *seg)
{
	uint64_t skip = l->tx_taken, bytes;
	uint32_t i;
	int n = 0;

	for (i = 0; i < l->tx_n && n + 2 <= TX_IOV; i++) {
		const struct tx_item *item = tx_at(l, i);

		bytes = sizeof(item->hdr) + item->hdr.body_bytes;
		if (skip >= bytes) {
			skip -= bytes;
			continue;
		}
		if (skip < sizeof(item->hdr)) {
			seg[n++] = (struct link_seg){.base = (const char *)&item->hdr + skip,
						     .bytes = sizeof(item->hdr) - skip};
			skip = 0;
		} else {
			skip -= sizeof(item->hdr);
		}
		if (item->hdr.body_bytes)
			seg[n++] = (struct link_seg){
				.base = (const char *)item->body + skip,
				.bytes = item->hdr.body_bytes - skip,
				.memory = item->memory,
				.is_lent = !item->copy,
				.is_offered = item->is_offered,
				.is_message = item->hdr.type == WIRE_MESSAGE,
				.is_gpu = item->is_gpu,
			};
		skip = 0;
	}
	return n;
}

/* tx_flush() for kinds that send from lent memory. */
static bool tx_post(struct link *l)
{
	struct link_seg seg[TX_IOV];
	uint64_t moved = 0, done, want;
	ssize_t n;
	int i, n_seg;

	while (!l->tx_dead && moved < ROUND_BYTES) {
		n_seg = tx_fill_segs(l, seg);
		if (!n_seg)
			break;
		for (i = 0, want = 0; i < n_seg; i++)
			want += seg[i].bytes;
		n = l->ops->post(l, seg, n_seg);
		if (n < 0)
			l->tx_dead = true;
		if (n <= 0)
			break;
		moved += (uint64_t)n;
		l->tx_taken += (uint64_t)n;
		if ((uint64_t)n < want)
			break;
	}
	done = l->ops->done(l);
	if (done)
		tx_consume(l, done);
	return moved || done;
}

static bool tx_flush(struct link *l)
{
	struct iovec iov[TX_IOV];
	uint64_t moved = 0, want;
	ssize_t n;
	int i, n_iov;

	if (l->ops->post)
		return tx_post(l);
	while (l->tx_n && !l->tx_dead && moved < ROUND_BYTES) {
		n_iov = tx_fill_iov(l, iov);
		for (i = 0, want = 0; i < n_iov; i++)
			want += iov[i].iov_len;
		n = l->ops->write(l, iov, n_iov);
		if (n == -EPROTO) {
			link_close(l, -EPROTO, "the peer broke the rules of the shared rings");
			return true;
		}
		if (n < 0) {
			l->tx_dead = true;
			break;
		}
		if (n == 0)
			break;
		moved += (uint64_t)n;
		tx_consume(l, (uint64_t)n);
		if ((uint64_t)n < want)
			break;
	}
	return moved > 0;
}

/* --- the end ---------------------------------------------------------------- */

static void link_close(struct link *l, int code, const char *fmt, ...)
{
	char why[ERR_TEXT_MAX];
	va_list ap;

	if (l->is_closed)
		return;
	l->is_closed = true;
	l->closed_code = code ? code : -EPIPE;
	tx_drop_all(l);
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (l->ev->on_closed)
		l->ev->on_closed(l->owner, l, code, why);
}

/* What reading met: @n is IO_END or an error. */
static void rx_close(struct link *l, ssize_t n)
{
	uint64_t header = sizeof(l->hdr);
	const char *end = n == IO_END && l->ops->why ? l->ops->why(l) : "",
		   *colon = end[0] ? ": " : "";

	if (n == -EPROTO && !l->ops->why) {
		link_close(l, -EPROTO, "the peer broke the rules of the shared rings");
	} else if (n != IO_END) {
		const char *why = l->ops->why ? l->ops->why(l) : strerror((int)-n);

		link_close(l, (int)n, "the connection broke: %s", why);
	} else if (l->rx_state == RX_HEADER && l->rx_got == 0) {
		link_close(l, 0, "%s", end[0] ? end : "the peer closed the connection");
	} else if (l->rx_state == RX_HEADER) {
		link_close(l, -ECONNRESET,
			   "the peer ended in the middle of a header, after %llu of %llu bytes%s%s",
			   (unsigned long long)l->rx_got, (unsigned long long)header, colon, end);
	} else {
		link_close(
			l, -ECONNRESET,
			"the peer ended in the middle of a %s frame, after %llu of %llu bytes%s%s",
			wire_type_name(l->hdr.type), (unsigned long long)l->rx_got,
			(unsigned long long)l->hdr.body_bytes, colon, end);
	}
}

/* --- receiving -------------------------------------------------------------- */

static bool body_is_ours(const struct wire_hdr *h)
{
	return h->type != WIRE_MESSAGE && h->body_bytes <= WIRE_CONTROL_MAX;
}

static int rx_reserve(struct link *l, size_t bytes)
{
	void *bigger;

	if (bytes <= l->rx_control_bytes)
		return 0;
	bigger = malloc(bytes);
	if (!bigger)
		return -ENOMEM;
	free(l->rx_control);
	l->rx_control = bigger;
	l->rx_control_bytes = bytes;
	return 0;
}

/* Offers the header to the owner, which says where to put the body. */
static void rx_offer(struct link *l)
{
	void *body = NULL;
	int r = 0;

	if (body_is_ours(&l->hdr)) {
		if (rx_reserve(l, l->hdr.body_bytes)) {
			link_close(l, -ENOMEM, "no memory for a %s frame of %llu bytes",
				   wire_type_name(l->hdr.type),
				   (unsigned long long)l->hdr.body_bytes);
			return;
		}
		body = l->hdr.body_bytes ? l->rx_control : NULL;
	}
	l->rx_memory = NULL;
	if (l->ev->on_header)
		r = l->ev->on_header(l->owner, l, &l->hdr, &body);
	if (r == LINK_HOLD) {
		l->is_held = true;
		return;
	}
	if (r < 0) {
		link_close(l, r, "a %s frame was refused: %s", wire_type_name(l->hdr.type),
			   strerror(-r));
		return;
	}
	if (l->discards_messages && l->hdr.type == WIRE_MESSAGE)
		body = NULL;
	l->rx_body = body;
	l->rx_got = 0;
	l->rx_state = RX_BODY;
}

static void rx_header_done(struct link *l)
{
	struct err err;
	int r;

	r = wire_hdr_check(&l->hdr, &err);
	if (r)
		link_close(l, r, "%s", err.text);
	else
		l->rx_state = RX_OFFER;
}

static void rx_frame_done(struct link *l)
{
	int r;

	/* Before the callback, so that it sees a link between frames. */
	l->rx_state = RX_HEADER;
	l->rx_got = 0;
	r = l->ev->on_frame ? l->ev->on_frame(l->owner, l, &l->hdr, l->rx_body) : 0;
	if (r < 0)
		link_close(l, r, "a %s frame was refused: %s", wire_type_name(l->hdr.type),
			   strerror(-r));
}

/* Reads on in the header or body. Return: bytes; 0: none now, or the link ended. */
static size_t rx_fill(struct link *l, void *dst, uint64_t size)
{
	uint64_t want = size - l->rx_got;
	ssize_t n;

	if (want > ROUND_BYTES)
		want = ROUND_BYTES;
	n = l->ops->read(l, dst ? (char *)dst + l->rx_got : NULL, want);
	if (n < 0) {
		rx_close(l, n);
		return 0;
	}
	l->rx_got += (uint64_t)n;
	return (size_t)n;
}

static bool rx_pump(struct link *l)
{
	uint64_t bytes = 0;
	unsigned int frames = 0;
	bool moved = false;
	size_t n;

	while (!l->is_closed && !l->is_held && bytes < ROUND_BYTES && frames < ROUND_FRAMES) {
		switch (l->rx_state) {
		case RX_HEADER:
			n = rx_fill(l, &l->hdr, sizeof(l->hdr));
			if (!n)
				return moved || l->is_closed;
			bytes += n;
			if (l->rx_got == sizeof(l->hdr))
				rx_header_done(l);
			break;
		case RX_OFFER:
			rx_offer(l);
			break;
		case RX_BODY:
			if (l->rx_got < l->hdr.body_bytes) {
				n = rx_fill(l, l->rx_body, l->hdr.body_bytes);
				if (!n)
					return moved || l->is_closed;
				bytes += n;
			}
			if (!l->is_closed && l->rx_got == l->hdr.body_bytes) {
				frames++;
				rx_frame_done(l);
			}
			break;
		}
		moved = true;
	}
	return moved;
}

/* --- for the owner ---------------------------------------------------------- */

int link_progress(struct link *l)
{
	bool moved = false;

	if (l->is_closed)
		return l->closed_code;
	if (l->is_busy) /* from inside a callback */
		return 0;
	l->is_busy = true;
	if (l->ops->begin)
		l->ops->begin(l);
	moved |= tx_flush(l);
	moved |= rx_pump(l);
	if (!l->is_closed)
		moved |= tx_flush(l);
	if (l->ops->end)
		l->ops->end(l);
	l->is_busy = false;
	return l->is_closed ? l->closed_code : moved;
}

void link_lends_passing(struct link *l)
{
	l->lends_passing = true;
}

void link_resume(struct link *l)
{
	l->is_held = false;
}

int link_fd(const struct link *l)
{
	return l->is_closed ? -1 : l->ops->fd(l);
}

int link_all_fds(const struct link *l, int *fds, int most)
{
	if (l->ops->all_fds)
		return l->ops->all_fds(l, fds, most);
	if (most < 1 || link_fd(l) < 0)
		return 0;
	fds[0] = link_fd(l);
	return 1;
}

static bool wants_write(const struct link *l)
{
	return l->tx_n && !l->tx_dead;
}

short link_poll_events(const struct link *l)
{
	return l->is_closed ? 0 : l->ops->poll_events(l, !l->is_held, wants_write(l));
}

bool link_arm(struct link *l)
{
	if (l->is_closed)
		return true;
	if (!l->is_held && l->rx_state == RX_OFFER)
		return false;
	return l->ops->arm(l, !l->is_held, wants_write(l));
}

const char *link_kind(const struct link *l)
{
	return l->ops->kind;
}

const char *link_peer(const struct link *l)
{
	return l->peer;
}

struct link *link_free(struct link *l)
{
	if (!l)
		return NULL;
	assert(!l->is_busy); /* a callback may not free its link */
	tx_drop_all(l);
	free(l->tx);
	free(l->rx_control);
	l->ops->free(l);
	return NULL;
}
