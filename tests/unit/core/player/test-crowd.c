/* Players of all ranks of random ops against an obvious computation, with messages in memory that
 * arrive and are acknowledged in random order. And unexpected messages. */
#include "crowd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define LANES 64
#define QUEUE 64

/* --- messages in memory --------------------------------------------------------------- */

struct post {
	void *dst;
	uint64_t bytes, index;
};

struct message {
	const void *src;
	uint64_t bytes, index;
	bool is_here; /* delivered, not yet acknowledged */
};

struct conn {
	struct post posts[QUEUE];
	struct message messages[QUEUE];
	uint32_t n_posts, n_messages;
};

struct net {
	struct crowd *crowd;
	struct conn *conn[CROWD_MAX][CROWD_MAX][LANES];
	uint64_t n_posted_most;
};

struct end { /* the owner of a player */
	struct net *net;
	uint32_t rank;
};

static struct conn *net_conn(struct net *net, uint32_t src, uint32_t dst, uint16_t lane)
{
	struct conn **c;

	assert_true(src < CROWD_MAX && dst < CROWD_MAX && lane < LANES && src != dst);
	c = &net->conn[src][dst][lane];
	if (!*c)
		*c = calloc(1, sizeof(**c));
	assert_non_null(*c);
	return *c;
}

static int mem_send(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		    uint64_t bytes)
{
	struct end *e = owner;
	struct conn *c = net_conn(e->net, e->rank, peer, lane);

	assert_true(c->n_messages < QUEUE);
	c->messages[c->n_messages++] = (struct message){src, bytes, index, false};
	return 0;
}

static int mem_post(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		    uint64_t bytes)
{
	struct end *e = owner;
	struct conn *c = net_conn(e->net, peer, e->rank, lane);

	assert_true(c->n_posts < QUEUE);
	c->posts[c->n_posts++] = (struct post){dst, bytes, index};
	return 0;
}

static const struct player_io mem_io = {.send = mem_send, .post = mem_post};

/* Moves one message of the connection, or acknowledges one. Return: 1 when it did. */
static int conn_step(struct net *net, uint32_t src, uint32_t dst, uint16_t lane)
{
	struct conn *c = net->conn[src][dst][lane];
	struct crowd *crowd = net->crowd;
	uint32_t i = 0;
	struct err err;

	if (!c || !c->n_messages)
		return 0;
	while (i < c->n_messages && c->messages[i].is_here)
		i++;
	/* the oldest undelivered to the oldest posted, or tell of the oldest delivered */
	if (i < c->n_messages && c->n_posts && (i == 0 || rng_u64(&crowd->rng) % 2)) {
		struct message *m = &c->messages[i];
		struct post post = c->posts[0];

		assert_int_equal(post.index, m->index);
		assert_int_equal(post.bytes, m->bytes);
		assert_int_equal(m->bytes, crowd->sched[0].kind == COLL_SENDRECV
						   ? m->bytes
						   : sched_message_bytes(&crowd->sched[dst], src,
									 dst, lane, m->index));
		if (crowd->data[0].reduce && m->bytes)
			memcpy(post.dst, m->src, m->bytes);
		m->is_here = true;
		memmove(c->posts, c->posts + 1, --c->n_posts * sizeof(post));
		assert_int_equal(player_received(crowd->player[dst], src, lane, post.index, &err),
				 0);
		return 1;
	}
	if (i == 0)
		return 0;
	i = (uint32_t)c->messages[0].index;
	memmove(c->messages, c->messages + 1, --c->n_messages * sizeof(c->messages[0]));
	assert_int_equal(player_sent(crowd->player[src], dst, lane, i, &err), 0);
	return 1;
}

static bool all_done(const struct crowd *c)
{
	uint32_t r;

	for (r = 0; r < c->n; r++)
		if (!player_done(c->player[r]))
			return false;
	return true;
}

/* Random connections move until all is done; standing still is a failure. */
static void net_run(struct net *net)
{
	struct crowd *c = net->crowd;
	uint32_t still = 0, src, dst, lane, moved;

	while (!all_done(c)) {
		src = (uint32_t)(rng_u64(&c->rng) % c->n);
		dst = (uint32_t)(rng_u64(&c->rng) % c->n);
		if (conn_step(net, src, dst, (uint16_t)(rng_u64(&c->rng) % LANES))) {
			still = 0;
			continue;
		}
		if (++still < 3000)
			continue;
		for (src = 0, moved = 0; src < c->n; src++)
			for (dst = 0; dst < c->n; dst++)
				for (lane = 0; lane < LANES; lane++)
					moved += conn_step(net, src, dst, (uint16_t)lane);
		if (!moved) {
			crowd_print(c);
			fail_msg("nothing can move");
		}
		still = 0;
	}
}

