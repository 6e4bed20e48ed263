/* What ranks may do wrong, and what is said about it. One of two real ranks does it. */
#include "cmocka-all.h"

#include <stdio.h>
#include <string.h>

#include "job.h"

static void good_rank(struct player *p)
{
	struct rank_comm *c = job_made(p);

	world_copied(c, &((struct job *)p->arg)->world, 2, 1);
}

/* A check-in where one number, at @at, is @value. */
static void check_in(struct player *p, unsigned at, int32_t value)
{
	struct job *j = p->arg;
	int32_t words[43] = {(int32_t)p->rank, (int32_t)j->world.n, 0, (int32_t)j->n_ids};
	struct wire *w = job_connect(p, PORT_ROOT, job_magic(j), 1);

	if (at < 4)
		words[at] = value;
	job_frame(p, w, words, at == 4 ? value : (int32_t)sizeof(words));
	player_close(p, w);
}

static void rank_virtual(struct player *p)
{
	check_in(p, 0, 1);
}

static void rank_large(struct player *p)
{
	check_in(p, 0, 6);
}

static void rank_negative(struct player *p)
{
	check_in(p, 0, -1);
}

static void ranks_wrong(struct player *p)
{
	check_in(p, 1, 2);
}

static void root_wrong(struct player *p)
{
	check_in(p, 2, 1);
}

static void roots_wrong(struct player *p)
{
	check_in(p, 3, 2);
}

static void check_in_short(struct player *p)
{
	check_in(p, 4, 64);
}

static void check_in_long(struct player *p)
{
	struct wire *w = job_connect(p, PORT_ROOT, job_magic(p->arg), 1);
	int32_t size = INT32_MAX;

	player_send(p, w, &size, sizeof(size));
}

static void check_in_negative(struct player *p)
{
	struct wire *w = job_connect(p, PORT_ROOT, job_magic(p->arg), 1);
	int32_t size = -5;

	player_send(p, w, &size, sizeof(size));
}

static void check_in_cut(struct player *p)
{
	struct wire *w = job_connect(p, PORT_ROOT, job_magic(p->arg), 1);
	int32_t size = 172;

	player_send(p, w, &size, sizeof(size));
	player_send(p, w, "abc", 3);
	player_close(p, w);
}

static void check_in_twice(struct player *p)
{
	job_made(p);
	check_in(p, 5, 0);
}

/* It cannot be reached: its addresses are zeros. */
static void check_in_unreachable(struct player *p)
{
	check_in(p, 5, 0);
}

static void gather_wrong_size(struct player *p)
{
	rank_gather(job_init(p), play_alloc(p->play, 6 * 104), 104);
}

static void peer_wrong_size(struct player *p)
{
	struct rank_comm *c = job_init(p);

	rank_contacts(c, false);
	rank_gather(c, play_alloc(p->play, 6 * 128), 128);
}

static void later_unknown(struct player *p)
{
	rank_gather(job_made(p), play_alloc(p->play, 6 * 77), 77);
}

static void later_refused(struct player *p)
{
	rank_gather(job_made(p), play_alloc(p->play, 6 * 4), 4);
}

static void gather_negative(struct player *p)
{
	int32_t size = -2;

	player_send(p, job_made(p)->next, &size, sizeof(size));
}

/* The other rank has begun with 2 bytes, or will. */
static void gather_unlike(struct player *p)
{
	rank_gather(job_made(p), play_alloc(p->play, 6 * 8), 8);
}

static void frame_unlike(struct player *p)
{
	struct rank_comm *c = job_made(p);
	int32_t size = 2, other = 3;

	player_send(p, c->next, &size, 4);
	player_send(p, c->next, "ab", 2);
	player_send(p, c->next, &other, 4);
}

static void prev_too_early(struct player *p)
{
	int32_t size = 2;

	player_send(p, job_made(p)->prev, &size, 4);
}

static void leaves_in_init(struct player *p)
{
	struct rank_comm *c = job_init(p);

	player_close(p, c->next);
	player_close(p, c->prev);
}

static void leaves_in_gather(struct player *p)
{
	struct rank_comm *c = job_made(p);
	int32_t size = 2;

	player_send(p, c->next, &size, 4);
	player_send(p, c->next, "a", 1);
	player_close(p, c->next);
	player_close(p, c->prev);
}

static void leaves_before_gather(struct player *p)
{
	struct rank_comm *c = job_made(p);

	player_close(p, c->next);
	player_close(p, c->prev);
}

static void message(struct player *p, unsigned port, int32_t rank, int32_t tag, int32_t bytes)
{
	struct wire *w = job_connect(p, port, job_magic(p->arg), 1);
	int32_t head[2] = {rank, tag};

	job_frame(p, w, head, sizeof(head));
	if (bytes >= 0)
		job_frame(p, w, play_alloc(p->play, (size_t)bytes), bytes);
	else
		player_send(p, w, &bytes, 4);
	player_close(p, w);
}

