/* nboxd's TCPStore server over real sockets: a thousand clients, waits, clients that are
 * killed, hang, or send garbage; answers for virtual ranks, the log's words about waits, a
 * second generation of workers. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../unit/base/cmocka-all.h"
#include "../../unit/store/talk.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fake-worker.h"
#include "store/gloo.h"

#define CLIENTS 1000
#define ANSWER_MS 60000 /* far above any answer, also on a busy machine */

static struct daemon d;

/* 4 nodes of 2; node 1 or node 0 is real. @ended_fd: who tells of processes that have ended; -1: nobody. */
static void start_told(const char *real, int ended_fd)
{
	char fd[16];
	const char *args[] = {"--nodes", "4", "--gpus-per-node", "2", "--real", real, "--addr",
			      "tcp:127.0.0.1:0", "--store", "127.0.0.1:0", "--settle", "20ms",
			      ended_fd >= 0 ? "--ended-fd" : NULL, fd, NULL};

	snprintf(fd, sizeof(fd), "%d", ended_fd);
	daemon_start(&d, args);
}

static void start(const char *real)
{
	start_told(real, -1);
}

static int dial(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	a.sin_port = htons((uint16_t)atoi(strrchr(d.store, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	return fd;
}

static void put(int fd, struct buffer r)
{
	assert_int_equal(send(fd, buffer_front(&r), r.n, MSG_NOSIGNAL), r.n);
	buffer_deinit(&r);
}

static int client(void)
{
	int fd = dial();

	put(fd, request(STORE_VALIDATE, "u", STORE_MAGIC));
	return fd;
}

/* Whether something can be read within @ms. */
static bool is_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void take(int fd, void *bytes, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t more;

		if (!is_readable(fd, ANSWER_MS))
			fail_msg("no answer within %d s", ANSWER_MS / 1000);
		more = recv(fd, (char *)bytes + got, n - got, 0);
		if (more <= 0)
			fail_msg("the server hung up");
		got += (size_t)more;
	}
}

static int take_u8(int fd)
{
	uint8_t v;

	take(fd, &v, 1);
	return v;
}

static int64_t take_i64(int fd)
{
	int64_t v;

	take(fd, &v, 8);
	return v;
}

static size_t take_value(int fd, void *bytes, size_t size)
{
	size_t n = (size_t)take_i64(fd);

	assert_true(n <= size);
	take(fd, bytes, n);
	return n;
}

static bool is_hung_up(int fd)
{
	char byte;

	return is_readable(fd, ANSWER_MS) && recv(fd, &byte, 1, 0) <= 0;
}

static void wait_for_log(const char *text)
{
	for (int i = 0; i < 600 && !daemon_said(&d, text); i++)
		usleep(50000);
	if (!daemon_said(&d, text))
		fail_msg("the log lacks '%s': %s", text, d.log);
}

/* --- crowds ---------------------------------------------------------------------------- */

/* Every client sets a key and waits for that of the next one but the last: all wait, then
 * one after the other is woken; each counts itself. A tenth is cut off in the middle. */
static void test_crowd(void **state)
{
	static int fds[CLIENTS];
	struct rlimit limit;
	char key[32], next[32];
	uint64_t n_wait = 0;
	int last;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < CLIENTS + 50)
		skip();
	start("0,1");
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = client();
		snprintf(key, sizeof(key), "key/%d", i);
		snprintf(next, sizeof(next), "go/%d", i);
		put(fds[i], request(STORE_SET, "kv", key, next));
		put(fds[i], request(STORE_WAIT, "nkk", UINT64_C(2), next, "all"));
	}
	for (int i = 0; i < CLIENTS; i += 10)
		close(fds[i]);
	last = client();
	for (int i = 0; i < CLIENTS; i++) {
		snprintf(key, sizeof(key), "key/%d", i);
		snprintf(next, sizeof(next), "go/%d", i);
		put(last, request(STORE_WAIT, "nk", UINT64_C(1), key));
		assert_int_equal(take_u8(last), 0);
		put(last, request(STORE_SET, "kv", next, ""));
	}
	put(last, request(STORE_SET, "kv", "all", "x"));
	for (int i = 0; i < CLIENTS; i++) {
		if (i % 10 == 0)
			continue;
		assert_int_equal(take_u8(fds[i]), 0);
		put(fds[i], request(STORE_ADD, "ki", "count", INT64_C(1)));
		assert_int_equal(take_i64(fds[i]), ++n_wait);
		close(fds[i]);
	}
	assert_int_equal(n_wait, CLIENTS - CLIENTS / 10);
	put(last, request(STORE_GETNUMKEYS, ""));
	assert_int_equal(take_i64(last), 2 * CLIENTS + 2);
	close(last);
	daemon_stop(&d);
}

