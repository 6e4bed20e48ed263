/* nboxd's TCPStore server, and ranks that do not exist: ids that they would make, barriers that
 * they would enter, whose process has ended, groups that the job has told of. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "store-client.h"

static struct daemon d;

static void virtual_ranks_are_answered_for(void **state)
{
	uint8_t id[256], again[256];
	uint64_t begun_ns;
	int a, b;

	(void)state;
	nboxd_start(&d, "2,3");
	a = store_client(&d);
	b = store_client(&d);
	/* rank 0 makes the default group's id; it does not exist */
	store_put(a, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//cuda//0"));
	assert_int_equal(store_take_u8(a), 0);
	store_put(a, request(STORE_GET, "k", "/default_pg/0//cuda//0"));
	store_put(b, request(STORE_GET, "k", "/default_pg/0//cuda//0"));
	assert_int_equal(store_take_value(a, id, sizeof(id)), WIRE_ID_BYTES);
	assert_int_equal(store_take_value(b, again, sizeof(again)), WIRE_ID_BYTES);
	assert_memory_equal(id, again, WIRE_ID_BYTES);
	/* it may be a real rank that makes this one: not at once */
	begun_ns = clock_now_ns();
	store_put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//3//cuda//0"));
	assert_int_equal(store_take_u8(b), 0);
	assert_true(clock_now_ns() - begun_ns >= 400 * NS_PER_MS);
	/* barriers over the store: two of eight are real */
	store_put(a, request(STORE_ADD, "ki", "/default_pg/store_based_barrier_key:0", INT64_C(1)));
	assert_int_equal(store_take_i64(a), 7);
	store_put(a, request(STORE_BARRIER, "ki", "/b", INT64_C(8)));
	assert_false(is_readable(a, 20));
	store_put(b, request(STORE_BARRIER, "ki", "/b", INT64_C(8)));
	assert_int_equal(store_take_u8(a) + store_take_u8(b), 0);
	/* a group's own barrier: how many of it are real is not known */
	store_put(b, request(STORE_WAIT, "nk", UINT64_C(1),
			     "/default_pg/0//ab//store_based_barrier_key:ab:last_worker"));
	assert_int_equal(store_take_u8(b), 0);
	close(a);
	close(b);
	daemon_stop(&d);
}

static void comm_init(struct fake *f, const uint8_t *id, uint32_t rank)
{
	struct wire_comm_init m = {.n_ranks = 2, .rank = rank, .world_rank = 2 + rank, .cookie = 1};

	memcpy(m.id, id, sizeof(m.id));
	fake_send(f, WIRE_COMM_INIT, 0, 0, 0, &m, sizeof(m));
}

/* The maker was real after all, and slow: both ids are one communicator's. */
static void two_ids_of_one_communicator_are_the_same(void **state)
{
	char real_id[WIRE_ID_BYTES + 1];
	uint8_t id[256];
	struct fake f[2];
	int a, b;

	(void)state;
	memset(real_id, 'r', sizeof(real_id));
	real_id[WIRE_ID_BYTES] = '\0';
	nboxd_start(&d, "2,3");
	a = store_client(&d);
	b = store_client(&d);
	store_put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//3//cuda//0"));
	assert_int_equal(store_take_u8(b), 0);
	store_put(b, request(STORE_GET, "k", "/default_pg/0//3//cuda//0"));
	assert_int_equal(store_take_value(b, id, sizeof(id)), WIRE_ID_BYTES);
	store_put(a, request(STORE_SET, "kv", "/default_pg/0//3//cuda//0", real_id));
	daemon_will_say(&d, "both are taken for the same");
	for (int i = 0; i < 2; i++)
		fake_connect(&f[i], d.addr, "");
	assert_true(fakes_got(f, 2, WIRE_WELCOME, 1));
	comm_init(&f[0], (uint8_t *)real_id, 0);
	comm_init(&f[1], id, 1);
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 1));
	assert_int_equal(f[0].ready[0].comm, f[1].ready[0].comm);
	assert_int_equal(f[0].ready[0].m.n_real, 2);
	for (int i = 0; i < 2; i++)
		fake_close(&f[i]);
	close(a);
	close(b);
	daemon_stop(&d);
}

/* Rank 0 makes the default group's id. Its process has ended: nobody waits for it. */
static void nobody_waits_for_a_key_of_an_ended_process(void **state)
{
	int sockets[2], fd, a, b;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	fd = fcntl(sockets[1], F_DUPFD, 256); /* the others are closed in nboxd */
	assert_true(fd >= 256);
	nboxd_start_told(&d, "0,1", fd);
	close(fd);
	close(sockets[1]);
	a = store_client(&d);
	b = store_client(&d);
	store_put(a, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//cuda//0"));
	store_put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/mine"));
	assert_int_equal(send(sockets[0], "rubbish", 7, MSG_NOSIGNAL), 7);
	assert_int_equal(send(sockets[0], "7 0", 3, MSG_NOSIGNAL), 3); /* is not real */
	assert_false(is_readable(a, 3000));
	assert_int_equal(send(sockets[0], "0 9", 3, MSG_NOSIGNAL), 3);
	assert_true(is_hung_up(a));
	daemon_will_say(&d, "the process of rank 0, which sets it, has ended with exit code 9");
	assert_false(is_readable(b, 1000)); /* anybody may set that */
	close(sockets[0]);
	store_put(b, request(STORE_CANCEL_WAIT, ""));
	assert_int_equal(store_take_u8(b), 1);
	close(a);
	close(b);
	daemon_stop(&d);
}

/* The job's own lists of its groups: who makes an id is known, and nobody is waited for. */
static void the_jobs_lists_say_who_makes_an_id(void **state)
{
	struct {
		struct wire_group m;
		uint32_t ranks[2];
	} virtual_first = {{.name = "9", .n_ranks = 2}, {0, 3}},
	  real_first = {{.name = "8", .n_ranks = 2}, {2, 5}},
	  outside = {{.name = "8", .n_ranks = 2}, {2, 8}};
	struct fake f = {0};
	int a, b;

	(void)state;
	nboxd_start(&d, "2,3");
	fake_connect(&f, d.addr, "");
	assert_true(fakes_got(&f, 1, WIRE_WELCOME, 1));
	assert_int_equal(f.welcome.wants_groups, 1);
	a = store_client(&d);
	b = store_client(&d);
	fake_send(&f, WIRE_GROUP, 0, 0, 0, &virtual_first, sizeof(virtual_first));
	fake_send(&f, WIRE_GROUP, 0, 0, 0, &real_first, sizeof(real_first));
	fake_send(&f, WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(&f, 1, WIRE_STATUS, 1)); /* it has read them */
	store_put(a, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//8//cuda//0"));
	store_put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//9//cuda//0"));
	assert_int_equal(store_take_u8(b), 0);
	assert_false(is_readable(a, 1000)); /* rank 2 makes it; far more than settle */
	fake_send(&f, WIRE_GROUP, 0, 0, 0, &outside, sizeof(outside));
	assert_true(fakes_closed(&f, 1));
	daemon_will_say(&d, "GROUP frame: rank 8 in a world of 8");
	fake_close(&f);
	close(a);
	close(b);
	daemon_stop(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(virtual_ranks_are_answered_for),
		cmocka_unit_test(two_ids_of_one_communicator_are_the_same),
		cmocka_unit_test(the_jobs_lists_say_who_makes_an_id),
		cmocka_unit_test(nobody_waits_for_a_key_of_an_ended_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
