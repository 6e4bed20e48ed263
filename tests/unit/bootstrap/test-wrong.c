/* What ranks may do wrong, and what is said about it. One of two real ranks does it. */
#include "cmocka-all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "world.h"

struct job {
	const struct nccl_records *table;
	struct world world;
	uint8_t id[2][NCCL_ID_BYTES];
	uint32_t n_ids;
	struct bootstrap_comm *comm;
	struct rank_comm *bad; /* the rank's that does it, once it has one */
};

static uint64_t magic_of(const struct job *j)
{
	uint64_t magic;

	memcpy(&magic, j->id[0], sizeof(magic));
	return magic;
}

/* All that a rank does in init; and then it waits in an all-gather. */
static struct rank_comm *made(struct player *p)
{
	struct job *j = p->arg;
	struct rank_comm *c = rank_init(p, j->table, p->rank, j->world.n, j->id[0], j->n_ids);

	rank_contacts(c, false);
	world_init(c, &j->world, 5);
	return j->bad = c;
}

static void good_rank(struct player *p)
{
	struct rank_comm *c = made(p);

	world_copied(c, &((struct job *)p->arg)->world, 2, 1);
}

static struct wire *raw(struct player *p, unsigned port, uint64_t magic, int32_t type)
{
	uint8_t address[NCCL_ADDRESS_BYTES];
	struct wire *w;

	play_port(port, address);
	w = player_connect(p, address);
	player_send(p, w, &magic, sizeof(magic));
	player_send(p, w, &type, sizeof(type));
	return w;
}

static void frame(struct player *p, struct wire *w, const void *bytes, int32_t n)
{
	player_send(p, w, &n, sizeof(n));
	player_send(p, w, bytes, (size_t)n);
}

/* A check-in where one number, at @at, is @value. */
static void check_in(struct player *p, unsigned at, int32_t value)
{
	struct job *j = p->arg;
	int32_t words[43] = {(int32_t)p->rank, (int32_t)j->world.n, 0, (int32_t)j->n_ids};
	struct wire *w = raw(p, PORT_ROOT, magic_of(j), 1);

	if (at < 4)
		words[at] = value;
	frame(p, w, words, at == 4 ? value : (int32_t)sizeof(words));
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
	struct wire *w = raw(p, PORT_ROOT, magic_of(p->arg), 1);
	int32_t size = INT32_MAX;

	player_send(p, w, &size, sizeof(size));
}

static void check_in_negative(struct player *p)
{
	struct wire *w = raw(p, PORT_ROOT, magic_of(p->arg), 1);
	int32_t size = -5;

	player_send(p, w, &size, sizeof(size));
}

static void check_in_cut(struct player *p)
{
	struct wire *w = raw(p, PORT_ROOT, magic_of(p->arg), 1);
	int32_t size = 172;

	player_send(p, w, &size, sizeof(size));
	player_send(p, w, "abc", 3);
	player_close(p, w);
}

static void check_in_twice(struct player *p)
{
	made(p);
	check_in(p, 5, 0);
}

/* It cannot be reached: its addresses are zeros. */
static void check_in_unreachable(struct player *p)
{
	check_in(p, 5, 0);
}

static void gather_wrong_size(struct player *p)
{
	struct job *j = p->arg;
	struct rank_comm *c = rank_init(p, j->table, p->rank, j->world.n, j->id[0], j->n_ids);

	rank_gather(c, play_alloc(p->play, j->world.n * 104), 104);
}

static void peer_wrong_size(struct player *p)
{
	struct job *j = p->arg;
	struct rank_comm *c = rank_init(p, j->table, p->rank, j->world.n, j->id[0], j->n_ids);

	rank_contacts(c, false);
	rank_gather(c, play_alloc(p->play, j->world.n * 128), 128);
}

static void later_unknown(struct player *p)
{
	rank_gather(made(p), play_alloc(p->play, 6 * 77), 77);
}

static void later_refused(struct player *p)
{
	rank_gather(made(p), play_alloc(p->play, 6 * 4), 4);
}

static void gather_negative(struct player *p)
{
	int32_t size = -2;

	player_send(p, made(p)->next, &size, sizeof(size));
}

/* The other rank has begun with 2 bytes, or will. */
static void gather_unlike(struct player *p)
{
	rank_gather(made(p), play_alloc(p->play, 6 * 8), 8);
}

static void frame_unlike(struct player *p)
{
	struct rank_comm *c = made(p);
	int32_t size = 2, other = 3;

	player_send(p, c->next, &size, 4);
	player_send(p, c->next, "ab", 2);
	player_send(p, c->next, &other, 4);
}

