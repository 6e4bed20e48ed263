/* nboxd against workers that mean ill, or leave at the worst moment, beside one
 * communicator that goes on working. */
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmocka-all.h"
#include "fake-worker.h"
#include "nboxd/store/protocol.h"
#include "rng.h"

static struct fake f[3];

/* 2 nodes x 3 ranks, @n of the three real ones here, one communicator of these. */
static void start(struct daemon *d, const char *addr, const char *exchange, size_t n)
{
	const char *args[] = {"--nodes",  "2",       "--gpus-per-node",
			      "3",        "--real",  "0-2",
			      "--addr",   addr,      "--exchange",
			      exchange,   "--model", "alphabeta",
			      "--settle", "500ms",   NULL};

	daemon_start(d, args);
	for (size_t i = 0; i < n; i++)
		fake_connect(&f[i], d->addr, "");
	assert_true(fakes_got(f, n, WIRE_WELCOME, 1));
	for (size_t i = 0; i < n; i++)
		fake_init(&f[i], 7, (uint32_t)n, (uint32_t)i, (uint32_t)i);
	assert_true(fakes_got(f, n, WIRE_COMM_READY, 1));
}

static void work(uint64_t seq)
{
	for (size_t i = 0; i < 2; i++)
		fake_arrive(&f[i], &f[i].ready[0], seq, COLL_ALLREDUCE, 100, 0);
	assert_true(fakes_ops_over(f, 2));
}

static bool is_quiet(void *ctx)
{
	return clock_now_ns() >= *(uint64_t *)ctx;
}

/* Payload over tcp: of a worker that leaves, the end of the second connection may be
 * seen long before the BYE that lies behind many frames in the first one. */
static void a_bye_behind_many_frames_is_still_a_bye(void **state)
{
	struct wire_hello hello = {.pid = (uint32_t)getpid(),
				   .host = "fake",
				   .role = WIRE_ROLE_BACK};
	struct wire_ping ping = {0};
	struct fake back;
	struct daemon d;
	uint64_t until;

	(void)state;
	if (getenv("NBOX_TEST_RDMA"))
		return; /* of sockets */
	start(&d, "tcp:127.0.0.1:0", "payload", 2);
	fake_connect(&f[2], d.addr, "");
	assert_true(fakes_got(&f[2], 1, WIRE_WELCOME, 1));
	hello.worker = f[2].welcome.worker;
	fake_connect_raw(&back, d.addr);
	fake_send(&back, WIRE_HELLO, 0, 0, 0, &hello, sizeof(hello));
	assert_true(fakes_got(&back, 1, WIRE_WELCOME, 1));
	assert_int_equal(kill(d.pid, SIGSTOP), 0);
	for (int i = 0; i < 3000; i++)
		fake_send(&f[2], WIRE_PING, 0, 0, 0, &ping, sizeof(ping));
	fake_send(&f[2], WIRE_BYE, 0, 0, 0, NULL, 0);
	assert_int_equal(link_queued_bytes(f[2].link), 0);
	fake_close(&back);
	assert_int_equal(kill(d.pid, SIGCONT), 0);
	until = clock_now_ns() + 300 * NS_PER_MS;
	fakes_pump(f, 3, is_quiet, &until);
	assert_int_equal(f[2].n[WIRE_ERROR], 0);
	assert_false(daemon_said(&d, "second connection was lost"));
	for (size_t i = 0; i < 3; i++)
		fake_close(&f[i]);
	daemon_stop(&d);
}

static uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_u64(r) % n;
}