/* --- who means ill ------------------------------------------------------------------------ */

static void test_strangers(void **state)
{
	int good, bad, half, quiet;
	uint64_t begun_ns;

	(void)state;
	start("0,1");
	good = client();
	/* a browser, a wrong magic number, a request before it, a length beyond all limits */
	bad = dial();
	put(bad, request((enum store_op)'G', "k", "/ HTTP/1.1"));
	assert_true(is_hung_up(bad));
	close(bad);
	bad = dial();
	put(bad, request(STORE_VALIDATE, "u", (uint32_t)1));
	assert_true(is_hung_up(bad));
	close(bad);
	bad = dial();
	put(bad, request(STORE_SET, "kv", "k", "v"));
	assert_true(is_hung_up(bad));
	close(bad);
	bad = client();
	put(bad, request(STORE_WAIT, "n", UINT64_MAX));
	assert_true(is_hung_up(bad));
	close(bad);
	wait_for_log("is no operation of a TCPStore");
	wait_for_log("SET before VALIDATE");
	/* half a request and no more; nothing at all: only the second is cut off, after 5 s */
	half = client();
	put(half, request(STORE_SET, "i", INT64_C(100)));
	begun_ns = clock_now_ns();
	quiet = dial();
	assert_true(is_hung_up(quiet));
	assert_true(clock_now_ns() - begun_ns > 4 * NS_PER_S);
	assert_false(is_readable(half, 0));
	/* the other end is closed, the answers are still read */
	put(good, request(STORE_GET, "k", "k"));
	shutdown(good, SHUT_WR);
	assert_int_equal(take_i64(good), 0);
	close(good);
	close(half);
	close(quiet);
	daemon_stop(&d);
}

/* 64 MiB of answers to one that does not read do not keep others waiting; then it reads. */
static void test_slow_reader(void **state)
{
	CLEANUP(freep) char *value = malloc((1u << 20) + 1), *got = malloc(1u << 20);
	int slow, quick;

	(void)state;
	assert_non_null(value);
	assert_non_null(got);
	memset(value, 'v', 1u << 20);
	value[1u << 20] = '\0';
	start("0,1");
	slow = client();
	quick = client();
	put(quick, request(STORE_SET, "kv", "big", value));
	put(quick, request(STORE_WAIT, "nk", UINT64_C(1), "big"));
	assert_int_equal(take_u8(quick), 0);
	for (int i = 0; i < 64; i++)
		put(slow, request(STORE_GET, "k", "big"));
	for (int i = 0; i < 100; i++) {
		put(quick, request(STORE_PING, "u", (uint32_t)getpid()));
		take(quick, got, 4);
	}
	for (int i = 0; i < 64; i++)
		assert_int_equal(take_value(slow, got, 1u << 20), 1u << 20);
	close(slow);
	close(quick);
	daemon_stop(&d);
}

/* --- virtual ranks -------------------------------------------------------------------------- */