static void prev_too_early(struct player *p)
{
	int32_t size = 2;

	player_send(p, made(p)->prev, &size, 4);
}

static void leaves_in_init(struct player *p)
{
	struct job *j = p->arg;
	struct rank_comm *c = rank_init(p, j->table, p->rank, j->world.n, j->id[0], j->n_ids);

	player_close(p, c->next);
	player_close(p, c->prev);
}

static void leaves_in_gather(struct player *p)
{
	struct rank_comm *c = made(p);
	int32_t size = 2;

	player_send(p, c->next, &size, 4);
	player_send(p, c->next, "a", 1);
	player_close(p, c->next);
	player_close(p, c->prev);
}

static void leaves_before_gather(struct player *p)
{
	struct rank_comm *c = made(p);

	player_close(p, c->next);
	player_close(p, c->prev);
}

static void message(struct player *p, unsigned port, int32_t rank, int32_t tag, int32_t bytes)
{
	struct wire *w = raw(p, port, magic_of(p->arg), 1);
	int32_t head[2] = {rank, tag};

	frame(p, w, head, sizeof(head));
	if (bytes >= 0)
		frame(p, w, play_alloc(p->play, (size_t)bytes), bytes);
	else
		player_send(p, w, &bytes, 4);
	player_close(p, w);
}

static void message_early(struct player *p)
{
	struct job *j = p->arg;

	rank_init(p, j->table, p->rank, j->world.n, j->id[0], j->n_ids);
	message(p, PORT_NEAR, (int32_t)p->rank, 1 << 8, 256);
}

static void message_of_virtual(struct player *p)
{
	made(p);
	message(p, PORT_NEAR, 1, 1 << 8, 256);
}

static void message_of_none(struct player *p)
{
	made(p);
	message(p, PORT_NEAR, -7, 1 << 8, 256);
}

static void message_tag(struct player *p)
{
	made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 0xfeed, 256);
}

static void message_far(struct player *p)
{
	made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 100 << 8, 256);
}

static void message_large(struct player *p)
{
	made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 1 << 8, 70000);
}

static void message_negative(struct player *p)
{
	made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 1 << 8, -1);
}

static void message_uneven(struct player *p)
{
	made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, 1 << 8, 255);
}

static void message_sync_large(struct player *p)
{
	made(p);
	message(p, PORT_NEAR, (int32_t)p->rank, (1 << 8) + 128, 256);
}

static void message_head(struct player *p)
{
	struct wire *w;

	made(p);
	w = raw(p, PORT_FAR, magic_of(p->arg), 1);
	frame(p, w, "abcd", 4);
}

static void message_cut(struct player *p)
{
	struct wire *w;

	made(p);
	w = raw(p, PORT_FAR, magic_of(p->arg), 1);
	player_send(p, w, "\10\0\0\0a", 5);
	player_close(p, w);
}

/* A receiver's entry behind a sender's, to the rank that is both ahead and behind. */
static void message_mixed(struct player *p)
{
	struct rank_comm *c = made(p);
	uint8_t *entries = play_alloc(p->play, 512);
	int32_t head[2] = {(int32_t)c->rank, 3 << 8};
	struct wire *w = raw(p, PORT_NEAR, magic_of(p->arg), 1);

	entries[256 + 100] = 1;
	frame(p, w, head, sizeof(head));
	frame(p, w, entries, 512);
}

static void message_to_the_gone(struct player *p)
{
	struct rank_comm *c = made(p);

	player_close_listener(p, c->peers);
	message(p, PORT_NEAR, (int32_t)c->rank, 1 << 8, 256);
}

static void relay_to_the_gone(struct player *p)
{
	struct rank_comm *c = made(p);

	player_close_listener(p, c->peers);
	message(p, PORT_REAL, 0, 7, 256); /* to itself */
}

static void join_without_vote(struct player *p)
{
	made(p);
	message(p, PORT_FAR, (int32_t)p->rank, 1 << 29, 128);
}

static void no_net(struct player *p)
{
	p->play->dials_left = 0;
	made(p);
}

static int votes_apart(struct play *play, struct bootstrap_comm *parent, int32_t *color,
		       int32_t *key, struct err *err)
{
	color[1] = 5; /* its template has 3 */
	return 0;
}

