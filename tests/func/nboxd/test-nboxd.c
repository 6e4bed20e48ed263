/* nboxd from outside: whole lives of ops in the three exchanges over shm and tcp, and communicators
 * of all kinds. The workers are fakes of this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fake-world.h"

/* --- lives of ops ------------------------------------------------------------- */

static void run_ops(size_t n, const char *link, const char *exchange, double ret_ns[3])
{
	static const uint32_t kinds[] = {COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCESCATTER,
					 COLL_ALLTOALL,  COLL_BROADCAST, COLL_REDUCE};
	const char *const more[] = {"--model", "alphabeta", "--chunk", "64KiB", NULL};
	struct daemon d;

	start_world(&d, "4", n, link, exchange, more);
	assert_int_equal(f[0].ready[0].m.n_ranks, f[0].welcome.world);
	assert_int_equal(f[0].ready[0].m.n_real, n);
	for (uint64_t seq = 0; seq < 3 * ARRAY_SIZE(kinds); seq++) {
		uint32_t kind = kinds[seq % ARRAY_SIZE(kinds)];
		bool is_rooted = kind == COLL_BROADCAST || kind == COLL_REDUCE;
		uint64_t start;

		for (size_t i = 0; i < n; i++)
			fake_arrive(&f[i], &f[i].ready[0], seq, kind, 1 << (8 + seq % 3 * 4), 0);
		start = f[n - 1].arrive.arrive_ns;
		assert_true(fakes_ops_over(f, n));
		if (seq < 4) /* later not all arrive alike: those of a broadcast do not */
			assert_int_equal(f[0].release.start_ns, start);
		for (size_t i = 1; i < n; i++) {
			assert_true(f[i].release.end_ns >=
				    (is_rooted ? f[i].arrive.arrive_ns : start));
			if (seq < 4)
				assert_int_equal(f[i].release.end_ns, f[0].release.end_ns);
		}
		if (seq < 3)
			ret_ns[seq] = (double)(f[0].release.end_ns - start);
	}
	for (size_t i = 0; i < n; i++)
		fake_send(&f[i], WIRE_COMM_FREE, f[i].ready[0].comm, (uint32_t)i, 0, NULL, 0);
	for (size_t i = 0; i < n; i++)
		fake_send(&f[i], WIRE_BYE, 0, 0, 0, NULL, 0);
	fake_send(&f[0], WIRE_STATUS, 0, 0, 0, NULL, 0); /* after BYE: refused */
	assert_true(fakes_got(f, 1, WIRE_ERROR, 1));
	assert_non_null(strstr(f[0].error.text, "after BYE"));
	close_all(n);
	daemon_stop(&d);
}

static void every_op_ends_in_every_exchange(void **state)
{
	static const char *const links[] = {"shm", "tcp"};
	static const char *const exchanges[] = {"none", "messages", "payload"};
	static const size_t sizes[] = {1, 2, 4};
	double ends[3][3];

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(sizes); n++) {
		for (size_t l = 0; l < (getenv("NBOX_TEST_RDMA") ? 1 : 2); l++) {
			for (size_t e = 0; e < 3; e++)
				run_ops(sizes[n], links[l], exchanges[e], ends[e]);
			for (size_t k = 0; k < 3; k++) { /* all exchanges agree on the end */
				assert_true(ends[0][k] > 0);
				assert_true(ends[0][k] == ends[1][k] && ends[0][k] == ends[2][k]);
			}
		}
	}
}

/* Members of one communicator over tcp, shm and, where there is a device, rdma: what they send each
 * other goes through nboxd from one link to another. The one who vanishes is named to those over
 * the others. */