static void test_virtual(void **state)
{
	uint8_t id[256], again[256];
	uint64_t begun_ns;
	int a, b;

	(void)state;
	start("2,3");
	a = client();
	b = client();
	/* rank 0 makes the default group's id; it does not exist */
	put(a, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//cuda//0"));
	assert_int_equal(take_u8(a), 0);
	put(a, request(STORE_GET, "k", "/default_pg/0//cuda//0"));
	put(b, request(STORE_GET, "k", "/default_pg/0//cuda//0"));
	assert_int_equal(take_value(a, id, sizeof(id)), WIRE_ID_BYTES);
	assert_int_equal(take_value(b, again, sizeof(again)), WIRE_ID_BYTES);
	assert_memory_equal(id, again, WIRE_ID_BYTES);
	/* it may be a real rank that makes this one: not at once */
	begun_ns = clock_now_ns();
	put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//3//cuda//0"));
	assert_int_equal(take_u8(b), 0);
	assert_true(clock_now_ns() - begun_ns >= 80 * NS_PER_MS);
	/* barriers over the store: two of eight are real */
	put(a, request(STORE_ADD, "ki", "/default_pg/store_based_barrier_key:0", INT64_C(1)));
	assert_int_equal(take_i64(a), 7);
	put(a, request(STORE_BARRIER, "ki", "/b", INT64_C(8)));
	assert_false(is_readable(a, 20));
	put(b, request(STORE_BARRIER, "ki", "/b", INT64_C(8)));
	assert_int_equal(take_u8(a) + take_u8(b), 0);
	/* a group's own barrier: how many of it are real is not known */
	put(b, request(STORE_WAIT, "nk", UINT64_C(1),
		       "/default_pg/0//ab//store_based_barrier_key:ab:last_worker"));
	assert_int_equal(take_u8(b), 0);
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
static void test_two_ids(void **state)
{
	char real_id[WIRE_ID_BYTES + 1];
	uint8_t id[256];
	struct fake f[2];
	int a, b;

	(void)state;
	memset(real_id, 'r', sizeof(real_id));
	real_id[WIRE_ID_BYTES] = '\0';
	start("2,3");
	a = client();
	b = client();
	put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//3//cuda//0"));
	assert_int_equal(take_u8(b), 0);
	put(b, request(STORE_GET, "k", "/default_pg/0//3//cuda//0"));
	assert_int_equal(take_value(b, id, sizeof(id)), WIRE_ID_BYTES);
	put(a, request(STORE_SET, "kv", "/default_pg/0//3//cuda//0", real_id));
	wait_for_log("both are taken for the same");
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

/* What waits is named after 5 s, once, and in the status. */
static void test_told(void **state)
{
	struct fake f = {0};
	int a, b;

	(void)state;
	start("2,3");
	a = client();
	b = client();
	put(a, request(STORE_PING, "u", UINT32_C(4000000000)));
	take(a, &(uint32_t){0}, 4);
	put(a, request(STORE_WAIT, "nkk", UINT64_C(2), "/default_pg/0//cpu//0/1", "/other"));
	put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/a \"key\"\n"));
	sleep(2);
	fake_connect(&f, d.addr, "");
	assert_true(fakes_got(&f, 1, WIRE_WELCOME, 1));
	fake_send(&f, WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(&f, 1, WIRE_STATUS, 1));
	assert_non_null(strstr(f.status, "\"store\": {\"addr\": \"127.0.0.1:"));
	assert_non_null(strstr(f.status, "\"clients\": 2, \"keys\": 0, "));
	assert_non_null(strstr(f.status, "pid 4000000000"));
	assert_non_null(strstr(f.status, "gloo address of virtual rank 1"));
	fake_close(&f);
	wait_for_log("for key \"/default_pg/0//cpu//0/1\" and 1 more; it is the gloo address of virtual "
		     "rank 1 in the default group");
	wait_for_log("for key \"/a ?key??\"; no real rank has set it yet");
	put(a, request(STORE_CANCEL_WAIT, ""));
	assert_int_equal(take_u8(a), 1);
	close(a);
	close(b);
	daemon_stop(&d);
}

static int count_in_log(const char *text)
{
	int n = 0;

	for (const char *p = d.log; (p = strstr(p, text)); p++)
		n++;
	return n;
}

/* All who wait for a key are one line, and many keys are few lines. */
static void test_told_once(void **state)
{
	int fds[60];
	char key[32];

	(void)state;
	start("2,3");
	for (int i = 0; i < 60; i++) {
		fds[i] = client();
		snprintf(key, sizeof(key), "/%d", i < 30 ? 0 : i);
		put(fds[i], request(STORE_WAIT, "nk", UINT64_C(1), key));
		if (i >= 30)
			usleep(20000); /* nboxd looks at each of them by itself */
	}
	wait_for_log("for key \"/0\"; no real rank has set it yet");
	wait_for_log("more clients have waited 5 s; nbox status lists what for");
	assert_int_equal(count_in_log("for key \"/0\""), 1);
	assert_non_null(strstr(d.log, "(so do 29 others)"));
	assert_in_range(count_in_log("has waited"), 8, 16); /* 8 in 10 s */
	for (int i = 0; i < 60; i++)
		close(fds[i]);
	daemon_stop(&d);
}

/* Rank 0 makes the default group's id. Its process has ended: nobody waits for it. */
static void test_ended(void **state)
{
	int sockets[2], fd, a, b;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
	fd = fcntl(sockets[1], F_DUPFD, 256); /* the others are closed in nboxd */
	assert_true(fd >= 256);
	start_told("0,1", fd);
	close(fd);
	close(sockets[1]);
	a = client();
	b = client();
	put(a, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//cuda//0"));
	put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/mine"));
	assert_int_equal(send(sockets[0], "rubbish", 7, MSG_NOSIGNAL), 7);
	assert_int_equal(send(sockets[0], "7 0", 3, MSG_NOSIGNAL), 3); /* is not real */
	assert_false(is_readable(a, 3000));
	assert_int_equal(send(sockets[0], "0 9", 3, MSG_NOSIGNAL), 3);
	assert_true(is_hung_up(a));
	wait_for_log("the process of rank 0, which sets it, has ended with exit code 9");
	assert_false(is_readable(b, 1000)); /* anybody may set that */
	close(sockets[0]);
	put(b, request(STORE_CANCEL_WAIT, ""));
	assert_int_equal(take_u8(b), 1);
	close(a);
	close(b);
	daemon_stop(&d);
}

/* The job's own lists of its groups: who makes an id is known, and nobody is waited for. */
static void test_groups_told(void **state)
{
	struct {
		struct wire_group m;
		uint32_t ranks[2];
	} virtual_first = {{.name = "9", .n_ranks = 2}, {0, 3}}, real_first = {{.name = "8", .n_ranks = 2}, {2, 5}},
	  outside = {{.name = "8", .n_ranks = 2}, {2, 8}};
	struct fake f = {0};
	int a, b;

	(void)state;
	start("2,3");
	fake_connect(&f, d.addr, "");
	assert_true(fakes_got(&f, 1, WIRE_WELCOME, 1));
	assert_int_equal(f.welcome.wants_groups, 1);
	a = client();
	b = client();
	fake_send(&f, WIRE_GROUP, 0, 0, 0, &virtual_first, sizeof(virtual_first));
	fake_send(&f, WIRE_GROUP, 0, 0, 0, &real_first, sizeof(real_first));
	fake_send(&f, WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(&f, 1, WIRE_STATUS, 1)); /* it has read them */
	put(a, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//8//cuda//0"));
	put(b, request(STORE_WAIT, "nk", UINT64_C(1), "/default_pg/0//9//cuda//0"));
	assert_int_equal(take_u8(b), 0);
	assert_false(is_readable(a, 1000)); /* rank 2 makes it; far more than settle */
	fake_send(&f, WIRE_GROUP, 0, 0, 0, &outside, sizeof(outside));
	assert_true(fakes_closed(&f, 1));
	wait_for_log("GROUP frame: rank 8 in a world of 8");
	fake_close(&f);
	close(a);
	close(b);
	daemon_stop(&d);
}

/* A real rank of a gloo group, as gloo does: its address in the store, then connections to
 * virtual ranks, on which it first says who it is. */
static void set_address(int store, const char *key, uint16_t port)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&a;
	uint64_t n_key = strlen(key), n_value;
	uint8_t op = STORE_SET;
	struct buffer address, r = {0};

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(gloo_address_write(&a, 0, 0, &address), 0);
	n_value = address.n;
	assert_int_equal(buffer_add(&r, &op, 1) | buffer_add(&r, &n_key, 8) | buffer_add(&r, key, n_key) |
			 buffer_add(&r, &n_value, 8) | buffer_add(&r, buffer_front(&address), address.n), 0);
	buffer_deinit(&address);
	put(store, r);
}

static int dial_silent(int store, uint32_t rank)
{
	struct gloo_address a;
	uint8_t value[512];
	char key[64];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(key, sizeof(key), "/default_pg/0//cpu//0/%u", rank);
	put(store, request(STORE_WAIT, "nk", UINT64_C(1), key));
	assert_int_equal(take_u8(store), 0);
	put(store, request(STORE_GET, "k", key));
	assert_int_equal(gloo_address_parse((struct store_bytes){value, take_value(store, value, sizeof(value))},
					    &a), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a.sockaddr, sizeof(struct sockaddr_in)), 0);
	return fd;
}

static int dial_virtual(int store, uint32_t rank, int64_t me)
{
	int fd = dial_silent(store, rank);

	assert_int_equal(send(fd, &me, sizeof(me), MSG_NOSIGNAL), sizeof(me));
	return fd;
}

static void put_frame(int fd, enum gloo_opcode opcode, uint64_t slot, const char *body)
{
	struct gloo_frame f = {.opcode = opcode, .slot = slot, .length = strlen(body)};

	f.n_bytes = sizeof(f) + (opcode == GLOO_DATA ? f.length : 0);
	assert_int_equal(send(fd, &f, sizeof(f), MSG_NOSIGNAL), sizeof(f));
	if (opcode == GLOO_DATA)
		assert_int_equal(send(fd, body, f.length, MSG_NOSIGNAL), f.length);
}

static void take_frame(int fd, enum gloo_opcode opcode, uint64_t slot, const char *body)
{
	char got[64];
	struct gloo_frame f;

	take(fd, &f, sizeof(f));
	assert_int_equal(f.opcode, opcode);
	assert_int_equal(f.slot, slot);
	assert_int_equal(f.length, strlen(body));
	if (opcode != GLOO_DATA)
		return;
	take(fd, got, f.length);
	assert_memory_equal(got, body, f.length);
}

/* World of 8, ranks 2 and 3 are real. */
static void test_gloo(void **state)
{
	const uint64_t barrier = UINT64_C(7) << 56 | 5, broadcast = UINT64_C(6) << 56, reduce = UINT64_C(4) << 56;
	int a, b, from_1, from_6, to_4, from_0;
	struct fake f = {0};

	(void)state;
	start("2,3");
	a = client();
	b = client();
	set_address(a, "/default_pg/0//cpu//0/2", 65000);
	set_address(b, "/default_pg/0//cpu//0/3", 65001);
	from_1 = dial_virtual(a, 1, 2);
	from_6 = dial_virtual(a, 6, 2);
	to_4 = dial_virtual(b, 4, 3);
	/* rank 1 would send at once; 6 only when it has heard, through 4, of 3 */
	put_frame(from_1, GLOO_RECV_READY, barrier, "");
	take_frame(from_1, GLOO_SEND_READY, barrier, "");
	take_frame(from_1, GLOO_DATA, barrier, "");
	put_frame(from_6, GLOO_RECV_READY, barrier, "");
	assert_false(is_readable(from_6, 100));
	fake_connect(&f, d.addr, "");
	assert_true(fakes_got(&f, 1, WIRE_WELCOME, 1));
	fake_send(&f, WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(&f, 1, WIRE_STATUS, 1));
	assert_non_null(strstr(f.status, "in a barrier for rank 6, which is virtual"));
	fake_close(&f);
	put_frame(to_4, GLOO_SEND_READY, barrier, "");
	take_frame(to_4, GLOO_RECV_READY, barrier, "");
	assert_false(is_readable(from_6, 100));
	put_frame(to_4, GLOO_DATA, barrier, "");
	take_frame(from_6, GLOO_SEND_READY, barrier, "");
	take_frame(from_6, GLOO_DATA, barrier, "");
	/* what 3 sends to 4 is what 2 gets from 0 */
	from_0 = dial_virtual(a, 0, 2);
	put_frame(from_0, GLOO_RECV_READY, broadcast, "words");
	assert_false(is_readable(from_0, 100));
	put_frame(to_4, GLOO_SEND_READY, broadcast, "words");
	take_frame(to_4, GLOO_RECV_READY, broadcast, "words");
	put_frame(to_4, GLOO_DATA, broadcast, "words");
	take_frame(from_0, GLOO_SEND_READY, broadcast, "words");
	take_frame(from_0, GLOO_DATA, broadcast, "words");
	/* values of virtual ranks there are none; others are not touched */
	put_frame(from_1, GLOO_SEND_READY, reduce, "sum");
	assert_true(is_hung_up(from_1));
	wait_for_log("rank 2 of the default gloo group calls all_reduce with rank 1, which is virtual");
	put_frame(to_4, GLOO_BOUND_DATA, barrier, "");
	assert_true(is_hung_up(to_4));
	wait_for_log("not gloo as far as nboxd knows it");
	put_frame(from_6, GLOO_SEND_READY, barrier, "");
	take_frame(from_6, GLOO_RECV_READY, barrier, "");
	/* a barrier of bytes would be answered with bytes that nobody gave */
	put_frame(from_6, GLOO_RECV_READY, UINT64_C(7) << 56 | 7, "bytes");
	assert_true(is_hung_up(from_6));
	close(from_0);
	close(from_1);
	close(from_6);
	close(to_4);
	close(a);
	close(b);
	daemon_stop(&d);
}

/* After what was answered before. */
static bool is_cut_off(int fd)
{
	char bytes[256];

	while (is_readable(fd, ANSWER_MS))
		if (recv(fd, bytes, sizeof(bytes), 0) <= 0)
			return true;
	return false;
}

/* Who means ill at a port of gloo's, which may be open beyond loopback: says nothing, sends what a barrier has only
 * once, reads nothing. It is cut off, and what it sends does not pile up. */
static void test_gloo_enemies(void **state)
{
	const uint64_t barrier = UINT64_C(7) << 56 | 1;
	static struct gloo_frame many[4096];
	uint64_t sent = 0, until;
	int a, fd, silent;
	ssize_t n = 0;

	(void)state;
	start("2,3");
	a = client();
	set_address(a, "/default_pg/0//cpu//0/2", 65000);
	set_address(a, "/default_pg/0//cpu//0/3", 65001);
	silent = dial_silent(a, 5);
	fd = dial_virtual(a, 6, 2); /* 6 waits for 3, which never comes */
	put_frame(fd, GLOO_RECV_READY, barrier, "");
	put_frame(fd, GLOO_RECV_READY, barrier, "");
	assert_true(is_cut_off(fd));
	close(fd);
	fd = dial_virtual(a, 4, 2);
	put_frame(fd, GLOO_DATA, barrier, "");
	put_frame(fd, GLOO_DATA, barrier, "");
	assert_true(is_cut_off(fd));
	close(fd);
	assert_true(is_hung_up(silent)); /* after 5 s */
	close(silent);
	/* each frame is answered by one of the same size */
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct gloo_frame){.n_bytes = sizeof(many[0]), .opcode = GLOO_SEND_READY,
					      .slot = barrier};
	fd = dial_virtual(a, 7, 2);
	until = clock_now_ns() + 120 * NS_PER_S;
	while (n >= 0 && clock_now_ns() < until && sent < UINT64_C(1) << 30) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		size_t from = sent % sizeof(many[0]);

		poll(&p, 1, 100);
		n = send(fd, (char *)many + from, sizeof(many) - from, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			n = 0;
		sent += (uint64_t)n * (n > 0);
	}
	assert_true(n < 0);
	close(fd);
	close(a);
	daemon_stop(&d);
}

