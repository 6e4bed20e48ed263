/* Pairing of sends and receives against a model that keeps lists of everything and
 * counts afresh after each post, for random calls of random members in random order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "op/pairing.h"
#include "rng.h"

enum { RANKS = 8, POSTS = 60, CALLS = 6 };

struct post {
	struct pair_post pair;
	struct pair_call calls[CALLS];
	bool is_posted, is_ready;
};

static struct post posts[RANKS][POSTS];
static uint32_t n_posts[RANKS], n_posted[RANKS];

static void world_init(struct bitmap *real, const bool *is_real)
{
	assert_int_equal(bitmap_init(real, RANKS), 0);
	for (uint32_t r = 0; r < RANKS; r++)
		if (is_real[r])
			bitmap_set(real, r);
	memset(posts, 0, sizeof(posts));
	memset(n_posts, 0, sizeof(n_posts));
	memset(n_posted, 0, sizeof(n_posted));
}

/* Adds a call to the last post of @rank, or to a new one. */
static struct pair_call *add_call(struct rng *rng, uint32_t rank, uint32_t peer, bool is_send,
				  uint64_t bytes)
{
	struct post *p = n_posts[rank] ? &posts[rank][n_posts[rank] - 1] : NULL;
	struct pair_call *c;

	if (!p || p->pair.n_calls == CALLS || below(rng, 3) == 0) {
		if (n_posts[rank] == POSTS)
			return NULL;
		p = &posts[rank][n_posts[rank]++];
		p->pair.rank = rank;
		p->pair.calls = p->calls;
	}
	c = &p->calls[p->pair.n_calls++];
	*c = (struct pair_call){.peer = peer, .is_send = is_send, .bytes = bytes};
	return c;
}

/* --- the model ------------------------------------------------------------------- */

/* The @k-th posted call of @rank to or from @peer; the post it is in. */
static struct pair_call *nth(uint32_t rank, uint32_t peer, bool is_send, uint64_t k)
{
	for (uint32_t i = 0; i < n_posted[rank]; i++) {
		struct post *p = &posts[rank][i];

		for (uint32_t j = 0; j < p->pair.n_calls; j++)
			if (p->calls[j].peer == peer && p->calls[j].is_send == is_send && k-- == 0)
				return &p->calls[j];
	}
	return NULL;
}

static uint64_t number_of(const struct post *p, const struct pair_call *c)
{
	uint64_t k = 0;

	for (uint32_t i = 0; i < n_posted[p->pair.rank]; i++) {
		const struct post *q = &posts[p->pair.rank][i];

		for (uint32_t j = 0; j < q->pair.n_calls; j++) {
			if (&q->calls[j] == c)
				return k;
			k += q->calls[j].peer == c->peer && q->calls[j].is_send == c->is_send;
		}
	}
	fail();
	return 0;
}

/* Checks each posted call, and whether its post is ready. */
static void check_all(const bool *is_real)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		for (uint32_t i = 0; i < n_posted[r]; i++) {
			struct post *p = &posts[r][i];
			uint32_t n_waiting = 0;

			for (uint32_t j = 0; j < p->pair.n_calls; j++) {
				struct pair_call *c = &p->calls[j], *other;

				if (c->peer == r || !is_real[c->peer]) {
					assert_null(c->pair);
					assert_false(c->is_waiting);
					continue;
				}
				other = nth(c->peer, r, !c->is_send, number_of(p, c));
				assert_ptr_equal(c->pair, other);
				assert_int_equal(c->is_waiting, other == NULL);
				assert_int_equal(c->number, number_of(p, c));
				n_waiting += other == NULL;
			}
			assert_int_equal(p->pair.n_waiting, n_waiting);
			assert_int_equal(p->is_ready, n_waiting == 0);
		}
	}
}

/* --- runs ------------------------------------------------------------------------ */

/* Posts the next post of @rank. Return: what pairing_add() said. */
static int post_next(struct pairing *p, uint32_t rank, const struct bitmap *real)
{
	struct post *post = &posts[rank][n_posted[rank]++];
	struct pair_post *ready = NULL;
	struct err err = {""};
	int r = pairing_add(p, &post->pair, real, &ready, &err);

	assert_int_equal(r < 0, err.text[0] != '\0');
	for (; r == 0 && ready; ready = ready->next_ready) {
		struct post *done = container_of(ready, struct post, pair);

		assert_false(done->is_ready); /* once */
		done->is_ready = true;
		assert_true(ready != &post->pair || !ready->next_ready);
	}
	return r;
}

