/* nboxd from outside, when something is wrong: calls that do not match, workers that die, leave,
 * are strangers or come never, ranks that are gone; and nboxd's own end. */
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/record-read.h"
#include "fake-world.h"

static void calls_that_differ_abort_their_communicator(void **state)
{
	struct daemon d;

	(void)state;
	start_world(&d, "2", 2, "shm", "none", NULL);
	fake_arrive(&f[0], &f[0].ready[0], 0, COLL_ALLREDUCE, 1024, 0);
	fake_arrive(&f[1], &f[1].ready[0], 0, COLL_BROADCAST, 1024, 1);
	assert_true(fakes_got(f, 2, WIRE_ABORT, 1));
	assert_non_null(strstr(f[0].abort.text, "calls AllReduce of 1024 float (4 KiB), root 0"));
	assert_non_null(strstr(f[0].abort.text, "calls Broadcast of 1024 float (4 KiB), root 1"));
	assert_int_equal(f[0].last[WIRE_ABORT].comm, f[0].ready[0].comm);
	/* The link is alive: another communicator works. */
	for (uint32_t i = 0; i < 2; i++)
		fake_init(&f[i], 9, 4, i, i);
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 2));
	for (size_t i = 0; i < 2; i++)
		fake_arrive(&f[i], &f[i].ready[1], 0, COLL_ALLREDUCE, 10, 0);
	assert_true(fakes_ops_over(f, 2));
	/* the root alone, too */
	for (uint32_t i = 0; i < 2; i++)
		fake_arrive(&f[i], &f[i].ready[1], 1, COLL_BROADCAST, 10, i);
	assert_true(fakes_got(f, 2, WIRE_ABORT, 2));
	assert_non_null(strstr(f[0].abort.text, "(40 B), root 1"));
	close_all(2);
	daemon_stop(&d);
}

/* In the middle of an op a worker process is killed; another frees too early. */
static void a_killed_worker_aborts_what_it_took_part_in(void **state)
{
	struct daemon d;
	char pid_text[32];
	pid_t pid;

	(void)state;
	start_world(&d, "2", 2, "shm", "none", NULL);
	fake_close(&f[1]);
	assert_true(fakes_got(f, 1, WIRE_ABORT, 1));
	assert_non_null(strstr(f[0].abort.text, "rank 1 (world rank 1), worker "));
	assert_non_null(strstr(f[0].abort.text, "vanished"));
	/* Again, with a process that dies. Over rdma it may not be a fork of one that has links
	 * (tests/rdma kills whole workers). */
	for (int link = 0; link < (getenv("NBOX_TEST_RDMA") ? 0 : 2); link++) {
		fake_close(&f[0]);
		daemon_stop(&d);
		const char *args[] = {"--nodes", "2",      "--gpus-per-node",
				      "2",       "--addr", address(link ? "tcp" : "shm"),
				      NULL};
		daemon_start(&d, args);
		pid = fork();
		if (pid == 0) {
			fake_connect(&f[1], d.addr, "");
			fake_init(&f[1], 1, 4, 1, 1);
			fakes_got(&f[1], 1, WIRE_COMM_READY, 1);
			raise(SIGKILL);
		}
		fake_connect(&f[0], d.addr, "");
		fake_init(&f[0], 1, 4, 0, 0);
		assert_true(fakes_got(f, 1, WIRE_COMM_READY, 1));
		fake_arrive(&f[0], &f[0].ready[0], 0, COLL_ALLREDUCE, 10, 0);
		assert_true(fakes_got(f, 1, WIRE_ABORT, 1));
		snprintf(pid_text, sizeof(pid_text), "(pid %d on fake)", (int)pid);
		assert_non_null(strstr(f[0].abort.text, pid_text));
		waitpid(pid, NULL, 0);
	}
	fake_close(&f[0]);
	daemon_stop(&d);
}

static bool is_answered(void *ctx)
{
	const struct fake *w = ctx;

	return w->n[WIRE_COMM_READY] || w->n[WIRE_ABORT];
}

static void takes_rank_0(struct fake *w, uint8_t id)
{
	fake_init(w, id, 2, 0, 0);
	assert_true(fakes_pump(w, 1, is_answered, w));
	assert_string_equal(w->abort.text, "");
}