/* Some bytes of a good frame are turned, or its body is another one's. */
static void send_wrong(struct fake *enemy, struct rng *rng)
{
	static uint8_t body[4096];
	struct wire_hdr h;
	size_t n = rng_below(rng, 4) ? rng_below(rng, 600) : 0;

	for (size_t i = 0; i < n; i++)
		body[i] = rng_below(rng, 3) ? 0 : (uint8_t)rng_below(rng, 256);
	wire_hdr_init(&h, (enum wire_type)(1 + rng_below(rng, WIRE_TYPE_END)), n);
	switch ((int)h.type) { /* the right length more often than chance has it */
	case WIRE_COMM_INIT:
		h.body_bytes = sizeof(struct wire_comm_init);
		break;
	case WIRE_COMM_SPLIT:
		h.body_bytes = sizeof(struct wire_comm_split);
		break;
	case WIRE_ARRIVE:
		h.body_bytes = sizeof(struct wire_arrive);
		break;
	case WIRE_POINT:
		h.body_bytes = sizeof(struct wire_point);
		break;
	case WIRE_DONE:
		h.body_bytes = sizeof(struct wire_done);
		break;
	case WIRE_ABORT:
		h.body_bytes = sizeof(struct wire_text);
		break;
	case WIRE_LOCAL_ID:
		h.body_bytes = WIRE_ID_BYTES;
		break;
	case WIRE_MEET:
		h.body_bytes = 0;
		break;
	case WIRE_MESSAGE:
		h.body_bytes = 0;
		break;
	default:
		break;
	}
	/* its own communicator and rank, or another's */
	h.comm = rng_below(rng, 4) ? enemy->ready[0].comm : (uint32_t)rng_below(rng, 4);
	h.rank = rng_below(rng, 4) ? enemy->ready[0].m.rank : (uint32_t)rng_below(rng, 4);
	h.seq = rng_below(rng, 3);
	h.peer = (uint32_t)rng_below(rng, 4);
	h.lane = (uint16_t)rng_below(rng, 2);
	h.index = rng_below(rng, 3);
	link_send_copy(enemy->link, &h, h.body_bytes ? body : NULL);
	if (!enemy->is_closed)
		link_progress(enemy->link);
}

static bool is_answered(void *ctx)
{
	const struct fake *enemy = ctx;

	return enemy->n[WIRE_COMM_READY] || enemy->n[WIRE_ABORT];
}

/* Over rdma nboxd may see the end of the rank's last connection after this one's first frames:
 * until then it refuses. */
static void init_enemy(struct fake *enemy, uint8_t id)
{
	for (uint64_t end = clock_now_ns() + 60 * NS_PER_S; clock_now_ns() < end; usleep(20000)) {
		enemy->n[WIRE_ABORT] = 0;
		fake_init(enemy, id, 1, 0, 2);
		assert_true(fakes_pump(enemy, 1, is_answered, enemy));
		if (enemy->n[WIRE_COMM_READY])
			return;
		assert_non_null(strstr(enemy->abort.text, "already"));
	}
	fail_msg("refused for 60 s: %s", enemy->abort.text);
}

/* A worker with a communicator of its own sends what it likes; the others' op goes on. */
static void random_frames(const char *addr, const char *exchange, uint64_t seed)
{
	struct fake *enemy = &f[2];
	struct rng rng = {0};
	struct daemon d;

	rng_seed(&rng, seed, 0);
	start(&d, addr, exchange, 2);
	for (uint64_t round = 0; round < 60; round++) {
		fake_connect(enemy, d.addr, "");
		assert_true(fakes_got(enemy, 1, WIRE_WELCOME, 1));
		init_enemy(enemy, (uint8_t)(100 + round));
		for (int i = 0; i < 30 && !enemy->is_closed; i++)
			send_wrong(enemy, &rng);
		work(round);
		fake_close(enemy);
	}
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f[i].n[WIRE_ABORT], 0);
		fake_close(&f[i]);
	}
	daemon_stop(&d);
}

static void frames_at_random_harm_only_their_sender(void **state)
{
	(void)state;
	random_frames(test_address("tcp", NULL), "messages", 1);
	random_frames(test_address("tcp", NULL), "none", 2);
	random_frames(test_address("tcp", NULL), "payload", 3);
}

/* Worker 2 plays rank 2 alone. */
static void a_point_of_a_rank_that_another_plays_ends_its_sender(void **state)
{
	struct wire_point point = {.name = 1, .time_ns = 1};
	struct daemon d;

	(void)state;
	start(&d, test_address("tcp", NULL), "none", 3);
	point.time_ns = clock_now_ns();
	fake_send(&f[2], WIRE_POINT, 0, 2, 0, &point, sizeof(point));
	fake_send(&f[2], WIRE_POINT, 0, 0, 0, &point, sizeof(point));
	assert_true(fakes_got(&f[2], 1, WIRE_ERROR, 1));
	assert_string_equal(f[2].error.text, "POINT for world rank 0, which it does not play");
	for (size_t i = 0; i < 3; i++)
		fake_close(&f[i]);
	daemon_stop(&d);
}