static void message_early(struct player *p)
{
	job_init(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 1 << 8, 256);
}

static void message_of_virtual(struct player *p)
{
	job_made(p);
	message(p, PORT_NEAR, 1, 1 << 8, 256);
}

static void message_of_none(struct player *p)
{
	job_made(p);
	message(p, PORT_NEAR, -7, 1 << 8, 256);
}

static void message_tag(struct player *p)
{
	job_made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 0xfeed, 256);
}

static void message_far(struct player *p)
{
	job_made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 100 << 8, 256);
}

static void message_large(struct player *p)
{
	job_made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 1 << 8, 70000);
}

static void message_negative(struct player *p)
{
	job_made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 1 << 8, -1);
}

static void message_uneven(struct player *p)
{
	job_made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 1 << 8, 255);
}

static void message_sync_large(struct player *p)
{
	job_made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, (1 << 8) + 128, 256);
}

static void message_head(struct player *p)
{
	struct wire *w;

	job_made(p);
	w = job_connect(p, PORT_FAR, job_magic(p->arg), 1);
	job_frame(p, w, "abcd", 4);
}

static void message_cut(struct player *p)
{
	struct wire *w;

	job_made(p);
	w = job_connect(p, PORT_FAR, job_magic(p->arg), 1);
	player_send(p, w, "\10\0\0\0a", 5);
	player_close(p, w);
}

/* A receiver's entry behind a sender's, to the rank that is both ahead and behind. */
static void message_mixed(struct player *p)
{
	struct rank_comm *c = job_made(p);
	uint8_t *entries = play_alloc(p->play, 512);
	int32_t head[2] = {(int32_t)c->rank, 3 << 8};
	struct wire *w = job_connect(p, PORT_NEAR, job_magic(p->arg), 1);

	entries[256 + 100] = 1;
	job_frame(p, w, head, sizeof(head));
	job_frame(p, w, entries, 512);
}

static void message_to_the_gone(struct player *p)
{
	struct rank_comm *c = job_made(p);

	player_close_listener(p, c->peers);
	message(p, PORT_NEAR, (int32_t)c->rank, 1 << 8, 256);
}

static void relay_to_the_gone(struct player *p)
{
	struct rank_comm *c = job_made(p);

	player_close_listener(p, c->peers);
	message(p, PORT_REAL, 0, 7, 256); /* to itself */
}

static void join_without_vote(struct player *p)
{
	job_made(p);
	message(p, PORT_FAR, (int32_t)p->rank, 1 << 29, 128);
}

static void no_net(struct player *p)
{
	p->play->dials_left = 0;
	job_made(p);
}

static int votes_apart(struct play *play, struct bootstrap_comm *parent, int32_t *color,
		       int32_t *key, struct err *err)
{
	color[1] = 5; /* its template has 3 */
	return 0;
}

static void splits(struct player *p)
{
	struct rank_comm *c = job_made(p);
	int32_t *all = play_alloc(p->play, 6 * 8);

	all[2 * c->rank + 1] = 3 + (int32_t)c->rank;
	rank_gather(c, (uint8_t *)all, 8);
	player_fail(p, "a split went through");
}

static void splits_apart(struct player *p)
{
	p->play->votes = votes_apart;
	splits(p);
}

static void votes_twice(struct player *p)
{
	struct rank_comm *c = job_made(p);

	job_vote(c);
	job_vote(c);
}

/* Members of one child with two magics. */
static void child_magics(struct player *p)
{
	static const uint32_t ranks[] = {0, 1, 2, 3, 4, 5};
	struct rank_comm *c = job_made(p);

	job_vote(c);
	rank_split(c, 1234 + c->rank, ranks, 6);
}

static void leaves_in_split(struct player *p)
{
	struct rank_comm *c = job_made(p);

	job_vote(c);
	player_close(p, c->next);
	player_close(p, c->prev);
}

