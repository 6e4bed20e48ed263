/* For tests of links: a conversation. Two threads send each other frames of all sizes at once,
 * polling or sleeping, with holds and discards, over any kind of link. */
#pragma once

#include "peer.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#define MAX_BODY (3u << 20)

/* One side of a conversation: sends n frames, expects n frames. */
struct side {
	struct peer peer;
	uint64_t n, seed;
	unsigned int sleep_percent;
	unsigned char *out; /* bodies lie in here, at random places */
	const char *connect_to;
	_Atomic int *n_over; /* of the two sides: the first still moves its link for the other */
	int failed;
	struct err why; /* it could not connect */
};

static uint64_t long_bytes; /* of each body; 0: of all sizes */

static uint64_t frame_bytes(struct rng *rng)
{
	if (long_bytes)
		return long_bytes;
	switch (rng_u64(rng) % 8) {
	case 0:
		return 0;
	case 1:
		return rng_u64(rng) % MAX_BODY;
	case 2:
		return rng_u64(rng) % 70000;
	default:
		return rng_u64(rng) % 200;
	}
}

/* Bodies are borrowed: each must stay as it is until on_sent. Of so many bytes
 * there is only one copy at a time: the next is filled when the last was sent. */
static int talk(struct side *s)
{
	uint64_t sent = 0, due_ns = clock_now_ns() + 200 * NS_PER_S;
	struct peer *p = &s->peer;
	struct wire_hdr h;
	struct rng rng;

	rng_seed(&rng, s->seed, 5);
	while (p->n_frames < s->n || p->n_sent < s->n || link_queued_bytes(p->link)) {
		while (sent < s->n && p->n_sent == sent) {
			uint64_t bytes = frame_bytes(&rng);

			wire_hdr_init(&h, WIRE_MESSAGE, bytes);
			h.index = sent;
			peer_fill(s->out, bytes, p->seed, sent);
			if ((p->reads ? link_send_offer : link_send)(p->link, &h, s->out, sent++))
				return -1;
			if (rng_u64(&rng) % 4)
				break;
		}
		peer_wait(p, rng_u64(&rng) % 100 < s->sleep_percent);
		if (p->n_closed || p->bad || clock_now_ns() > due_ns) {
			fprintf(stderr, "# %s bad %d frames %lu sent %lu\n", p->why, p->bad,
				(unsigned long)p->n_frames, (unsigned long)p->n_sent);
			(*s->n_over)++;
			return -1;
		}
	}
	(*s->n_over)++;
	while (*s->n_over < 2 && !p->n_closed) {
		peer_wait(p, 0);
		usleep(100);
	}
	return 0;
}

static void *connect_and_talk(void *arg)
{
	struct side *s = arg;

	s->failed =
		link_connect(s->connect_to, 60000, &peer_events, &s->peer, &s->peer.link, &s->why);
	if (s->failed)
		(*s->n_over)++;
	if (!s->failed)
		s->failed = talk(s);
	return NULL;
}

static void side_init(struct side *s, uint64_t n, uint64_t seed, unsigned int sleep_percent)
{
	memset(s, 0, sizeof(*s));
	peer_init(&s->peer, 1);
	rng_seed(&s->peer.rng, seed, 1);
	s->n = n;
	s->seed = seed;
	s->sleep_percent = sleep_percent;
	s->out = malloc(long_bytes ? long_bytes : MAX_BODY);
	assert_non_null(s->out);
}

static bool peers_read; /* what is offered to them, which is all */

static inline void converse(const char *addr, uint64_t n, unsigned int sleep_a,
			    unsigned int sleep_b, unsigned int hold_percent)
{
	struct listener *l = NULL;
	struct side a, b;
	_Atomic int n_over = 0;
	pthread_t thread;
	struct err err;

	side_init(&a, n, 11 + sleep_a, sleep_a);
	side_init(&b, n, 22 + sleep_b, sleep_b);
	a.n_over = b.n_over = &n_over;
	a.peer.reads = b.peer.reads = peers_read;
	a.peer.hold_percent = b.peer.hold_percent = hold_percent;
	a.peer.discard_percent = 10;
	assert_int_equal(listener_open(addr, &l, &err), 0);
	b.connect_to = listener_addr(l);
	assert_int_equal(pthread_create(&thread, NULL, connect_and_talk, &b), 0);
	a.peer.link = accept_one(l, &a.peer);
	a.failed = talk(&a);
	pthread_join(thread, NULL);
	if (a.failed || b.failed)
		fail_msg("accepted: %d, closed %d '%s'; connected: %d, closed %d '%s', '%s'",
			 a.failed, a.peer.closed_code, a.peer.why, b.failed, b.peer.closed_code,
			 b.peer.why, b.why.text);
	/* b leaves: on_closed of a comes once */
	peer_deinit(&b.peer);
	while (!a.peer.n_closed)
		peer_wait(&a.peer, 1);
	if (a.peer.closed_code)
		fail_msg("%d: %s", a.peer.closed_code, a.peer.why);
	assert_int_equal(a.peer.n_closed, 1);
	peer_deinit(&a.peer);
	free(a.out);
	free(b.out);
	listener_free(l);
}