static void all_kinds_of_links_work_together(void **state)
{
	const char *device = getenv("NBOX_TEST_RDMA");
	char shm[128], third[192], also[2][256] = {"", ""};
	struct daemon d;

	(void)state;
	snprintf(shm, sizeof(shm), "shm:%s/together.sock", dir);
	snprintf(third, sizeof(third), device ? "rdma:%s:0" : "shm:%s/third.sock",
		 device ? device : dir);
	daemon_start_line(
		&d,
		"--nodes 2 --gpus-per-node 3 --real 0-2 --model alphabeta --exchange payload "
		"--chunk 64KiB --addr tcp:127.0.0.1:0 --addr %s --addr %s",
		shm, third);
	if (sscanf(d.also, "%255s %255s", also[0], also[1]) != 2)
		fail_msg("nboxd listens at %s and %s", d.addr, d.also);
	fake_connect(&f[0], d.addr, "");
	fake_connect(&f[1], also[0], "");
	fake_connect(&f[2], also[1], "");
	assert_string_equal(link_kind(f[0].link), "tcp");
	assert_string_equal(link_kind(f[1].link), "shm");
	assert_string_equal(link_kind(f[2].link), device ? "rdma" : "shm");
	assert_true(fakes_got(f, 3, WIRE_WELCOME, 1));
	for (uint32_t i = 0; i < 3; i++)
		fake_init(&f[i], 7, 6, i, i);
	assert_true(fakes_got(f, 3, WIRE_COMM_READY, 1));
	for (uint64_t seq = 0; seq < 6; seq++) {
		for (size_t i = 0; i < 3; i++)
			fake_arrive(&f[i], &f[i].ready[0], seq,
				    seq % 2 ? COLL_ALLTOALL : COLL_ALLREDUCE, 1 << 16, 0);
		assert_true(fakes_ops_over(f, 3));
		assert_int_equal(f[1].release.end_ns, f[0].release.end_ns);
		assert_int_equal(f[2].release.end_ns, f[0].release.end_ns);
	}
	f[2].link = link_free(f[2].link);
	assert_true(fakes_got(f, 2, WIRE_ABORT, 1));
	if (!strstr(f[0].abort.text, "rank 2 (world rank 2)") ||
	    !strstr(f[0].abort.text,
		    device ? "vanished: device " : "vanished: the peer closed the connection"))
		fail_msg("%s", f[0].abort.text);
	close_all(3);
	daemon_stop(&d);
}

/* A member is late: the others' messages are early and must not be lost. */
static void early_messages_are_not_lost(void **state)
{
	struct daemon d;

	(void)state;
	for (int e = 0; e < 2; e++) {
		start_world(&d, "3", 2, "shm", e ? "payload" : "messages", NULL);
		for (uint64_t seq = 0; seq < 5; seq++) {
			fake_arrive(&f[seq % 2], &f[seq % 2].ready[0], seq, COLL_ALLREDUCE, 5000,
				    0);
			fakes_got(f, 2, WIRE_WELCOME, 1);
			for (int i = 0; i < 20; i++) {
				link_progress(f[seq % 2].link);
				usleep(500);
			}
			fake_arrive(&f[1 - seq % 2], &f[1 - seq % 2].ready[0], seq, COLL_ALLREDUCE,
				    5000, 0);
			assert_true(fakes_ops_over(f, 2));
		}
		close_all(2);
		daemon_stop(&d);
	}
}

static void a_worker_with_nboxds_clock_is_told_so(void **state)
{
	struct wire_hello hello = {.pid = (uint32_t)getpid(), .host = "fake"};
	struct daemon d;

	(void)state;
	clock_id(hello.clock_id);
	start_world(&d, "2", 1, "shm", "none", NULL);
	assert_int_equal(f[0].welcome.same_clock, 0); /* says nothing of where it is */
	if (getenv("NBOX_TOKEN"))
		snprintf((char *)hello.token, sizeof(hello.token), "%s", getenv("NBOX_TOKEN"));
	fake_connect_raw(&f[1], d.addr);
	fake_send(&f[1], WIRE_HELLO, 0, 0, 0, &hello, sizeof(hello));
	assert_true(fakes_got(f + 1, 1, WIRE_WELCOME, 1));
	assert_int_equal(f[1].welcome.same_clock, 1);
	close_all(2);
	daemon_stop(&d);
}

/* A clock that is wrong by less than a second moves no start out of what can be: an op begins
 * neither before its worker was there nor after nboxd heard of it. */
