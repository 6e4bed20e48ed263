/* nboxd on a real RDMA device against peers that break the rules of verbs or fall silent, beside
 * two workers that go on working. For each peer: nboxd logs one sentence that names device, port,
 * queue pair, peer and status, within a bound; the next op works; and when nboxd has ended the
 * kernel keeps nothing. NBOX_TEST_RDMA is the address of the device. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../func/nboxd/fake-worker.h"
#include "bad-peer.h"
#include "base/clock.h"
#include "cmocka-all.h"
#include "links/endpoint.h"

#define BOUND_NS \
	(240 * NS_PER_S) /* a busy emulated machine; what is meant is milliseconds to 10 s */

static struct fake f[3];
static struct fake *const enemy = &f[2];
static uint64_t seq;

/* 2 nodes x 3 ranks, two of the three real ones here, one communicator of these. */
static void start(struct daemon *d, const char *exchange)
{
	bad_peer_set(BAD_NONE);
	daemon_start_line(d,
			  "--nodes 2 --gpus-per-node 3 --real 0-2 --addr %s --exchange %s "
			  "--model alphabeta --settle 500ms",
			  test_address("", NULL), exchange);
	for (size_t i = 0; i < 2; i++)
		fake_connect(&f[i], d->addr, "");
	assert_true(fakes_got(f, 2, WIRE_WELCOME, 1));
	for (size_t i = 0; i < 2; i++)
		fake_init(&f[i], 7, 2, (uint32_t)i, (uint32_t)i);
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 1));
	seq = 0;
}

static void work(void)
{
	for (size_t i = 0; i < 2; i++)
		fake_arrive(&f[i], &f[i].ready[0], seq, COLL_ALLREDUCE, 100, 0);
	assert_true(fakes_ops_over(f, 2));
	seq++;
}

struct saying {
	struct daemon *d;
	const char *text;
};

static bool said(void *ctx)
{
	struct saying *s = ctx;

	return daemon_said(s->d, s->text);
}

/* Waits for nboxd to tell of @status, once, with the name of the link. The enemy stands still: its
 * own end would notice some of this as well. */
static void expect(struct daemon *d, const char *status)
{
	uint64_t until = clock_now_ns() + BOUND_NS;
	struct saying s = {d, status};
	const char *line;
	char text[1024];
	unsigned int port, qp;

	while (!fakes_pump(f, 2, said, &s) && clock_now_ns() < until)
		;
	line = strstr(d->log, status);
	if (!line)
		fail_msg("nboxd did not say '%s': %s", status, d->log);
	while (line > d->log && line[-1] != '\n')
		line--;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
	print_message("# %s\n", text);
	line = strstr(text, "device ");
	if (!line || sscanf(line, "device %*s port %u, QP %u to rdma:", &port, &qp) != 2 ||
	    !strstr(text, " to rdma:"))
		fail_msg("the sentence does not name device, port, queue pair and peer: %s", text);
	assert_null(strstr(strstr(d->log, status) + 1, status)); /* once */
}

static void expect_nothing_kept(pid_t pid)
{
	char line[256] = "", command[256];
	FILE *p;

	snprintf(command, sizeof(command),
		 "for w in qp cq mr pd cm_id; do rdma resource show $w; done "
		 "2>/dev/null | grep 'pid %d comm'",
		 (int)pid);
	for (int i = 0; i < 600; i++) { /* an ended process is taken apart in the background */
		line[0] = '\0';
		p = popen(command, "r");
		assert_non_null(p);
		while (fgets(line, sizeof(line), p))
			;
		pclose(p);
		if (!line[0])
			return;
		usleep(100000);
	}
	fail_msg("the kernel keeps: %s", line);
}

static void finish(struct daemon *d)
{
	pid_t pid = d->pid;

	work();
	for (size_t i = 0; i < 3; i++)
		fake_close(&f[i]);
	daemon_stop(d);
	expect_nothing_kept(pid);
}

/* nboxd refuses a peer whose hello is not ours, and tells it why. */
static void a_wrong_hello_is_refused(void **state)
{
	static const struct link_events none;
	static const struct {
		enum bad_trick trick;
		const char *tells, *log;
	} cases[] = {
		{BAD_MAGIC, "it took our hello for garbage", "is no hello of nbox"},
		{BAD_VERSION,
		 "another version of the rdma link: use nboxd and libnbox.so of one release",
		 "the other end speaks version 99 of the rdma link, this one "},
	};
	struct daemon d;

	(void)state;
	start(&d, "none");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct saying s = {&d, cases[i].log};
		struct err err = {""};
		struct link *l = NULL;

		bad_peer_set(cases[i].trick);
		assert_true(link_connect(d.addr, 30000, &none, NULL, &l, &err) < 0);
		print_message("# %s\n", err.text);
		assert_non_null(strstr(err.text, cases[i].tells));
		assert_true(fakes_pump(f, 2, said, &s));
		work();
	}
	finish(&d);
}