static void run_random(uint64_t seed)
{
	struct pairing *p = &(struct pairing){0};
	bool is_real[RANKS] = {false};
	struct bitmap real;
	struct rng rng;

	assert_non_null(p);
	rng_seed(&rng, seed, 0);
	for (uint32_t n = 1 + (uint32_t)below(&rng, 5); n > 0; n--)
		is_real[below(&rng, RANKS)] = true;
	world_init(&real, is_real);
	for (int i = 0; i < 300; i++) {
		uint32_t a = (uint32_t)below(&rng, RANKS), b = (uint32_t)below(&rng, RANKS);
		uint64_t bytes = below(&rng, 3) * 100;
		bool is_send = below(&rng, 2) == 0;

		if (!is_real[a])
			continue;
		/* Mostly both ends, so that most is paired in the end; sizes alike per pair. */
		bytes = is_real[b] ? 8 * (a + b) : bytes;
		if (add_call(&rng, a, b, is_send, bytes) && is_real[b] && a != b &&
		    below(&rng, 10) > 0)
			add_call(&rng, b, a, !is_send, bytes);
	}
	for (;;) {
		uint32_t r = (uint32_t)below(&rng, RANKS), tried = 0;

		while (tried++ < RANKS && n_posted[r] == n_posts[r])
			r = (r + 1) % RANKS;
		if (n_posted[r] == n_posts[r])
			break;
		assert_int_equal(post_next(p, r, &real), 0);
		check_all(is_real);
	}
	pairing_deinit(p);
	bitmap_deinit(&real);
}

static void posts_are_ready_when_the_other_end_of_each_call_is_there(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 400; seed++)
		run_random(seed);
}

/* A group here, single calls there: each single post goes on as soon as its own call has
 * met, although the group waits for the next. */
static void a_group_meets_single_calls(void **state)
{
	struct pairing *p = &(struct pairing){0};
	bool is_real[RANKS] = {true, true};
	struct post *group = &posts[0][0], *singles = posts[1];
	struct bitmap real;

	(void)state;
	world_init(&real, is_real);
	n_posts[0] = 1;
	group->pair = (struct pair_post){.rank = 0, .calls = group->calls, .n_calls = 2};
	group->calls[0] = (struct pair_call){.peer = 1, .is_send = true, .bytes = 8};
	group->calls[1] = (struct pair_call){.peer = 1, .is_send = false, .bytes = 0};
	n_posts[1] = 2;
	for (uint32_t i = 0; i < 2; i++) {
		singles[i].pair =
			(struct pair_post){.rank = 1, .calls = singles[i].calls, .n_calls = 1};
		singles[i].calls[0] =
			(struct pair_call){.peer = 0, .is_send = i, .bytes = i ? 0 : 8};
	}
	assert_int_equal(post_next(p, 0, &real), 0);
	assert_false(group->is_ready);
	assert_int_equal(post_next(p, 1, &real), 0);
	assert_true(singles[0].is_ready);
	assert_false(group->is_ready);
	assert_int_equal(post_next(p, 1, &real), 0);
	assert_true(singles[1].is_ready && group->is_ready);
	check_all(is_real);
	pairing_deinit(p);
	bitmap_deinit(&real);
}

static void two_ends_that_differ_in_size_are_an_error(void **state)
{
	struct pair_call calls[2][2] = {{{.peer = 1, .is_send = true, .bytes = 7},
					 {.peer = 1, .is_send = true, .bytes = 100}},
					{{.peer = 0, .is_send = false, .bytes = 7},
					 {.peer = 0, .is_send = false, .bytes = 96}}};
	struct pair_post a = {.rank = 0, .calls = calls[0], .n_calls = 2};
	struct pair_post b = {.rank = 1, .calls = calls[1], .n_calls = 2}, *ready;
	struct err err = {""};
	bool is_real[RANKS] = {true, true};

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		struct pairing *p = &(struct pairing){0};
		struct bitmap real;

		world_init(&real, is_real);
		assert_int_equal(pairing_add(p, turn ? &a : &b, &real, &ready, &err), 0);
		assert_null(ready);
		assert_int_equal(pairing_add(p, turn ? &b : &a, &real, &ready, &err), -EPROTO);
		assert_string_equal(err.text,
				    "rank 0 sends 100 bytes to rank 1 (send 1 between them), "
				    "which receives 96");
		pairing_deinit(p);
		bitmap_deinit(&real);
	}
}