static void net_free(struct net *net)
{
	uint32_t i;

	for (i = 0; i < CROWD_MAX * CROWD_MAX * LANES; i++)
		free((&net->conn[0][0][0])[i]);
}

static void play_in_memory(uint64_t seed, bool with_data)
{
	static struct net net;
	struct end ends[CROWD_MAX];
	struct crowd crowd;
	uint64_t sent = 0, received = 0;
	uint32_t r;

	memset(&net, 0, sizeof(net));
	crowd_init(&crowd, seed);
	net.crowd = &crowd;
	if (!with_data)
		memset(crowd.data, 0, sizeof(crowd.data));
	for (r = 0; r < crowd.n; r++) {
		ends[r] = (struct end){&net, r};
		assert_int_equal(player_start(&crowd.player[r], &crowd.sched[r], r,
					      with_data ? &crowd.data[r] : NULL, &mem_io, &ends[r]),
				 0);
	}
	net_run(&net);
	for (r = 0; r < crowd.n; r++) {
		sent += player_n_sent(crowd.player[r]);
		received += player_n_received(crowd.player[r]);
	}
	assert_int_equal(sent, received);
	if (crowd.sched[0].kind != COLL_SENDRECV)
		assert_int_equal(sent, sched_total_messages(&crowd.sched[0]));
	if (with_data)
		crowd_check(&crowd);
	net_free(&net);
	crowd_deinit(&crowd);
}

static void random_ops_give_the_right_bytes(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 600; seed++)
		play_in_memory(seed, true);
}

static void without_data_all_messages_are_counted(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 200; seed++)
		play_in_memory(seed, false);
}

/* --- what it does not expect -------------------------------------------------------------- */

struct quiet {
	uint64_t n_posts, n_sends;
	int fail_after;
};

static int quiet_send(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		      uint64_t bytes)
{
	struct quiet *q = owner;

	(void)peer;
	(void)lane;
	(void)index;
	(void)src;
	(void)bytes;
	q->n_sends++;
	return q->fail_after && q->n_sends + q->n_posts >= (uint64_t)q->fail_after ? -EPIPE : 0;
}

static int quiet_post(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		      uint64_t bytes)
{
	struct quiet *q = owner;

	(void)peer;
	(void)lane;
	(void)index;
	(void)dst;
	(void)bytes;
	q->n_posts++;
	return q->fail_after && q->n_sends + q->n_posts >= (uint64_t)q->fail_after ? -EPIPE : 0;
}

static const struct player_io quiet_io = {.send = quiet_send, .post = quiet_post};

static void ring_init(struct sched *s, uint32_t n, uint64_t bytes)
{
	struct err err;

	*s = (struct sched){.kind = COLL_ALLREDUCE,
			    .algo = SCHED_RING,
			    .n_ranks = n,
			    .ranks_per_node = 1,
			    .n_channels = 1,
			    .elem_bytes = 4,
			    .bytes = bytes,
			    .chunk_bytes = 1024,
			    .slices = 1};
	assert_int_equal(sched_init(s, &err), 0);
}

static void an_unexpected_message_is_named(void **state)
{
	struct quiet q = {0};
	struct player *p = NULL;
	struct sched s;
	struct err err;
	char text[200];

	(void)state;
	ring_init(&s, 8, 8 * 1024);
	assert_int_equal(player_start(&p, &s, 0, NULL, &quiet_io, &q), 0);
	assert_int_equal(q.n_sends, 1);
	player_describe(p, text, sizeof(text));
	assert_string_equal(text, "thread 0 step 1 of 15 waits for message 0 from rank 7");

	/* the wrong number, rank, lane; one not sent */
	assert_int_equal(player_received(p, 7, 0, 1, &err), PLAYER_UNEXPECTED);
	assert_string_equal(err.text,
			    "message 1 from rank 7, lane 0, is not expected now; thread 0 "
			    "step 1 of 15 waits for message 0 from rank 7");
	assert_int_equal(player_received(p, 6, 0, 0, &err), PLAYER_UNEXPECTED);
	assert_int_equal(player_received(p, 7, 1, 0, &err), PLAYER_UNEXPECTED);
	assert_int_equal(player_received(p, UINT32_MAX, UINT16_MAX, UINT64_MAX, &err),
			 PLAYER_UNEXPECTED);
	assert_int_equal(player_sent(p, 1, 0, 1, &err), PLAYER_UNEXPECTED);
	assert_int_equal(player_sent(p, 2, 0, 0, &err), PLAYER_UNEXPECTED);
	assert_non_null(strstr(err.text, "message 0 to rank 2, lane 0"));

	/* none of it had an effect; nothing comes twice */
	assert_int_equal(player_received(p, 7, 0, 0, &err), 0);
	assert_int_equal(player_received(p, 7, 0, 0, &err), PLAYER_UNEXPECTED);
	assert_int_equal(player_sent(p, 1, 0, 0, &err), 0);
	assert_int_equal(player_sent(p, 1, 0, 0, &err), PLAYER_UNEXPECTED);
	assert_int_equal(player_n_received(p), 1);
	assert_int_equal(player_n_sent(p), 1);
	assert_false(player_done(p));
	for (uint32_t size = 1; size < sizeof(text); size++)
		player_describe(p, text, size); /* never beyond */
	player_free(p);
}