/* An elastic launcher starts a rank again: the new process checks in the moment the old one has
 * ended. */
static void the_next_process_of_a_rank_is_taken_at_once(void **state)
{
	struct daemon d;

	(void)state;
	/* Not over rdma: there the end of a link may be seen late. */
	for (int link = 0; link < (getenv("NBOX_TEST_RDMA") ? 0 : 2); link++) {
		const char *args[] = {"--nodes", "2",      "--gpus-per-node",
				      "1",       "--addr", address(link ? "tcp" : "shm"),
				      NULL};

		daemon_start(&d, args);
		for (uint8_t round = 0; round < 100; round++) {
			fake_connect(&f[0], d.addr, "");
			fake_connect(&f[1], d.addr, "");
			takes_rank_0(&f[0], round);
			assert_true(fakes_got(f, 2, WIRE_WELCOME, 1));
			fake_close(&f[0]);
			takes_rank_0(&f[1], (uint8_t)(100 + round));
			fake_close(&f[1]);
		}
		daemon_stop(&d);
	}
}

static void a_member_that_frees_in_an_op_aborts_it(void **state)
{
	struct daemon d;

	(void)state;
	start_world(&d, "2", 2, "shm", "none", NULL);
	fake_arrive(&f[0], &f[0].ready[0], 0, COLL_ALLREDUCE, 10, 0);
	fake_send(&f[1], WIRE_COMM_FREE, f[1].ready[0].comm, 1, 0, NULL, 0);
	/* The free may come first: then nobody waited yet, and rank 0 is told at its op. */
	if (!fakes_got(f, 1, WIRE_ABORT, 1))
		fail_msg("rank 0 waits for ever");
	close_all(2);
	daemon_stop(&d);
}

static void a_wrong_message_aborts_its_communicator(void **state)
{
	struct daemon d;

	(void)state;
	start_world(&d, "2", 2, "shm", "messages", NULL);
	fake_arrive(&f[0], &f[0].ready[0], 0, COLL_ALLREDUCE, 1000, 0);
	/* The player sent what it may; now one that nobody expects. */
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_MESSAGE, 0);
	h.comm = f[0].ready[0].comm;
	h.peer = 1;
	h.index = 77;
	link_send_copy(f[0].link, &h, NULL);
	assert_true(fakes_got(f, 2, WIRE_ABORT, 1));
	assert_non_null(
		strstr(f[1].abort.text, "message 77 from rank 0 to rank 1, lane 0: message "));
	close_all(2);
	daemon_stop(&d);
}

static void a_worker_that_breaks_the_protocol_is_refused(void **state)
{
	const char *args[] = {"--nodes",      "2",       "--gpus-per-node", "2", "--addr",
			      address("tcp"), "--token", "s3cret",          NULL};
	struct daemon d;

	(void)state;
	daemon_start(&d, args);
	fake_connect(&f[0], d.addr, "wrong");
	assert_true(fakes_closed(f, 1));
	assert_int_equal(f[0].n[WIRE_WELCOME], 0);
	assert_non_null(strstr(f[0].error.text, "wrong token"));
	fake_close(&f[0]);
	fake_connect_raw(&f[0], d.addr); /* no HELLO first */
	fake_init(&f[0], 1, 4, 0, 0);
	assert_true(fakes_closed(f, 1));
	assert_non_null(strstr(f[0].error.text, "COMM_INIT before HELLO"));
	fake_close(&f[0]);
	fake_connect(&f[0], d.addr, "s3cret");
	assert_true(fakes_got(f, 1, WIRE_WELCOME, 1));
	fake_send(&f[0], WIRE_COMM_FREE, 12345, 0, 0, NULL, 0);
	assert_true(fakes_closed(f, 1));
	assert_non_null(strstr(f[0].error.text, "communicator 12345, which never was"));
	fake_close(&f[0]);
	daemon_will_say(&d, "wrong token");
	assert_false(daemon_said(&d, "s3cret"));
	daemon_stop(&d);
}