static void a_wrong_clock_moves_no_start_out_of_what_can_be(void **state)
{
	const char *const more[] = {"--model", "const:time=2ms", NULL};
	uint64_t before = clock_now_ns();
	struct daemon d;

	(void)state;
	start_world(&d, "2", 1, "shm", "none", more);
	f[0].skew_ns = 800 * (int64_t)NS_PER_MS;
	fake_arrive(&f[0], &f[0].ready[0], 0, COLL_ALLREDUCE, 100, 0);
	assert_true(fakes_got(f, 1, WIRE_RELEASE, 1));
	assert_in_range(f[0].release.start_ns, before, clock_now_ns());
	assert_true(fakes_ops_over(f, 1));
	f[0].skew_ns = -(int64_t)before;
	fake_arrive(&f[0], &f[0].ready[0], 1, COLL_ALLREDUCE, 100, 0);
	assert_true(fakes_got(f, 1, WIRE_RELEASE, 2));
	assert_in_range(f[0].release.start_ns, before, clock_now_ns());
	assert_true(fakes_ops_over(f, 1));
	f[0].skew_ns = 60 * (int64_t)NS_PER_S;
	fake_arrive(&f[0], &f[0].ready[0], 2, COLL_ALLREDUCE, 100, 0);
	assert_true(fakes_got(f, 1, WIRE_ERROR, 1));
	assert_non_null(strstr(f[0].error.text, "in the future: the clocks do not agree"));
	f[0].skew_ns = 0;
	close_all(1);
	daemon_stop(&d);
}

/* What no network can do is said, of a collective and of calls. */
static void a_time_that_no_network_can_do_is_told(void **state)
{
	const char *const more[] = {"--model", "const:time=1us", "--inter-bandwidth", "1GB/s",
				    NULL};
	struct daemon d;

	(void)state;
	start_world(&d, "2", 1, "shm", "none", more);
	fake_arrive(&f[0], &f[0].ready[0], 0, COLL_ALLREDUCE, 250,
		    0); /* 1000 bytes at 1 B/ns: just 1 us */
	assert_true(fakes_ops_over(f, 1));
	assert_false(daemon_said(&d, "the network alone needs"));
	fake_arrive(&f[0], &f[0].ready[0], 1, COLL_ALLREDUCE, 1000, 0);
	assert_true(fakes_ops_over(f, 1));
	daemon_will_say(&d,
			"(AllReduce): the model says 1.00 us, but the network alone needs 4.00 us");
	fake_arrive(&f[0], &f[0].ready[0], 2, COLL_ALLREDUCE, 3000,
		    0); /* once is enough: the summary counts them */
	assert_true(fakes_ops_over(f, 1));
	assert_false(daemon_said(&d, "needs 12.0 us"));
	close_all(1);
	daemon_stop(&d);
}

static void an_op_takes_as_long_as_the_model_says(void **state)
{
	const char *const more[] = {"--model", "const:time=2ms", "--what-if", "add:delay=3ms",
				    NULL};
	struct daemon d;

	(void)state;
	start_world(&d, "8", 2, "shm", "messages", more);
	for (uint64_t seq = 0; seq < 3; seq++) {
		for (size_t i = 0; i < 2; i++)
			fake_arrive(&f[i], &f[i].ready[0], seq, COLL_ALLREDUCE, 100, 0);
		assert_true(fakes_ops_over(f, 2));
		assert_int_equal(f[0].release.end_ns - f[0].release.start_ns, 5000000);
	}
	close_all(2);
	daemon_stop(&d);
}