/* All workers go, others come: keys of the same names must not be answered with old values.
 * A short absence is none. */
static void test_generations(void **state)
{
	uint8_t ids[2][WIRE_ID_BYTES];
	int a;

	(void)state;
	start("0,1");
	a = client();
	put(a, request(STORE_SET, "kv", "/default_pg/0//cuda//0", "old"));
	put(a, request(STORE_CHECK, "nk", UINT64_C(1), "/default_pg/0//cuda//0"));
	assert_int_equal(take_u8(a), 0);
	close(a);
	sleep(1);
	a = client();
	put(a, request(STORE_CHECK, "nk", UINT64_C(1), "/default_pg/0//cuda//0"));
	assert_int_equal(take_u8(a), 1);
	close(a);
	daemon_stop(&d);
	/* so are the ids that nboxd made for virtual ranks: a new communicator is not the old one */
	start("2,3");
	for (int i = 0; i < 2; i++) {
		a = client();
		put(a, request(STORE_GET, "k", "/default_pg/0//cuda//0"));
		assert_int_equal(take_value(a, ids[i], WIRE_ID_BYTES), WIRE_ID_BYTES);
		close(a);
		sleep(1);
	}
	assert_memory_not_equal(ids[0], ids[1], WIRE_ID_BYTES);
	daemon_stop(&d);
}

/* A job whose nboxd is told to end: its clients are hung up, nboxd does not wait for them. */
static void test_end(void **state)
{
	int a;

	(void)state;
	start("0,1");
	a = client();
	put(a, request(STORE_WAIT, "nk", UINT64_C(1), "never"));
	put(a, request(STORE_PING, "u", UINT32_C(1)));
	take(a, &(uint32_t){0}, 4);
	daemon_stop(&d);
	assert_true(is_hung_up(a));
	close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crowd),	    cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_slow_reader), cmocka_unit_test(test_virtual),
		cmocka_unit_test(test_two_ids),	    cmocka_unit_test(test_told),
		cmocka_unit_test(test_groups_told), cmocka_unit_test(test_told_once),    cmocka_unit_test(test_ended),
		cmocka_unit_test(test_gloo),	    cmocka_unit_test(test_gloo_enemies),
		cmocka_unit_test(test_generations), cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