static int raw_connect(const char *addr)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *ai;
	char host[64];
	const char *port = strrchr(addr, ':');
	int fd;

	snprintf(host, sizeof(host), "%.*s", (int)(port - addr - 4), addr + 4);
	assert_int_equal(getaddrinfo(host, port + 1, &hints, &ai), 0);
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, ai->ai_addr, ai->ai_addrlen), 0);
	freeaddrinfo(ai);
	return fd;
}

/* Garbage, half frames and floods beside a worker that goes on working. */
static void garbage_does_not_disturb_the_others(void **state)
{
	static char junk[65536];
	struct daemon d;
	struct wire_hdr h;
	uint64_t seq = 0;

	(void)state;
	if (getenv("NBOX_TEST_RDMA"))
		return; /* raw bytes of a socket */
	signal(SIGPIPE, SIG_IGN);
	start_world(&d, "2", 2, "tcp", "messages", NULL);
	for (int round = 0; round < 6; round++) {
		int fd = raw_connect(d.addr);
		size_t total = 0, n = round == 1 ? 20 : sizeof(junk);
		ssize_t wrote;

		memset(junk, round == 0 ? 0xff : 0, sizeof(junk));
		if (round > 1) {
			static const uint16_t types[] = {WIRE_HELLO, WIRE_MESSAGE, WIRE_ARRIVE, 99};

			wire_hdr_init(&h, WIRE_HELLO, sizeof(struct wire_hello));
			h.type = types[round - 2];
			if (round == 3 || round == 4)
				h.body_bytes = UINT64_C(1) << 31;
			memcpy(junk, &h, sizeof(h));
			n = round == 2 ? 60 : sizeof(junk); /* 2: ends inside HELLO */
		}
		/* 64 MB of it, unless nboxd closes the door, which it must in all but 1, 2 */
		do {
			wrote = write(fd, junk, n);
			total += wrote > 0 ? (size_t)wrote : 0;
		} while (wrote > 0 && n == sizeof(junk) && total < (64u << 20));
		if (n == sizeof(junk))
			assert_true(wrote < 0);
		close(fd);
		for (size_t i = 0; i < 2; i++)
			fake_arrive(&f[i], &f[i].ready[0], seq, COLL_ALLREDUCE, 3000, 0);
		assert_true(fakes_ops_over(f, 2));
		seq++;
	}
	close_all(2);
	daemon_stop(&d);
}

/* A rank that is gone is gone: also from communicators that are made afterwards, but from none that
 * it is not in. */
static void a_rank_that_is_gone_stays_gone(void **state)
{
	const char *const more[] = {"--model", "const:time=1ms", "--what-if", "fail:rank=3,after=1",
				    NULL};
	struct {
		struct wire_comm_shrink m;
		uint32_t excluded;
	} body = {.m = {.cookie = 2, .n_excluded = 1}, .excluded = 3};
	struct daemon d;

	(void)state;
	start_world(&d, "2", 2, "shm", "none", more);
	for (uint64_t seq = 0; seq < 2; seq++) {
		for (size_t i = 0; i < 2; i++)
			fake_arrive(&f[i], &f[i].ready[0], seq, COLL_ALLREDUCE, 100, 0);
		if (seq == 0)
			assert_true(fakes_ops_over(f, 2));
	}
	assert_true(fakes_got(f, 2, WIRE_ABORT, 1));
	assert_non_null(strstr(f[1].abort.text, "world rank 3 is gone"));
	/* that is how a job goes on: a shrink of the dead one without it */
	for (size_t i = 0; i < 2; i++) {
		body.m.parent = f[i].ready[0].comm;
		body.m.rank = (uint32_t)i;
		fake_send(&f[i], WIRE_COMM_SHRINK, body.m.parent, (uint32_t)i, 0, &body,
			  sizeof(body));
	}
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 2));
	assert_int_equal(f[1].ready[1].m.n_ranks, 3);
	for (size_t i = 0; i < 2; i++)
		fake_init(&f[i], 8, 2, (uint32_t)i, (uint32_t)i);
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 3));
	for (size_t i = 0; i < 2; i++)
		fake_arrive(&f[i], &f[i].ready[2], 0, COLL_ALLREDUCE, 100, 0);
	assert_true(fakes_ops_over(f, 2));
	for (size_t i = 0; i < 2; i++)
		fake_init(&f[i], 9, 4, (uint32_t)i, (uint32_t)i);
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 4));
	fake_arrive(&f[0], &f[0].ready[3], 0, COLL_ALLREDUCE, 100, 0);
	assert_true(fakes_got(f, 2, WIRE_ABORT, 2));
	assert_non_null(strstr(f[1].abort.text, "world rank 3 is gone"));
	close_all(2);
	daemon_stop(&d);
}