/* One peer never confirms the connection, the other connects and says nothing. The bound that
 * ends both is that of nboxd for all links, which is nearer than that of the rdma link (15 s). */
static void a_silent_peer_is_given_up(void **state)
{
	static const enum bad_trick tricks[] = {BAD_NO_CONFIRM, BAD_NONE};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct daemon d;
		struct saying s = {&d, "said no HELLO within 10 s"};

		start(&d, "none");
		bad_peer_set(tricks[i]);
		fake_connect_raw(enemy, d.addr);
		if (!fakes_pump(f, 2, said, &s))
			fail_msg("nboxd does not mind: %s", d.log);
		assert_non_null(strstr(d.log, "worker 2 (rdma:"));
		assert_true(fakes_closed(enemy, 1));
		finish(&d);
	}
}

static void a_peer_without_receives_is_told_of(void **state)
{
	struct daemon d;

	(void)state;
	start(&d, "none");
	bad_peer_set(BAD_NO_RECEIVES);
	fake_connect(enemy, d.addr, "");
	expect(&d, "IBV_WC_RNR_RETRY_EXC_ERR");
	finish(&d);
}

/* nboxd writes a body into a ring whose key is not that. */
static void a_write_by_a_wrong_key_ends_the_link(void **state)
{
	struct daemon d;

	(void)state;
	start(&d, "payload");
	bad_peer_set(BAD_RKEY);
	fake_connect(enemy, d.addr, "");
	assert_true(fakes_got(enemy, 1, WIRE_WELCOME, 1));
	fake_init(enemy, 9, 2, 0, 2);
	assert_true(fakes_got(enemy, 1, WIRE_COMM_READY, 1));
	fake_arrive(enemy, &enemy->ready[0], 0, COLL_ALLREDUCE, 100000, 0);
	expect(&d, "IBV_WC_REM_ACCESS_ERR");
	finish(&d);
}

/* Its queue pair is gone, and nobody was told: in the middle of an op, and while all are
 * silent, when the link itself finds out. Soft-RoCE counts 7 retries as endless; then the
 * link's own bound ends it. */
static void a_peer_whose_queue_pair_is_gone_is_lost(void **state)
{
	static const struct {
		const char *exchange, *retries, *says;
	} cases[] = {
		{"none", "6", "IBV_WC_RETRY_EXC_ERR"},
		{"payload", "6", "IBV_WC_RETRY_EXC_ERR"},
		{"payload", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct daemon d;

		if (cases[i].retries)
			setenv("NBOX_IB_RETRY_CNT", cases[i].retries, 1);
		setenv("NBOX_IB_TIMEOUT", "14", 1); /* 67 ms: to be waited for eight times */
		start(&d, cases[i].exchange);
		unsetenv("NBOX_IB_RETRY_CNT");
		unsetenv("NBOX_IB_TIMEOUT");
		bad_peer_set(BAD_NONE);
		fake_connect(enemy, d.addr, "");
		assert_true(fakes_got(enemy, 1, WIRE_WELCOME, 1));
		fake_init(enemy, 9, 2, 0, 2);
		assert_true(fakes_got(enemy, 1, WIRE_COMM_READY, 1));
		if (i > 0)
			fake_arrive(enemy, &enemy->ready[0], 0, COLL_ALLREDUCE, 1000000, 0);
		bad_peer_fall_silent();
		if (cases[i].says)
			expect(&d, cases[i].says);
		else /* --device: a real one */
			expect(&d,
			       getenv("NBOX_IB_HCA") ? "RETRY_EXC_ERR" : "has not answered for");
		finish(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_hello_is_refused),
		cmocka_unit_test(a_silent_peer_is_given_up),
		cmocka_unit_test(a_peer_without_receives_is_told_of),
		cmocka_unit_test(a_write_by_a_wrong_key_ends_the_link),
		cmocka_unit_test(a_peer_whose_queue_pair_is_gone_is_lost),
	};

	if (!getenv("NBOX_TEST_RDMA")) {
		printf("1..0 # SKIP NBOX_TEST_RDMA names no address of an RDMA device\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!bad_peer_init())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
