/* For whom a communicator waits, and what cannot be one. */
#include "cmocka-all.h"

#include <errno.h>
#include <string.h>

#include "job.h"

static void waits_in_gather(struct player *p)
{
	struct rank_comm *c = job_made(p);

	rank_gather(c, play_alloc(p->play, 6 * 2), 2);
}

static void waits_at_barrier(struct player *p)
{
	rank_barrier(job_made(p), 0xbeef);
}

static void only_made(struct player *p)
{
	job_made(p);
}

static void only_checked_in(struct player *p)
{
	struct job *j = p->arg;
	uint8_t address[NCCL_ADDRESS_BYTES];
	int32_t words[43] = {(int32_t)p->rank, (int32_t)j->world.n, 0, (int32_t)j->n_ids};
	struct wire *w;

	player_listen(p, address);
	memcpy((uint8_t *)words + 16, address, sizeof(address));
	w = job_connect(p, PORT_ROOT, job_magic(j), 1);
	job_frame(p, w, words, sizeof(words));
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
	job_vote(job_made(p));
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
		cmocka_unit_test(test_it_says_for_whom_it_waits),
		cmocka_unit_test(test_what_no_communicator_can_be_is_refused),
		cmocka_unit_test(test_a_shrink_that_cannot_be_is_refused),
		cmocka_unit_test(test_a_child_that_ends_too_early_takes_its_parent_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