/* Two ranks that shrink a communicator to different members do not wait for each other. */
static void shrinks_to_other_members_do_not_wait_for_each_other(void **state)
{
	struct {
		struct wire_comm_shrink m;
		uint32_t excluded;
	} body = {.m = {.cookie = 2, .n_excluded = 1}};
	struct daemon d;

	(void)state;
	start_world(&d, "2", 2, "shm", "none", NULL);
	for (size_t i = 0; i < 2; i++) {
		body.m.parent = f[i].ready[0].comm;
		body.m.rank = (uint32_t)i;
		body.excluded = 2 + (uint32_t)i;
		fake_send(&f[i], WIRE_COMM_SHRINK, body.m.parent, (uint32_t)i, 0, &body,
			  sizeof(body));
	}
	assert_true(fakes_got(f, 2, WIRE_ABORT, 1));
	assert_non_null(strstr(f[0].abort.text, "excludes other ranks than rank"));
	close_all(2);
	daemon_stop(&d);
}

/* Waiting is named after 5 s and ends at the timeout. */
static void waiting_is_named_after_5_s_and_ends_at_the_timeout(void **state)
{
	const char *const more[] = {"--timeout", "5500ms", NULL};
	struct daemon d;

	(void)state;
	start_world(&d, "2", 2, "shm", "none", more);
	fake_arrive(&f[0], &f[0].ready[0], 0, COLL_ALLREDUCE, 1000, 0);
	assert_true(fakes_got(f, 2, WIRE_ABORT, 1));
	assert_non_null(strstr(f[1].abort.text, "that is the timeout"));
	daemon_will_say(&d, "op 0 of communicator 1, AllReduce of 1000 float");
	daemon_will_say(&d, "for its members: arrived 0; missing 1 (pid ");
	close_all(2);
	daemon_stop(&d);
}

/* --- the end ------------------------------------------------------------------------ */