/* --- puts ------------------------------------------------------------------------ */

static void post_one(struct pairing *p, struct pair_post *post, struct pair_call *call,
		     uint32_t rank, const struct bitmap *real, bool is_ready)
{
	struct pair_post *ready;
	struct err err;

	*post = (struct pair_post){.rank = rank, .is_onesided = true, .calls = call, .n_calls = 1};
	assert_int_equal(pairing_add(p, post, real, &ready, &err), 0);
	assert_true((ready != NULL) == is_ready);
}

/* Rank 0 of 4 is real, and 1. A wait does not say how much was put. */
static void waits_learn_what_was_put(void **state)
{
	static const bool is_real[RANKS] = {true, true};
	struct pair_call puts[3], waits[4];
	struct pair_post put[3], wait[4];
	struct pairing p = {NULL};
	struct bitmap real;

	(void)state;
	world_init(&real, is_real);
	/* of real ranks, in either order */
	waits[0] = (struct pair_call){.peer = 0, .bytes = 8};
	post_one(&p, &wait[0], &waits[0], 1, &real, false);
	puts[0] = (struct pair_call){.peer = 1, .is_send = true, .bytes = 4000};
	post_one(&p, &put[0], &puts[0], 0, &real, true);
	assert_int_equal(waits[0].bytes, 4000);
	assert_ptr_equal(waits[0].pair, &puts[0]);
	/* of virtual rank 7, which puts to 0 as 0 puts to 1 */
	waits[1] = (struct pair_call){.peer = RANKS - 1, .bytes = 8};
	post_one(&p, &wait[1], &waits[1], 0, &real, true);
	assert_int_equal(waits[1].bytes, 4000);
	assert_null(pairing_like(&p, &wait[1], &waits[1], RANKS)); /* it has not begun */
	pairing_began(&p, &put[0], &puts[0])[0] = 17;
	assert_true(pairing_like(&p, &wait[1], &waits[1], RANKS)[0] == 17);
	/* the second, before 0 has put that: as much as the last */
	waits[2] = waits[1];
	post_one(&p, &wait[2], &waits[2], 0, &real, true);
	assert_int_equal(waits[2].bytes, 4000);
	assert_null(pairing_like(&p, &wait[2], &waits[2], RANKS));
	/* of another, to which it has put nothing */
	waits[3] = (struct pair_call){.peer = 5, .bytes = 8};
	post_one(&p, &wait[3], &waits[3], 0, &real, true);
	assert_int_equal(waits[3].bytes, 8);
	pairing_deinit(&p);
	bitmap_deinit(&real);
}

/* Beside a wait, too: the post is ready with that alone. */
static void a_put_keeps_no_post(void **state)
{
	static const bool is_real[RANKS] = {true, true, true};
	struct pair_call both[2] = {{.peer = 2, .is_send = true, .bytes = 64}, {.peer = 1}};
	struct pair_call put = {.peer = 0, .is_send = true, .bytes = 8}, wait = {.peer = 0};
	struct pair_post post[3] = {{.rank = 0, .is_onesided = true, .calls = both, .n_calls = 2}};
	struct pair_post *ready;
	struct pairing p = {NULL};
	struct bitmap real;
	struct err err;

	(void)state;
	world_init(&real, is_real);
	assert_int_equal(pairing_add(&p, &post[0], &real, &ready, &err), 0);
	assert_null(ready);
	assert_int_equal(post[0].n_waiting, 1);
	assert_int_equal(post[0].n_unplayed, 2);
	post_one(&p, &post[1], &put, 1, &real, true);
	assert_int_equal(post[0].n_waiting, 0);
	assert_null(both[0].pair);
	post_one(&p, &post[2], &wait, 2, &real, true);
	assert_ptr_equal(both[0].pair, &wait);
	pairing_deinit(&p);
	bitmap_deinit(&real);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(posts_are_ready_when_the_other_end_of_each_call_is_there),
		cmocka_unit_test(a_group_meets_single_calls),
		cmocka_unit_test(two_ends_that_differ_in_size_are_an_error),
		cmocka_unit_test(waits_learn_what_was_put),
		cmocka_unit_test(a_put_keeps_no_post),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