/* However much is sent and received at once, sends in flight and posts are bounded. */
static void the_window_is_bounded(void **state)
{
	struct quiet q = {0};
	struct player *p = NULL;
	struct sched s = {.kind = COLL_BROADCAST,
			  .algo = SCHED_CHAIN,
			  .n_ranks = 3,
			  .n_channels = 1,
			  .ranks_per_node = 1,
			  .elem_bytes = 1,
			  .bytes = 1 << 20,
			  .chunk_bytes = 1024,
			  .slices = 1};
	struct err err;
	uint64_t i;

	(void)state;
	assert_int_equal(sched_init(&s, &err), 0);
	assert_int_equal(player_start(&p, &s, 0, NULL, &quiet_io, &q), 0);
	assert_int_equal(q.n_sends, 8);
	assert_int_equal(player_sent(p, 1, 0, 0, &err), 0);
	assert_int_equal(q.n_sends, 9);
	player_free(p);

	memset(&q, 0, sizeof(q));
	assert_int_equal(player_start(&p, &s, 1, NULL, &quiet_io, &q), 0);
	assert_int_equal(q.n_posts, 4);
	for (i = 0; i < 12; i++)
		assert_int_equal(player_received(p, 0, 0, i, &err), 0);
	assert_int_equal(q.n_sends, 8); /* no send was acknowledged */
	assert_int_equal(q.n_posts, 12);
	assert_int_equal(player_received(p, 0, 0, 12, &err), PLAYER_UNEXPECTED);
	assert_non_null(strstr(err.text, "waits until message 0 to rank 2 is sent"));
	player_free(p);
}

static void an_error_of_the_owner_ends_the_start(void **state)
{
	static char input[4096], output[4096];
	struct player_data data = {.input = input, .output = output};
	struct player *p = NULL;
	struct quiet q;
	struct sched s;
	int i;

	(void)state;
	ring_init(&s, 4, 4096);
	for (i = 1; i <= 4; i++) {
		memset(&q, 0, sizeof(q));
		q.fail_after = i;
		assert_int_equal(player_start(&p, &s, 1, &data, &quiet_io, &q), -EPIPE);
		assert_null(p);
	}
	assert_null(player_free(NULL));
}

/* An all-to-all of 512 ranks: 1,023 threads, everything at once, any order. */
static void a_thousand_threads_end_in_any_order(void **state)
{
	struct sched s = {.kind = COLL_ALLTOALL,
			  .algo = SCHED_DIRECT,
			  .n_ranks = 512,
			  .ranks_per_node = 8,
			  .n_channels = 1,
			  .elem_bytes = 4,
			  .bytes = 4096};
	struct quiet q = {0};
	struct player *p = NULL;
	struct err err;
	uint32_t r;

	(void)state;
	assert_int_equal(sched_init(&s, &err), 0);
	assert_int_equal(player_start(&p, &s, 5, NULL, &quiet_io, &q), 0);
	assert_int_equal(q.n_sends, 511);
	assert_int_equal(q.n_posts, 511);
	for (r = 0; r < 512; r++) {
		if (r == 5)
			continue;
		assert_int_equal(player_received(p, r, 0, 0, &err), 0);
		/* rank 511 - r; in place of ourselves, rank 506 */
		assert_int_equal(player_sent(p, r == 506 ? 506 : 511 - r, 0, 0, &err), 0);
		if (r == 500)
			assert_false(player_done(p));
	}
	assert_true(player_done(p));
	player_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_ops_give_the_right_bytes),
		cmocka_unit_test(without_data_all_messages_are_counted),
		cmocka_unit_test(an_unexpected_message_is_named),
		cmocka_unit_test(the_window_is_bounded),
		cmocka_unit_test(an_error_of_the_owner_ends_the_start),
		cmocka_unit_test(a_thousand_threads_end_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