static void splits(struct player *p)
{
	struct rank_comm *c = made(p);
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

static int votes_alike(struct play *play, struct bootstrap_comm *parent, int32_t *color,
		       int32_t *key, struct err *err)
{
	for (int i = 0; i < 6; i++)
		color[i] = 3;
	return 0;
}

static void votes_twice(struct player *p)
{
	struct rank_comm *c = made(p);
	int32_t *all = play_alloc(p->play, 6 * 8);

	p->play->votes = votes_alike;
	all[2 * c->rank + 1] = 3;
	rank_gather(c, (uint8_t *)all, 8);
	rank_gather(c, (uint8_t *)all, 8);
}

/* Members of one child with two magics. */
static void child_magics(struct player *p)
{
	static const uint32_t ranks[] = {0, 1, 2, 3, 4, 5};
	struct rank_comm *c = made(p);
	int32_t *all = play_alloc(p->play, 6 * 8);

	p->play->votes = votes_alike;
	all[2 * c->rank + 1] = 3;
	rank_gather(c, (uint8_t *)all, 8);
	rank_split(c, 1234 + c->rank, ranks, 6);
}

static void leaves_in_split(struct player *p)
{
	struct rank_comm *c = made(p);
	int32_t *all = play_alloc(p->play, 6 * 8);

	p->play->votes = votes_alike;
	all[2 * c->rank + 1] = 3;
	rank_gather(c, (uint8_t *)all, 8);
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

/* Two nodes of one real rank each, 0 and 2, and four virtual ones. */
static void job_make(struct play *play, struct job *j)
{
	static const uint32_t node[] = {0, 1, 2, 3, 4, 5}, template[] = {0, 0, 2, 2, 2, 0};
	struct err err = {""};

	*j = (struct job){.table = table_new(), .n_ids = 1};
	j->world = (struct world){.n = 6, .real = {0, 2}, .n_real = 2};
	memcpy(j->world.node, node, sizeof(node));
	memcpy(j->world.template, template, sizeof(template));
	if (bootstrap_comm_make(play->b, j->table, 6, node, template, 1, j->id[0], &j->comm, &err) <
	    0)
		fail_msg("%s", err.text);
}

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
		raw(p, port, 42, 1);
		w = raw(p, port, magic_of(j), 1);
		player_send(p, w, "", 0);
		(void)w;
	}
	raw(p, PORT_REAL + 2, magic_of(j), 1);
	raw(p, PORT_NEAR, magic_of(j), 2);
	raw(p, PORT_ROOT, magic_of(j), 5);
	w = raw(p, PORT_FAR, 42, 1);
	player_send(p, w, play_alloc(p->play, 300), 300);
	w = raw(p, PORT_FAR, 42, 1);
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

static void waits_in_gather(struct player *p)
{
	struct rank_comm *c = made(p);

	rank_gather(c, play_alloc(p->play, 6 * 2), 2);
}

static void waits_at_barrier(struct player *p)
{
	rank_barrier(made(p), 0xbeef);
}

static void only_made(struct player *p)
{
	made(p);
}

static void only_checked_in(struct player *p)
{
	struct job *j = p->arg;
	uint8_t address[NCCL_ADDRESS_BYTES];
	int32_t words[43] = {(int32_t)p->rank, (int32_t)j->world.n, 0, (int32_t)j->n_ids};
	struct wire *w;

	player_listen(p, address);
	memcpy((uint8_t *)words + 16, address, sizeof(address));
	w = raw(p, PORT_ROOT, magic_of(j), 1);
	frame(p, w, words, sizeof(words));
	player_close(p, w);
}

static void says(player_fn *first, player_fn *second, const char *want)
{
	struct play *play = play_new(1);
	struct job j;
	char text[256];

	job_make(play, &j);
	if (first)
		play_add(play, first, &j, 0);
	if (second)
		play_add(play, second, &j, 2);
	play_run(play);
	assert_string_equal(bootstrap_comm_waits(j.comm, text, sizeof(text)), want);
	play_free(play);
}

static void splits_alike(struct player *p)
{
	struct rank_comm *c = made(p);
	int32_t *all = play_alloc(p->play, 6 * 8);

	p->play->votes = votes_alike;
	all[2 * c->rank + 1] = 3;
	rank_gather(c, (uint8_t *)all, 8);
}

static void test_it_says_for_whom_it_waits(void **state)
{
	char text[8];
	struct play *play = play_new(1);
	struct job j;

	says(NULL, NULL, "the root waits for ranks 0, 2");
	says(NULL, only_checked_in, "the root waits for ranks 0; the ring waits for ranks 2");
	says(only_made, only_made, "");
	says(only_made, waits_in_gather, "all-gather 3 (copied) waits for ranks 0");
	says(waits_at_barrier, only_made, "barrier 0 (tag 0xbeef) waits for ranks 2");
	says(splits_alike, splits_alike, "a split waits for ranks 0, 2");
	job_make(play, &j);
	assert_string_equal(bootstrap_comm_waits(j.comm, text, sizeof(text)), "the roo");
	play_free(play);
}

static void test_what_no_communicator_can_be_is_refused(void **state)
{
	static const uint32_t node[] = {0, 1, 2}, apart[] = {0, 0, 1}, outside[] = {0, 0, 7},
			      good[] = {0, 0, 0}, uneven[] = {0, 0, 1};
	struct play *play = play_new(1);
	struct bootstrap *b = play->b;
	struct bootstrap_comm *comm = NULL;
	uint8_t ids[4 * NCCL_ID_BYTES];
	struct err err = {""};

	assert_int_equal(bootstrap_comm_make(b, table_new(), 3, node, apart, 1, ids, &comm, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "rank 2"));
	assert_int_equal(bootstrap_comm_make(b, table_new(), 3, node, outside, 1, ids, &comm, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "7"));
	assert_int_equal(bootstrap_comm_make(b, table_new(), 3, uneven, good, 1, ids, &comm, &err),
			 -EINVAL);
	assert_int_equal(bootstrap_comm_make(b, table_new(), 0, node, good, 1, ids, &comm, &err),
			 -EINVAL);
	assert_int_equal(bootstrap_comm_make(b, table_new(), 3, node, good, 4, ids, &comm, &err),
			 -EINVAL);
	assert_int_equal(bootstrap_comm_make(b, table_new(), 3, node, good, 0, ids, &comm, &err),
			 -EINVAL);
	assert_int_equal(bootstrap_comm_make(b, table_old(), 3, node, good, 2, ids, &comm, &err),
			 -EINVAL);
	assert_null(comm);
	assert_int_equal(bootstrap_comm_make(b, table_new(), 3, node, good, 2, ids, &comm, &err),
			 0);
	assert_int_equal(bootstrap_comm_size(comm), 3);
	assert_int_equal(bootstrap_comm_shrink(comm, node, 1, &err), -EBUSY);
	play_free(play);
}

static void test_a_shrink_that_cannot_be_is_refused(void **state)
{
	static const uint32_t all[] = {0, 1, 2, 3, 4, 5}, back[] = {2, 1}, real[] = {0},
			      good[] = {1, 3};
	struct play *play = play_new(1);
	struct err err = {""};
	struct job j;

	job_make(play, &j);
	play_add(play, only_made, &j, 0);
	play_add(play, only_made, &j, 2);
	assert_true(play_run(play));
	assert_int_equal(bootstrap_comm_shrink(j.comm, all, 6, &err), -EINVAL);
	assert_int_equal(bootstrap_comm_shrink(j.comm, all, 0, &err), -EINVAL);
	assert_int_equal(bootstrap_comm_shrink(j.comm, back, 2, &err), -EINVAL);
	assert_int_equal(bootstrap_comm_shrink(j.comm, real, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "without real rank 0"));
	assert_int_equal(bootstrap_comm_shrink(j.comm, good, 2, &err), 0);
	assert_int_equal(bootstrap_comm_shrink(j.comm, good, 2, &err), -EBUSY);
	assert_int_equal(bootstrap_comm_size(play->children[0]), 4);
	/* the child cannot be joined any more */
	bootstrap_comm_end(j.comm);
	assert_int_equal(play->n_failed, 1);
	play_free(play);
}

static void test_a_child_that_ends_too_early_takes_its_parent_along(void **state)
{
	static const uint32_t excluded[] = {1};
	struct play *play = play_new(1);
	struct err err = {""};
	struct job j;

	job_make(play, &j);
	play_add(play, only_made, &j, 0);
	play_add(play, only_made, &j, 2);
	assert_true(play_run(play));
	assert_int_equal(bootstrap_comm_shrink(j.comm, excluded, 1, &err), 0);
	bootstrap_comm_end(play->children[0]);
	assert_int_equal(play->n_failed, 1);
	assert_non_null(strstr(play->sentence, "split from it has ended"));
	play_free(play);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_wrong_is_said),
		cmocka_unit_test(test_who_has_no_magic_harms_nobody),
		cmocka_unit_test(test_it_says_for_whom_it_waits),
		cmocka_unit_test(test_what_no_communicator_can_be_is_refused),
		cmocka_unit_test(test_a_shrink_that_cannot_be_is_refused),
		cmocka_unit_test(test_a_child_that_ends_too_early_takes_its_parent_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