/* Whose wrong: does the other rank do it too? */
static const struct {
	player_fn *run;
	bool both;
	const char *says;
} wrongs[] = {
	{rank_virtual, false, "rank 1 checks in, which is a virtual rank: its template is rank 0"},
	{rank_large, false, "rank 6 checks in at root 0, which has ranks 0 to 5"},
	{rank_negative, false, "rank -1 checks in"},
	{ranks_wrong, false, "communicator of 2 ranks"},
	{root_wrong, false, "at root 0 for root 1"},
	{roots_wrong, false, "with 2 ids, made were 1"},
	{check_in_short, false, "checks in with 64 bytes, NCCL 2.28.7 does with 172"},
	{check_in_long, false, "checks in with 2147483647 bytes"},
	{check_in_negative, false, "checks in with -5 bytes"},
	{check_in_cut, false, "closed its check-in"},
	{check_in_twice, false, "rank 0 checks in twice"},
	{check_in_unreachable, false, "the root's answer did not reach rank 0: Connection refused"},
	{gather_wrong_size, true, "tells a contact of 120 bytes"},
	{peer_wrong_size, true, "tells a peer of 120 bytes"},
	{later_unknown, true,
	 "all-gather 3 of 77 bytes a rank: after the communicator is made NCCL 2.28.7 has votes"},
	{later_refused, true, "NCCL_COLLNET_ENABLE=0"},
	{gather_negative, true, "all-gather 3 of -2 bytes"},
	{gather_unlike, false, " in all-gather 3 ("},
	{frame_unlike, false, "rank 0 passes on 3 bytes in all-gather 3 (copied), not 2"},
	{prev_too_early, true, "before it has begun an all-gather"},
	{leaves_in_init, false, "rank 0 has left before the communicator was made"},
	{leaves_in_gather, false, "rank 0 has left while all-gather 3"},
	{leaves_before_gather, false, "rank 0 has left"},
	{message_early, false, "before ranks have told their contacts"},
	{message_of_virtual, false, "from rank 1, which is no real rank"},
	{message_of_none, false, "from rank -7, which is no real rank"},
	{message_tag, false, "with tag 0xfeed to a virtual rank"},
	{message_far, false, "with tag 0x6400 to a virtual rank"},
	{message_large, false, "a message of 70000 bytes (tag 0x100), at most 65536"},
	{message_negative, false, "a message of -1 bytes"},
	{message_uneven, false, "in 255 bytes (tag 0x100), each has 256"},
	{message_sync_large, false, "with 256 bytes (tag 0x180) that it has connected"},
	{message_head, false, "begins with a frame of 4 bytes, NCCL 2.28.7's do with 8"},
	{message_cut, false, "closed a message before its end"},
	{message_mixed, false, "in an order that is not NCCL's"},
	{message_to_the_gone, false,
	 "a message of rank 1 (tag 0x100) did not reach rank 0: Connection refused"},
	{relay_to_the_gone, false,
	 "a message of rank 0 (tag 0x7) did not reach rank 0: Connection refused"},
	{join_without_vote, false, "a split that it has not voted for"},
	{no_net, false, "no way there"},
	{splits, true, "no votes"},
	{splits_apart, true,
	 "rank 1 goes into a split (color 5) without real rank 0, its template"},
	{votes_twice, true, "splits come one after the other"},
	{child_magics, true, "all its ranks must split alike"},
	{leaves_in_split, true, "between its vote in a split and its begin there"},
};

static void test_what_is_wrong_is_said(void **state)
{
	unsigned n_unsaid = 0;

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		for (uint64_t seed = 0; seed < 4; seed++) {
			struct play *play = play_new(seed);
			struct job j;

			job_make(play, &j);
			play_add(play, wrongs[i].run, &j, 0);
			play_add(play, wrongs[i].both ? wrongs[i].run : good_rank, &j, 2);
			play_run(play);
			if (play->n_failed == 0 || !strstr(play->sentence, wrongs[i].says)) {
				play_explain(play);
				fprintf(stderr, "# not said: %s\n", wrongs[i].says);
				n_unsaid++;
			}
			bootstrap_comm_end(j.comm);
			play_free(play);
		}
	}
	assert_int_equal(n_unsaid, 0);
}

static void intruder(struct player *p)
{
	struct job *j = p->arg;
	struct wire *w;

	for (unsigned port = PORT_ROOT; port < PORT_REAL + 2; port++) {
		job_connect(p, port, 42, 1);
		w = job_connect(p, port, job_magic(j), 1);
		player_send(p, w, "", 0);
		(void)w;
	}
	job_connect(p, PORT_REAL + 2, job_magic(j), 1);
	job_connect(p, PORT_NEAR, job_magic(j), 2);
	job_connect(p, PORT_ROOT, job_magic(j), 5);
	w = job_connect(p, PORT_FAR, 42, 1);
	player_send(p, w, play_alloc(p->play, 300), 300);
	w = job_connect(p, PORT_FAR, 42, 1);
	player_close(p, w);
}

static void test_who_has_no_magic_harms_nobody(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct play *play = play_new(seed);
		struct job j;

		job_make(play, &j);
		play->pipe_max += 400;
		play_add(play, intruder, &j, 0);
		play_add(play, good_rank, &j, 0);
		play_add(play, good_rank, &j, 2);
		if (!play_run(play) || play->n_failed) {
			play_explain(play);
			fail();
		}
		assert_int_equal(play->n_refused, 5 + 3 + 2);
		play_free(play);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_wrong_is_said),
		cmocka_unit_test(test_who_has_no_magic_harms_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