/* Two groups of calls between a real and a virtual rank, and between real ranks. */
static void groups_of_calls_end_when_their_pairs_are_there(void **state)
{
	struct daemon d;

	(void)state;
	start_world(&d, "3", 2, "shm", "none", NULL);
	for (uint64_t seq = 0; seq < 2; seq++) {
		for (uint32_t i = 0; i < 2; i++) {
			struct {
				struct wire_arrive a;
				struct wire_p2p p[3];
			} body = {.a = {.arrive_ns = clock_now_ns(),
					.kind = COLL_SENDRECV,
					.n_p2p = 3},
				  .p = {{1 - i, 1, 1000}, {1 - i, 0, 1000}, {4 + i, i, 64}}};

			/* sending may take in what comes: the answer, on a busy machine */
			f[i].comm = f[i].ready[0].comm;
			f[i].rank = i;
			f[i].seq = WIRE_SEQ_P2P | seq;
			f[i].has_release = false;
			fake_send(&f[i], WIRE_ARRIVE, f[i].ready[0].comm, i, WIRE_SEQ_P2P | seq,
				  &body, sizeof(body));
		}
		assert_true(fakes_ops_over(f, 2));
	}
	close_all(2);
	daemon_stop(&d);
}

/* --- communicators ---------------------------------------------------------------- */

static void each_group_gets_its_members(void **state)
{
	const char *args[] = {"--nodes", "4", "--gpus-per-node", "4", "--settle", "500ms", "--addr",
			      NULL,      NULL};
	struct daemon d;

	(void)state;
	args[7] = address("shm");
	daemon_start(&d, args);
	for (uint32_t i = 0; i < 4; i++)
		fake_connect(&f[i], d.addr, "");
	assert_true(fakes_got(f, 4, WIRE_WELCOME, 1));
	/* The node's own group: all real. Who is late is waited for, as long as nobody knows of
	 * another group of this size. */
	for (uint32_t i = 0; i < 4; i++)
		fake_init(&f[i], 20, 4, i, i);
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 1));
	/* Data-parallel groups: one real rank each, and nothing else is known of them. */
	for (uint32_t i = 0; i < 4; i++)
		fake_init(&f[i], (uint8_t)(10 + i), 4, 0, i);
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 2));
	for (uint32_t i = 0; i < 4; i++) {
		const struct fake_ready *tp = &f[i].ready[0], *dp = &f[i].ready[1];

		assert_int_equal(dp->m.n_real, 1);
		assert_int_equal(dp->m.is_guess, 1);
		assert_int_equal(dp->m.ranks_per_node, 1);
		assert_int_equal(dp->m.gpus_per_node, 4);
		assert_int_equal(dp->m.base, i);
		assert_int_equal(dp->m.stride, 4);
		assert_int_equal(dp->m.cookie, 10 + i);
		assert_int_equal(tp->m.n_real, 4);
		assert_int_equal(tp->m.is_guess, 0);
		assert_int_equal(tp->m.ranks_per_node, 4);
		assert_int_equal(tp->m.rank, i);
		assert_int_equal(tp->members[3].world_rank, 3);
	}
	/* A rank that is not real; a communicator larger than the world. */
	fake_init(&f[0], 30, 4, 1, 9);
	assert_true(fakes_got(f, 1, WIRE_ABORT, 1));
	assert_int_equal(f[0].last[WIRE_ABORT].comm, WIRE_NO_COMM);
	assert_int_equal(f[0].last[WIRE_ABORT].seq, 30);
	assert_non_null(
		strstr(f[0].abort.text, "world rank 9 is not one of the 4 real ranks (0 to 3)"));
	fake_init(&f[0], 31, 17, 0, 0);
	assert_true(fakes_got(f, 1, WIRE_ABORT, 2));
	assert_non_null(strstr(f[0].abort.text, "a communicator of 17 ranks in a world of 16"));
	close_all(4);
	daemon_stop(&d);
}

static void split_all(size_t n, const int32_t *colors, const int32_t *keys, uint32_t cookie)
{
	for (size_t i = 0; i < n; i++) {
		struct wire_comm_split m = {.parent = f[i].ready[0].comm,
					    .rank = (uint32_t)i,
					    .color = colors[i],
					    .key = keys[i],
					    .cookie = cookie,
					    .count = cookie};

		fake_send(&f[i], WIRE_COMM_SPLIT, m.parent, m.rank, 0, &m, sizeof(m));
	}
}

