/* For tests of links: an owner that checks the frames it receives and counts its callbacks. The
 * bytes of a frame are a function of its number. */
#pragma once

#include <stdint.h>

#include "cmocka-all.h"
#include "rng.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "links/endpoint.h"

struct peer {
	struct link *link;
	uint64_t n_headers, n_frames, n_sent, n_closed, n_holds;
	uint64_t next_cookie; /* that on_sent must bring */
	int closed_code;
	char why[ERR_TEXT_MAX];
	unsigned char *body; /* where MESSAGE bodies go; owned */
	uint64_t body_bytes;
	bool reads; /* what is offered: @body is registered */
	struct link_memory *memory;
	uint64_t seed;
	unsigned int hold_percent, discard_percent;
	struct rng rng;
	int bad; /* something was not as it must be */
	int (*on_frame)(struct peer *p, const struct wire_hdr *h, const void *body);
};

static inline unsigned char peer_byte(uint64_t seed, uint64_t frame, uint64_t at)
{
	uint64_t x = (seed + frame * 0x9e3779b97f4a7c15u) ^ (at * 0x2545f4914f6cdd1du);

	return (unsigned char)(x >> 32 ^ x >> 11);
}

static inline void peer_fill(unsigned char *b, uint64_t n, uint64_t seed, uint64_t frame)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		b[i] = peer_byte(seed, frame, i);
}

static inline int peer_matches(const unsigned char *b, uint64_t n, uint64_t seed, uint64_t frame)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		if (b[i] != peer_byte(seed, frame, i))
			return 0;
	return 1;
}

static int peer_on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	struct peer *p = owner;
	struct err err;

	if (p->hold_percent && rng_u64(&p->rng) % 100 < p->hold_percent) {
		p->n_holds++;
		return LINK_HOLD;
	}
	p->n_headers++;
	p->bad |= p->n_closed != 0;
	if (h->type != WIRE_MESSAGE)
		return 0;
	if (p->discard_percent && rng_u64(&p->rng) % 100 < p->discard_percent)
		return 0;
	if (h->body_bytes > p->body_bytes) {
		link_unregister(l, p->memory);
		free(p->body);
		p->body = malloc(h->body_bytes);
		p->body_bytes = h->body_bytes;
		p->bad |= p->reads && link_register(l, p->body, p->body_bytes, &p->memory, &err);
	}
	link_lands_in(l, p->memory);
	*ret_body = p->body;
	return 0;
}

static int peer_on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct peer *p = owner;

	(void)l;
	p->bad |= p->n_closed != 0;
	if (p->on_frame)
		return p->on_frame(p, h, body);
	/* in order, none lost, none twice, every byte right */
	p->bad |= h->index != p->n_frames;
	if (body && !peer_matches(body, h->body_bytes, p->seed, h->index))
		p->bad = 1;
	p->n_frames++;
	return 0;
}

static void peer_on_sent(void *owner, struct link *l, uint64_t cookie)
{
	struct peer *p = owner;

	(void)l;
	p->bad |= cookie != p->next_cookie || p->n_closed != 0;
	p->next_cookie++;
	p->n_sent++;
}

static void peer_on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct peer *p = owner;

	(void)l;
	p->n_closed++;
	p->closed_code = code;
	snprintf(p->why, sizeof(p->why), "%s", why);
}

static const struct link_events peer_events = {
	.on_header = peer_on_header,
	.on_frame = peer_on_frame,
	.on_sent = peer_on_sent,
	.on_closed = peer_on_closed,
};

static inline void peer_init(struct peer *p, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	p->seed = seed;
	rng_seed(&p->rng, seed, 77);
}

static inline void peer_deinit(struct peer *p)
{
	p->link = link_free(p->link);
	free(p->body);
	p->body = NULL;
}

/* Polls, or sleeps as an owner would: arm, poll, progress. */
static inline void peer_wait(struct peer *p, int may_sleep)
{
	struct pollfd pfd;
	int n = 1;

	if (may_sleep && link_arm(p->link)) {
		pfd.fd = link_fd(p->link);
		pfd.events = link_poll_events(p->link);
		n = poll(&pfd, 1, p->hold_percent ? 1 : 20000);
	}
	if (p->n_holds)
		link_resume(p->link);
	/* the poll timed out although there was something: a lost wake-up */
	if (link_progress(p->link) > 0 && n == 0 && !p->hold_percent)
		p->bad = 1;
}

static inline struct link *accept_one(struct listener *l, void *owner)
{
	struct pollfd p = {.fd = listener_fd(l), .events = POLLIN};
	struct link *link = NULL;
	struct err err;
	int r;

	do {
		poll(&p, 1, 10000);
		r = link_accept(l, &peer_events, owner, &link, &err);
	} while (r == -EAGAIN);
	assert_int_equal(r, 0);
	return link;
}
