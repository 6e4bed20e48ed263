/* How real members come to make their real communicator (nboxd/comm/meet.c): all or nobody. The
 * workers are fakes. */
#include <errno.h>
#include <string.h>

#include "fake-world.h"

#define COMM (f[0].ready[0].comm)

static struct daemon d;

static int start(void **state)
{
	(void)state;
	start_world(&d, "2", 3, "shm", "none", NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	close_all(3);
	daemon_stop(&d);
	return 0;
}

static void promise(uint32_t rank)
{
	fake_send(&f[rank], WIRE_MEET, COMM, rank, 0, NULL, 0);
}

static void abort_by(uint32_t rank)
{
	struct wire_text text = {.code = ECONNABORTED, .text = "aborted"};

	fake_send(&f[rank], WIRE_ABORT, COMM, rank, 0, &text, sizeof(text));
}

/* Everything that was sent to @rank before has come. */
static void settle(uint32_t rank)
{
	unsigned n = f[rank].n[WIRE_PING]; /* sending may take in what comes */
	struct wire_ping ping = {0};

	fake_send(&f[rank], WIRE_PING, 0, 0, 0, &ping, sizeof(ping));
	assert_true(fakes_got(&f[rank], 1, WIRE_PING, n + 1));
}

static void send_id(uint8_t byte)
{
	uint8_t id[WIRE_ID_BYTES];

	memset(id, byte, sizeof(id));
	fake_send(&f[0], WIRE_LOCAL_ID, COMM, 0, 0, id, sizeof(id));
}

static void members_meet_when_all_have_promised(void **state)
{
	(void)state;
	promise(0);
	promise(2);
	settle(0);
	settle(2);
	assert_int_equal(f[0].n[WIRE_MEET] + f[2].n[WIRE_MEET], 0);
	promise(1);
	assert_true(fakes_got(f, 3, WIRE_MEET, 1));
	/* a member that aborts now goes in all the same, and the others wait for the id */
	abort_by(2);
	assert_true(fakes_got(f, 2, WIRE_ABORT, 1));
	send_id(0x5a);
	assert_true(fakes_got(f + 1, 2, WIRE_LOCAL_ID, 1));
	assert_int_equal(f[1].local_id[0], 0x5a);
	assert_int_equal(f[2].local_id[WIRE_ID_BYTES - 1], 0x5a);
	assert_int_equal(f[0].n[WIRE_LOCAL_ID], 0);
}

static void an_abort_answers_the_promises(void **state)
{
	(void)state;
	promise(0);
	promise(1);
	abort_by(1); /* it waits for an answer, too */
	settle(1);
	promise(2);
	assert_true(fakes_got(f, 3, WIRE_ABORT, 1));
	settle(0);
	assert_int_equal(f[0].n[WIRE_MEET], 0);
}

static void a_promise_after_an_abort_is_answered_by_it(void **state)
{
	(void)state;
	promise(0);
	abort_by(1);
	promise(1); /* they crossed in the worker */
	assert_true(fakes_got(f, 3, WIRE_ABORT, 1));
}

static void a_promise_after_another_has_left_aborts(void **state)
{
	(void)state;
	fake_send(&f[1], WIRE_COMM_FREE, COMM, 1, 0, NULL, 0);
	settle(1);
	promise(0);
	assert_true(fakes_got(f, 1, WIRE_ABORT, 1));
	assert_non_null(
		strstr(f[0].abort.text, "rank 1 left before the real communicator was made"));
}

static void a_member_that_leaves_while_others_wait_aborts(void **state)
{
	(void)state;
	promise(0);
	settle(0);
	fake_send(&f[1], WIRE_BYE, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(f, 1, WIRE_ABORT, 1));
	assert_non_null(strstr(f[0].abort.text, "left in the middle"));
}

static void nobody_waits_for_an_id_that_will_not_come(void **state)
{
	static const uint8_t none[WIRE_ID_BYTES];

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		promise(i);
	assert_true(fakes_got(f, 3, WIRE_MEET, 1));
	memset(f[1].local_id, 1, WIRE_ID_BYTES);
	fake_close(&f[0]); /* killed before it made the id */
	assert_true(fakes_got(f + 1, 2, WIRE_LOCAL_ID, 1));
	assert_memory_equal(f[1].local_id, none, sizeof(none));
	/* the cause comes first: a missing id alone says nothing of a rank that is gone */
	assert_int_equal(f[1].n_aborts_before_id, 1);
	assert_int_equal(f[2].n_aborts_before_id, 1);
}

static void an_id_that_nobody_waits_for_is_refused(void **state)
{
	(void)state;
	promise(1);
	promise(1);
	assert_true(fakes_got(f + 1, 1, WIRE_ERROR, 1));
	assert_non_null(strstr(f[1].error.text, "has sent it already"));
	send_id(1);
	assert_true(fakes_got(f, 1, WIRE_ERROR, 1));
	assert_non_null(strstr(f[0].error.text, "nobody waits for"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(members_meet_when_all_have_promised, start, stop),
		cmocka_unit_test_setup_teardown(an_abort_answers_the_promises, start, stop),
		cmocka_unit_test_setup_teardown(a_promise_after_an_abort_is_answered_by_it, start,
						stop),
		cmocka_unit_test_setup_teardown(a_promise_after_another_has_left_aborts, start,
						stop),
		cmocka_unit_test_setup_teardown(a_member_that_leaves_while_others_wait_aborts,
						start, stop),
		cmocka_unit_test_setup_teardown(nobody_waits_for_an_id_that_will_not_come, start,
						stop),
		cmocka_unit_test_setup_teardown(an_id_that_nobody_waits_for_is_refused, start,
						stop),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