/* Hundreds of strangers: the log does not grow with them, the work goes on. */
static void strangers_fill_no_log_and_stop_no_work(void **state)
{
	static int fds[600];
	char port[16];
	struct daemon d;

	(void)state;
	if (getenv("NBOX_TEST_RDMA"))
		return; /* of sockets */
	start(&d, "tcp:127.0.0.1:0", "messages", 2);
	snprintf(port, sizeof(port), "%s", strrchr(d.addr, ':') + 1);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *ai;

		assert_int_equal(getaddrinfo("127.0.0.1", port, &hints, &ai), 0);
		fds[i] = socket(ai->ai_family, SOCK_STREAM, 0);
		assert_int_equal(connect(fds[i], ai->ai_addr, ai->ai_addrlen), 0);
		freeaddrinfo(ai);
		assert_int_equal(send(fds[i],
				      "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html, */*\r\n\r\n",
				      52, MSG_NOSIGNAL),
				 52);
	}
	for (uint64_t seq = 0; seq < 50; seq++)
		work(seq);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	for (size_t i = 0; i < 2; i++)
		fake_close(&f[i]);
	daemon_will_say(&d, "not a frame of nbox");
	assert_true(d.n_log < 8192);
	daemon_stop(&d);
}

static int dial(const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				.sin_port = htons((uint16_t)atoi(port))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* A client of the store that is served: shows the magic number, is answered a PING. */
static void use_store(const char *port)
{
	uint8_t words[10] = {STORE_VALIDATE, 0, 0, 0, 0, STORE_PING, 1, 2, 3, 4}, got[4] = {0};
	uint32_t magic = STORE_MAGIC;
	int fd = dial(port);

	memcpy(words + 1, &magic, sizeof(magic));
	assert_int_equal(send(fd, words, sizeof(words), MSG_NOSIGNAL), sizeof(words));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){60, 0}, sizeof(struct timeval));
	if (recv(fd, got, sizeof(got), MSG_WAITALL) != sizeof(got))
		fail_msg("the store does not serve a client that speaks");
	assert_memory_equal(got, words + 6, sizeof(got));
	close(fd);
}

/* More silent connections than nboxd has places or descriptors for: who speaks gets one of theirs.
 * @n_ousted: so many of them at least had to go for the last ones. */
static void silent_ones(rlim_t n_fds, size_t n_links, size_t n_store, size_t n_ousted)
{
	CLEANUP(freep) int *fds = calloc(n_links + n_store, sizeof(*fds));
	const char *args[] = {"--nodes",         "2",       "--gpus-per-node", "3", "--addr",
			      "tcp:127.0.0.1:0", "--store", "127.0.0.1:0",     NULL};
	char port[16], store_port[16];
	struct daemon d;

	assert_non_null(fds);
	daemon_start(&d, args);
	snprintf(port, sizeof(port), "%s", strrchr(d.addr, ':') + 1);
	snprintf(store_port, sizeof(store_port), "%s", strrchr(d.store, ':') + 1);
	if (n_fds)
		assert_int_equal(prlimit(d.pid, RLIMIT_NOFILE, &(struct rlimit){n_fds, n_fds},
					 NULL),
				 0);
	for (size_t i = 0; i < n_links + n_store; i++)
		fds[i] = dial(i < n_links ? port : store_port);
	/* nearly all have been accepted then: nobody younger than who comes now is still to be */
	if (poll(&(struct pollfd){.fd = fds[n_ousted - 1], .events = POLLIN}, 1, 60000) != 1)
		fail_msg("silent connection %zu of %zu was not hung up", n_ousted,
			 n_links + n_store);
	fake_connect(&f[0], d.addr, "");
	assert_true(fakes_got(f, 1, WIRE_WELCOME, 1));
	use_store(store_port);
	for (size_t i = 0; i < n_links + n_store; i++)
		close(fds[i]);
	fake_close(&f[0]);
	daemon_stop(&d);
}

static void a_silent_connection_gives_its_place_to_a_new_one(void **state)
{
	struct rlimit limit;

	(void)state;
	if (getenv("NBOX_TEST_RDMA"))
		return; /* of sockets */
	silent_ones(64, 100, 0, 60);
	silent_ones(64, 0, 100, 60);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < 8192 || setrlimit(RLIMIT_NOFILE, &limit))
		return; /* cannot hold that many */
	silent_ones(0, 4100, 0, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bye_behind_many_frames_is_still_a_bye),
		cmocka_unit_test(frames_at_random_harm_only_their_sender),
		cmocka_unit_test(a_point_of_a_rank_that_another_plays_ends_its_sender),
		cmocka_unit_test(strangers_fill_no_log_and_stop_no_work),
		cmocka_unit_test(a_silent_connection_gives_its_place_to_a_new_one),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