static void splits_and_shrinks_make_children(void **state)
{
	static const int32_t by_local[] = {0, 1}, none[] = {-1, 5}, down[] = {1, 0};
	static const int32_t zero[] = {0, 0};
	struct daemon d;

	(void)state;
	start_world(&d, "4", 2, "shm", "none", NULL);
	split_all(2, by_local, zero, 0); /* by local rank: 4 nodes, one rank each */
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 2));
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f[i].ready[1].m.n_ranks, 4);
		assert_int_equal(f[i].ready[1].m.n_real, 1);
		assert_int_equal(f[i].ready[1].m.rank, 0);
		assert_int_equal(f[i].ready[1].m.ranks_per_node, 1);
	}
	assert_true(f[0].ready[1].comm != f[1].ready[1].comm);
	split_all(2, none, zero, 1); /* rank 0 wants none */
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 3));
	assert_int_equal(f[0].ready[2].m.n_ranks, 0);
	assert_int_equal(f[0].ready[2].m.cookie, 1);
	assert_int_equal(f[1].ready[2].m.n_ranks, 4);
	split_all(2, zero, down, 2); /* one color, the other way round */
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 4));
	assert_int_equal(f[0].ready[3].m.n_ranks, 8);
	assert_int_equal(f[0].ready[3].comm, f[1].ready[3].comm);
	for (size_t i = 0; i < 2; i++) { /* exclude a virtual rank */
		struct {
			struct wire_comm_shrink m;
			uint32_t out;
		} body = {{f[i].ready[0].comm, (uint32_t)i, 9, 1}, 5};

		fake_send(&f[i], WIRE_COMM_SHRINK, body.m.parent, (uint32_t)i, 0, &body,
			  sizeof(body));
	}
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 5));
	assert_int_equal(f[1].ready[4].m.n_ranks, 7);
	assert_int_equal(f[1].ready[4].m.rank, 1);
	for (size_t i = 0; i < 2; i++)
		fake_arrive(&f[i], &f[i].ready[4], 0, COLL_ALLREDUCE, 700, 0);
	assert_true(fakes_ops_over(f, 2));
	close_all(2);
	daemon_stop(&d);
}

static void a_large_world_needs_little_memory(void **state)
{
	const char *const more[] = {"--model", "ring", NULL};
	struct daemon d;
	const char *rss;

	(void)state;
	start_world(&d, "32768", 2, "shm", "messages", more);
	assert_int_equal(f[0].ready[0].m.n_ranks, 65536);
	/* The messages of 65,536 ranks of a ring: 131,070 a lane towards each real rank. */
	for (uint64_t seq = 0; seq < 2; seq++) {
		for (size_t i = 0; i < 2; i++)
			fake_arrive(&f[i], &f[i].ready[0], seq,
				    seq ? COLL_ALLREDUCE : COLL_BROADCAST, 1 << 20, 0);
		assert_true(fakes_ops_over(f, 2));
	}
	fake_send(&f[0], WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(f, 1, WIRE_STATUS, 1));
	rss = strstr(f[0].status, "\"rss_bytes\": ");
	assert_non_null(rss);
	print_message("# 65,536 ranks: RSS %.1f MB\n", (double)atoll(rss + 13) / 1e6);
	/* Sanitizers have memory of their own. */
	if (!getenv("NBOX_TEST_SANITIZED"))
		assert_true(atoll(rss + 13) < 100000000);
	close_all(2);
	daemon_stop(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_ends_in_every_exchange),
		cmocka_unit_test(all_kinds_of_links_work_together),
		cmocka_unit_test(early_messages_are_not_lost),
		cmocka_unit_test(a_worker_with_nboxds_clock_is_told_so),
		cmocka_unit_test(a_wrong_clock_moves_no_start_out_of_what_can_be),
		cmocka_unit_test(an_op_takes_as_long_as_the_model_says),
		cmocka_unit_test(a_time_that_no_network_can_do_is_told),
		cmocka_unit_test(groups_of_calls_end_when_their_pairs_are_there),
		cmocka_unit_test(each_group_gets_its_members),
		cmocka_unit_test(splits_and_shrinks_make_children),
		cmocka_unit_test(a_large_world_needs_little_memory),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