static void sigterm_ends_nboxd_and_tells_its_workers(void **state)
{
	const char *more[] = {"--out", NULL, NULL};
	char out[128], path[160], sock[128];
	struct record rec;
	struct err err = {""};
	struct stat st;
	struct daemon d, second;

	(void)state;
	snprintf(out, sizeof(out), "%s/results/a", dir);
	more[1] = out;
	start_world(&d, "2", 2, "shm", "none", more);
	snprintf(sock, sizeof(sock), "%.100s", d.addr + 4);
	f[0].clock_error_ns = 1500; /* the worst counts */
	f[1].clock_error_ns = 700;
	for (uint32_t i = 0; i < 2; i++)
		fake_init(&f[i], 9, 4, i, i);
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 2));
	for (size_t i = 0; i < 2; i++)
		fake_arrive(&f[i], &f[i].ready[0], 0, COLL_ALLREDUCE, 1000, 0);
	assert_true(fakes_ops_over(f, 2));
	fake_send(&f[0], WIRE_STATUS, 0, 0, 0, NULL, 0);
	fake_send(&f[1], WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(f, 2, WIRE_STATUS, 1));
	assert_non_null(strstr(f[0].status, "\"world_size\": 4"));
	/* A second one on the same address is refused, and harms nothing. */
	const char *again[] = {getenv("NBOXD"), "--model", "none", "--addr", d.addr, NULL};
	int p[2];
	char text[512] = "";
	ssize_t got;

	assert_int_equal(pipe(p), 0);
	second.pid = fork();
	if (second.pid == 0) {
		dup2(p[1], STDERR_FILENO);
		execv(again[0], (char *const *)(uintptr_t)again);
		_exit(127);
	}
	close(p[1]);
	for (size_t n = 0; (got = read(p[0], text + n, sizeof(text) - 1 - n)) > 0; n += (size_t)got)
		;
	close(p[0]);
	assert_int_equal(WEXITSTATUS(daemon_wait(&second, 60)), 1);
	if (!getenv("NBOX_TEST_RDMA"))
		assert_non_null(strstr(text, "another nboxd listens"));
	else
		assert_non_null(strstr(text, d.addr));
	fake_arrive(&f[0], &f[0].ready[0], 1, COLL_ALLREDUCE, 1000, 0);
	link_progress(f[0].link);
	kill(d.pid, SIGTERM);
	assert_true(fakes_closed(f, 2));
	assert_non_null(strstr(f[0].error.text, "nboxd was told to end (Terminated)"));
	assert_int_equal(daemon_wait(&d, 60), 0);
	close(d.err_fd);
	assert_int_equal(stat(sock, &st), -1);
	snprintf(path, sizeof(path), "%s/record.nbox", out);
	assert_int_equal(record_load(path, &rec, &err), 0);
	assert_int_equal(rec.n_ops, 2);
	assert_int_equal(rec.header.world_size, 4);
	assert_true(rec.ops[0].release_ns >= rec.ops[0].due_ns);
	assert_int_equal(rec.end.clock_error_ns, 1500);
	assert_int_equal(rec.end.n_lost, 0);
	assert_int_equal(rec.ops[0].bytes, 4000);
	record_deinit(&rec);
	snprintf(path, sizeof(path), "%s/config.yaml", out);
	assert_int_equal(stat(path, &st), 0);
	close_all(2);
}

/* --once: only workers are waited for. A look at its status, or a stranger's visit, is not the job
 * that has come and gone. */
static void once_waits_for_workers_only(void **state)
{
	const char *args[] = {"--nodes", "4",  "--gpus-per-node", "1", "--real", "0",
			      "--addr",  NULL, "--once",          NULL};
	struct wire_hello hello = {.pid = (uint32_t)getpid(),
				   .host = "fake",
				   .role = WIRE_ROLE_CLIENT};
	struct daemon d;

	(void)state;
	args[7] = address("tcp");
	daemon_start(&d, args);
	fake_connect_raw(&f[0], d.addr);
	if (getenv("NBOX_TOKEN"))
		snprintf((char *)hello.token, sizeof(hello.token), "%s", getenv("NBOX_TOKEN"));
	fake_send(&f[0], WIRE_HELLO, 0, 0, 0, &hello, sizeof(hello));
	fake_send(&f[0], WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(f, 1, WIRE_STATUS, 1));
	fake_close(&f[0]);
	fake_connect_raw(&f[1], d.addr);
	fake_close(&f[1]);
	assert_int_equal(daemon_wait(&d, 3), -1);
	fake_connect(&f[0], d.addr, "");
	assert_true(fakes_got(f, 1, WIRE_WELCOME, 1));
	fake_send(&f[0], WIRE_BYE, 0, 0, 0, NULL, 0);
	fake_close(&f[0]);
	assert_int_equal(daemon_wait(&d, 60), 0);
	close(d.err_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_differ_abort_their_communicator),
		cmocka_unit_test(a_killed_worker_aborts_what_it_took_part_in),
		cmocka_unit_test(the_next_process_of_a_rank_is_taken_at_once),
		cmocka_unit_test(a_member_that_frees_in_an_op_aborts_it),
		cmocka_unit_test(a_wrong_message_aborts_its_communicator),
		cmocka_unit_test(a_worker_that_breaks_the_protocol_is_refused),
		cmocka_unit_test(garbage_does_not_disturb_the_others),
		cmocka_unit_test(a_rank_that_is_gone_stays_gone),
		cmocka_unit_test(shrinks_to_other_members_do_not_wait_for_each_other),
		cmocka_unit_test(waiting_is_named_after_5_s_and_ends_at_the_timeout),
		cmocka_unit_test(sigterm_ends_nboxd_and_tells_its_workers),
		cmocka_unit_test(once_waits_for_workers_only),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
