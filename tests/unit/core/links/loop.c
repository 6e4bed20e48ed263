/* See loop.h: two byte queues in memory. A test can make reads and writes as short as it likes.
 * There is nothing to sleep on: link_fd() is -1. */
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "links/kind.h"

#define PIPE_BYTES (64u << 10)

struct pipe {
	uint64_t head, tail; /* bytes read, written */
	unsigned char data[PIPE_BYTES];
};

struct pair {
	unsigned int n_ends;
	struct pipe pipe[2]; /* [i] is read by end i */
};

struct loop_link {
	struct link link;
	struct pair *pair; /* shared by both ends; the last one frees */
	int end;
	size_t most;
};

static struct loop_link *to_loop(const struct link *l)
{
	/* the cast drops const; callers with a const link only read */
	return container_of((uintptr_t)l, struct loop_link, link);
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t pipe_write(struct pipe *p, const void *src, size_t n)
{
	size_t i;

	n = min_size(n, PIPE_BYTES - (size_t)(p->tail - p->head));
	for (i = 0; i < n;) {
		size_t at = (size_t)((p->tail + i) % PIPE_BYTES);
		size_t part = min_size(n - i, PIPE_BYTES - at);

		memcpy(p->data + at, (const char *)src + i, part);
		i += part;
	}
	p->tail += n;
	return n;
}

static size_t pipe_read(struct pipe *p, void *dst, size_t n)
{
	size_t i;

	n = min_size(n, (size_t)(p->tail - p->head));
	for (i = 0; i < n && dst;) {
		size_t at = (size_t)((p->head + i) % PIPE_BYTES);
		size_t part = min_size(n - i, PIPE_BYTES - at);

		memcpy((char *)dst + i, p->data + at, part);
		i += part;
	}
	p->head += n;
	return n;
}

static ssize_t loop_write(struct link *l, const struct iovec *iov, int n_iov)
{
	struct loop_link *e = to_loop(l);
	size_t left = e->most, total = 0, want, n;
	int i;

	if (e->pair->n_ends < 2)
		return -EPIPE;
	for (i = 0; i < n_iov && left; i++) {
		want = min_size(iov[i].iov_len, left);
		n = pipe_write(&e->pair->pipe[!e->end], iov[i].iov_base, want);
		total += n;
		left -= n;
		if (n < want)
			break;
	}
	return (ssize_t)total;
}

static ssize_t loop_read(struct link *l, void *dst, size_t n)
{
	struct loop_link *e = to_loop(l);
	size_t got = pipe_read(&e->pair->pipe[e->end], dst, min_size(n, e->most));

	return got || e->pair->n_ends == 2 ? (ssize_t)got : IO_END;
}

static bool loop_arm(struct link *l, bool want_read, bool want_write)
{
	struct loop_link *e = to_loop(l);
	struct pipe *rx = &e->pair->pipe[e->end], *tx = &e->pair->pipe[!e->end];

	if (want_read && (rx->tail != rx->head || e->pair->n_ends < 2))
		return false;
	return !(want_write && tx->tail - tx->head < PIPE_BYTES);
}

static int loop_fd(const struct link *l)
{
	(void)l;
	return -1;
}

static short loop_poll_events(const struct link *l, bool want_read, bool want_write)
{
	(void)l;
	(void)want_read;
	(void)want_write;
	return 0;
}

static void loop_free(struct link *l)
{
	struct loop_link *e = to_loop(l);

	if (--e->pair->n_ends == 0)
		free(e->pair);
	free(e);
}

static const struct link_ops loop_ops = {
	.kind = "loop",
	.write = loop_write,
	.read = loop_read,
	.arm = loop_arm,
	.fd = loop_fd,
	.poll_events = loop_poll_events,
	.free = loop_free,
};

int link_loop_pair(const struct link_events *ev, void *owner_a, void *owner_b, struct link **ret_a,
		   struct link **ret_b)
{
	CLEANUP(freep) struct pair *pair = calloc(1, sizeof(*pair));
	CLEANUP(freep) struct loop_link *a = calloc(1, sizeof(*a));
	CLEANUP(freep) struct loop_link *b = calloc(1, sizeof(*b));

	if (!pair || !a || !b)
		return -ENOMEM;
	link_init(&a->link, &loop_ops, ev, owner_a);
	link_init(&b->link, &loop_ops, ev, owner_b);
	strcpy(a->link.peer, "loop");
	strcpy(b->link.peer, "loop");
	a->most = b->most = SIZE_MAX;
	a->pair = b->pair = pair;
	b->end = 1;
	pair->n_ends = 2;
	*ret_a = &a->link;
	*ret_b = &b->link;
	(void)steal_ptr(pair);
	(void)steal_ptr(a);
	(void)steal_ptr(b);
	return 0;
}

void loop_set_most(struct link *l, size_t most)
{
	to_loop(l)->most = most;
}

size_t loop_inject(struct link *l, const void *bytes, size_t n)
{
	struct loop_link *e = to_loop(l);

	return pipe_write(&e->pair->pipe[e->end], bytes, n);
}
